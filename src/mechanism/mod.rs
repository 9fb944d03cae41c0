//! Private mechanisms that make many queries, or draw from more candidates than can be listed.

pub mod descent;
pub mod inverse_sensitivity;
