//! The reasons why a release did not happen.

use std::fmt;

use crate::runtime::pulse::Interrupted;

/// The reason why a release, or a mechanism with many releases, stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The progress callback requested an interrupt.
    Interrupted,
    /// A replay does not match its recording. Either the privacy argument is wrong, or the data sets are not neighbors.
    Mismatch(String),
    /// The release is refused, for example because the value has another form or no finite sensitivity, or because no
    /// sampler accepts the noise. Whether a release is refused depends on public parameters only.
    Refused(String),
    /// Records could not be read: their file was truncated or changed.
    Unreadable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => Interrupted.fmt(f),
            Self::Mismatch(reason) | Self::Refused(reason) | Self::Unreadable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Error {}

impl From<Interrupted> for Error {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}
