//! The steps from a caller's rows to records: ids and labels as codes, one record per unit, the groups of a unit,
//! positions on the globe.
//!
//! Each step maps the rows of one unit without regard to other rows, so neighboring tables become neighboring sets of
//! records. `python/dpmedian/sources/units.md` has the proof.

pub mod groups;
pub mod labels;
pub mod reduce;
pub mod sphere;
