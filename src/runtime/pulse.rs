//! Interrupts and progress. A *pulse* is a callback that kernels call between blocks of work, on the calling thread.

use std::fmt;

/// The error that the pulse told a kernel to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Called by every kernel between blocks of at most about 50 ms, always on the thread that called the kernel.
/// `done` is the fraction of this kernel's work that is finished. It depends on public shapes only.
pub trait Pulse {
    /// Returns an error to stop the kernel.
    fn beat(&mut self, done: f64) -> Result<(), Interrupted>;
}

/// The number of coordinates that a kernel may process between two beats, which takes some tens of milliseconds.
pub(crate) const COORDINATES_PER_BEAT: usize = 1 << 24;

/// A pulse that never interrupts and ignores the progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Pulse for Silent {
    fn beat(&mut self, _done: f64) -> Result<(), Interrupted> {
        Ok(())
    }
}
