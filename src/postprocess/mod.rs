//! Computations on released values. This module sees no record: a poor result costs accuracy, never privacy.

pub mod posterior;
pub mod projection;
pub mod volumetric_center;
