//! The reasons why a release did not happen.

use std::fmt;

use crate::runtime::pulse::Interrupted;

/// The reason why a release, or a mechanism with many releases, stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The pulse requested it.
    Interrupted,
    /// A replay does not match its recording: the privacy argument is broken, or the data sets are not neighbors.
    Mismatch(String),
    /// The query has no private answer: the value has another form or no finite sensitivity, or no sampler accepts the
    /// noise. The refusal depends on public parameters only.
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
