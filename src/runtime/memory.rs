//! The memory that holds the coordinates of records: doubles or singles, borrowed or owned, or a file.
//!
//! Singles are stored as singles and converted to doubles (widened) block by block. Every single is exactly a double,
//! so the results have the same bits as with an array of doubles.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use nalgebra::DMatrix;

use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::float_scale::LARGEST;
use crate::runtime::record_file::RecordFile;

/// Coordinates of records, one record after the other.
#[derive(Debug, Clone)]
pub enum Memory<'a> {
    /// Doubles, which kernels compute with.
    Doubles(Cow<'a, [f64]>),
    /// Singles, which are widened when they are loaded.
    Singles(Cow<'a, [f32]>),
    /// A file, which is read when records are loaded.
    File(Arc<RecordFile>),
}

impl Memory<'_> {
    fn has_shape(&self, d: usize, n: usize) -> bool {
        match self {
            Self::Doubles(all) => n.checked_mul(d) == Some(all.len()),
            Self::Singles(all) => n.checked_mul(d) == Some(all.len()),
            Self::File(file) => (file.d(), file.n()) == (d, n),
        }
    }
}

/// Converts singles to doubles.
struct Widen<'a>(&'a [f32], &'a mut [f64]);

impl Kernel for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.1.iter_mut().zip(self.0).for_each(|(target, x)| *target = f64::from(*x));
    }
}

/// Checks that all coordinates are finite and at most [`LARGEST`], without a branch for each coordinate. A comparison
/// with NaN is false.
struct Admissible<'a>(&'a [f64]);

impl Kernel for Admissible<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        self.0.iter().fold(true, |all, x| all & (x.abs() <= LARGEST))
    }
}

/// Checks that all singles are finite.
struct Finite<'a>(&'a [f32]);

impl Kernel for Finite<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        self.0.iter().fold(true, |all, x| all & (x.abs() <= f32::MAX))
    }
}

/// Memory with a shape: n records of d coordinates.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    memory: Memory<'a>,
    d: usize,
    n: usize,
}

impl<'a> Table<'a> {
    /// # Panics
    ///
    /// If there are not n records of d coordinates.
    pub fn new(memory: Memory<'a>, d: usize, n: usize) -> Self {
        assert!(memory.has_shape(d, n), "{n} records of {d} coordinates have another memory");
        Self { memory, d, n }
    }

    /// The same memory with a shorter lifetime.
    pub(crate) fn borrowed(&self) -> Table<'_> {
        let memory = match &self.memory {
            Memory::Doubles(all) => Memory::Doubles(Cow::Borrowed(all)),
            Memory::Singles(all) => Memory::Singles(Cow::Borrowed(all)),
            Memory::File(file) => Memory::File(Arc::clone(file)),
        };
        Table { memory, d: self.d, n: self.n }
    }

    /// The dimension.
    pub fn d(&self) -> usize {
        self.d
    }

    /// The number of records.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Some records in place, or `None` if they are not stored as doubles.
    pub(crate) fn in_place(&self, records: Range<usize>) -> Option<&[f64]> {
        match &self.memory {
            Memory::Doubles(all) => Some(&all[self.coordinates(records)]),
            Memory::Singles(_) | Memory::File(_) => None,
        }
    }

    /// Some records in place, or `None` if they are not stored as singles.
    pub(crate) fn singles(&self, records: Range<usize>) -> Option<&[f32]> {
        match &self.memory {
            Memory::Singles(all) => Some(&all[self.coordinates(records)]),
            Memory::Doubles(_) | Memory::File(_) => None,
        }
    }

    /// Copies some records as doubles into a target of the right size. Records that cannot be read become zero, and
    /// [`Self::check`] then returns the reason.
    pub(crate) fn load(&self, records: Range<usize>, target: &mut [f64]) {
        match &self.memory {
            Memory::Doubles(all) => target.copy_from_slice(&all[self.coordinates(records)]),
            Memory::Singles(all) => dispatch::vectorised(Widen(&all[self.coordinates(records)], target)),
            Memory::File(file) => file.load(records, target),
        }
    }

    /// Whether every coordinate of some records is known to be finite and at most [`LARGEST`] in magnitude.
    pub(crate) fn is_admissible(&self, records: Range<usize>) -> bool {
        match &self.memory {
            Memory::Doubles(all) => dispatch::vectorised(Admissible(&all[self.coordinates(records)])),
            // Every finite single is far below the largest coordinate.
            Memory::Singles(all) => dispatch::vectorised(Finite(&all[self.coordinates(records)])),
            Memory::File(_) => false,
        }
    }

    /// Whether admitted records stay unchanged. Other processes may write to a file, so the records of a file are
    /// mapped again on each load.
    pub(crate) fn stays(&self) -> bool {
        !matches!(self.memory, Memory::File(_))
    }

    /// Returns an error if an earlier read failed.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.memory {
            Memory::Doubles(_) | Memory::Singles(_) => Ok(()),
            Memory::File(file) => file.check(),
        }
    }

    fn coordinates(&self, records: Range<usize>) -> Range<usize> {
        records.start * self.d..records.end * self.d
    }
}

impl From<Arc<RecordFile>> for Table<'static> {
    fn from(file: Arc<RecordFile>) -> Self {
        let (d, n) = (file.d(), file.n());
        Self::new(Memory::File(file), d, n)
    }
}

impl From<DMatrix<f64>> for Table<'static> {
    fn from(matrix: DMatrix<f64>) -> Self {
        let (d, n) = matrix.shape();
        Self::new(Memory::Doubles(Cow::Owned(matrix.data.into())), d, n)
    }
}

impl From<DMatrix<f32>> for Table<'static> {
    fn from(matrix: DMatrix<f32>) -> Self {
        let (d, n) = matrix.shape();
        Self::new(Memory::Singles(Cow::Owned(matrix.data.into())), d, n)
    }
}

impl<'a> From<&'a DMatrix<f64>> for Table<'a> {
    fn from(matrix: &'a DMatrix<f64>) -> Self {
        Self::new(Memory::Doubles(Cow::Borrowed(matrix.as_slice())), matrix.nrows(), matrix.ncols())
    }
}

impl<'a> From<&'a DMatrix<f32>> for Table<'a> {
    fn from(matrix: &'a DMatrix<f32>) -> Self {
        Self::new(Memory::Singles(Cow::Borrowed(matrix.as_slice())), matrix.nrows(), matrix.ncols())
    }
}
