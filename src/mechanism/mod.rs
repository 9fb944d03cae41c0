//! Private mechanisms that ask the records more than once, or draw from more candidates than can be listed.

pub mod descent;
pub mod inverse_sensitivity;
