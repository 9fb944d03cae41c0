//! The wall: exact integers come in with their sensitivity, and leave with noise.

pub mod tape;
