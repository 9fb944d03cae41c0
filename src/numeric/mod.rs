//! Arithmetic of doubles that gives the same bits on every machine. This module has no notion of records or privacy.

pub(crate) mod block;
pub mod dispatch;
pub(crate) mod distance;
pub mod float_scale;
pub(crate) mod lanes;
