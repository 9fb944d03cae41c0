//! The wall: exact integers come in with their sensitivity, and leave with noise.
//!
//! A statistic makes an [`exact::Exact`]; nothing outside this folder can read its values. A [`tape::Tape`] opens it,
//! takes the sensitivity from the value itself, under the neighbor relation that the tape has from its construction
//! on, and draws the noise. So the sensitivity that is charged cannot differ from the one that was proved, and a
//! mechanism cannot leak what it cannot read. An [`allowance::Allowance`] holds the tape to what was charged. The wall stops mistakes, not an attacker in the process.

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
