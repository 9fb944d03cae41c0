//! Computations on released values. This module does not see any record, so a poor result affects the accuracy but not
//! the privacy.

pub mod posterior;
pub mod projection;
pub mod volumetric_center;
