//! What may be asked of the records: exact integers, with the proof of their sensitivity beside the kernel.

pub mod ball_counts;
pub mod distance_counts;
pub mod gradient;
pub mod mean_shift;
pub mod objective_differences;
pub mod pair_counts;
