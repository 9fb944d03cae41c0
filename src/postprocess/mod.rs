//! What is done with released values. Nothing here sees a record: a poor answer costs accuracy, never privacy.

pub mod posterior;
pub mod projection;
pub mod volumetric_center;
