//! The privacy boundary: exact integers enter with their sensitivity, and leave with noise.
//!
//! The answer of a statistic is an [`exact::Exact`], whose values code outside of this folder cannot read. A
//! [`tape::Tape`] opens the answer and draws the noise. It takes the sensitivity from the answer, for the neighbor
//! relation that was given when the tape was created. So the charged sensitivity is always the proved sensitivity. A
//! mechanism cannot leak exact values, because it cannot read them. An [`allowance::Allowance`] refuses releases beyond
//! the charge. The boundary prevents mistakes. It does not stop an attacker in the same process.

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
