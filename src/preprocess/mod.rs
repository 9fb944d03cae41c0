//! What becomes of a caller's rows before they are records: ids and labels as codes, one record per unit, the groups of a
//! unit, positions on the globe.
//!
//! Everything here is a map of the rows of one unit on their own, whatever the other rows are: neighboring tables become
//! neighboring sets of records. `python/dpmedian/sources/units.md` has the proof.

pub mod groups;
pub mod labels;
pub mod reduce;
pub mod sphere;
