//! Arithmetic of doubles that has the same bits on every machine. Nothing here knows of records or privacy.

pub(crate) mod block;
pub mod dispatch;
pub(crate) mod distance;
pub mod float_scale;
pub(crate) mod lanes;
