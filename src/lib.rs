//! The differentially private geometric median: the exact core under the Python package `dpmedian`.
//!
//! One idea carries the privacy argument: *sum integers, add integer noise, convert last*. A map of the files:
//!
//! | file | noun |
//! |---|---|
//! | [`points`] | the one validated, clamped and projected copy of the records |
//! | [`gradient`] | the gradient of the sum of distances, on an integer lattice |
//! | [`projection`] | Euclidean projection onto a ball and onto the intersection of two |
//! | [`sampler`] | exact discrete distributions, integer arithmetic only |
//! | [`tape`] | every noisy release: drawn, recorded or replayed |
//! | [`centre`] | the volumetric centre of a ball cut by half-spaces |
//! | [`difference`] | differences of the objective between candidates, on an integer lattice |
//! | [`descent`] | the inner loop of noisy projected gradient descent |
//! | [`ball`] | ball counts of all records for all radii, and the sums of the largest |
//! | [`tree`] | the same counts in few dimensions, many at once |
//! | [`objective`] | the sum of distances |
//! | [`median`] | the geometric median without privacy, as a yardstick |
//! | [`pair`] | counts of random disjoint pairs within each radius, in linear time |
//! | [`rank`] | how many records lie at or below a threshold, in every coordinate |
//! | [`posterior`] | where a noisy search asks next: for an index, or for the median of every coordinate |
//! | [`distance`] | how many records lie within each radius of a point |
//! | [`shift`] | the sum of differences to the records within a radius, on the gradient's lattice |
//! | `tally` | sums of integers over records, by every thread |
//! | [`dispatch`], `lanes` | the same bits on every instruction set; eight doubles side by side |
//! | [`inverse`] | the inverse-sensitivity mechanism in one to three dimensions, sampled exactly |
//! | [`pool`], [`pulse`] | our own threads; interrupts and progress between blocks |
//!
//! Points are nalgebra views throughout: a C-order array of shape (n, d) has the memory of a d x n matrix, one record
//! per column. Only `python.rs` names the interpreter.

pub mod ball;
pub mod centre;
pub mod descent;
pub mod difference;
pub mod dispatch;
pub mod distance;
pub mod gradient;
pub mod inverse;
mod lanes;
pub mod median;
pub mod objective;
pub mod pair;
pub mod points;
pub mod pool;
pub mod posterior;
pub mod projection;
pub mod pulse;
pub mod rank;
pub mod sampler;
pub mod shift;
mod tally;
pub mod tape;
pub mod tree;

#[cfg(feature = "python")]
mod python;
