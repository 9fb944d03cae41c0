//! Why a release did not happen.

use std::fmt;

use crate::runtime::pulse::Interrupted;

/// Why a release, or a mechanism of many releases, stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The pulse asked for it.
    Interrupted,
    /// A replay does not match its recording: the privacy argument is broken, or the data sets are no neighbours.
    Mismatch(String),
    /// The query has no private answer: the value has another form or no finite sensitivity, or no sampler accepts the
    /// noise. It depends on public parameters only.
    Refused(String),
    /// Records could not be read: their file was cut off or changed.
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
