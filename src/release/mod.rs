//! The privacy boundary: exact integers enter with their sensitivity, and leave with noise.
//!
//! A statistic makes an [`exact::Exact`]; code outside of this folder cannot read its values. A [`tape::Tape`] opens
//! it, takes the sensitivity from the value itself, under the neighbor relation that the tape was created with, and
//! draws the noise. So the sensitivity that is charged cannot differ from the one that was proved, and a mechanism
//! cannot leak what it cannot read. An [`allowance::Allowance`] keeps the tape within the charge. The boundary stops
//! mistakes; it does not stop an attacker in the same process.

pub mod allowance;
pub mod error;
pub mod exact;
pub mod message;
pub mod noise;
pub mod recording;
pub mod sample;
pub mod sensitivity;
pub mod streams;
pub mod tape;
pub mod trace;
