//! Contiguous records as a kernel reads them: doubles, or singles that the kernel converts to doubles (widens) in
//! registers.

use nalgebra::{DMatrixView, Scalar};

/// A coordinate in memory. Every single is exactly a double, so a kernel gives the same bits for singles as for an
/// array that was converted to doubles.
pub(crate) trait Coordinate: Scalar + Copy + Into<f64> {}

impl Coordinate for f64 {}
impl Coordinate for f32 {}

/// n records of d coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a, T = f64> {
    coordinates: &'a [T],
    d: usize,
    n: usize,
}

impl<'a, T: Coordinate> Block<'a, T> {
    /// # Panics
    ///
    /// If there are not n records of d coordinates.
    pub(crate) fn new(coordinates: &'a [T], d: usize, n: usize) -> Self {
        assert_eq!(coordinates.len(), d * n, "{n} records of {d} coordinates");
        Self { coordinates, d, n }
    }

    /// The number of records.
    #[inline(always)]
    pub(crate) fn n(self) -> usize {
        self.n
    }

    /// All coordinates, one record after the other.
    #[inline(always)]
    pub(crate) fn coordinates(self) -> &'a [T] {
        self.coordinates
    }

    /// One record per column.
    #[inline(always)]
    pub(crate) fn view(self) -> DMatrixView<'a, T> {
        DMatrixView::from_slice(self.coordinates, self.d, self.n)
    }

    /// Iterates over the records.
    #[inline(always)]
    pub(crate) fn records(self) -> impl Iterator<Item = &'a [T]> {
        (0..self.n).map(move |i| &self.coordinates[i * self.d..(i + 1) * self.d])
    }
}

/// Contiguous records of either precision. Kernels take this type, so that large kernels are compiled only once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AnyBlock<'a> {
    /// Doubles, which kernels compute with.
    Doubles(Block<'a, f64>),
    /// Singles, which the kernel widens.
    Singles(Block<'a, f32>),
}

impl<'a> From<Block<'a, f64>> for AnyBlock<'a> {
    fn from(block: Block<'a, f64>) -> Self {
        Self::Doubles(block)
    }
}

impl<'a> From<Block<'a, f32>> for AnyBlock<'a> {
    fn from(block: Block<'a, f32>) -> Self {
        Self::Singles(block)
    }
}

impl<'a> AnyBlock<'a> {
    /// The number of records.
    #[inline(always)]
    pub(crate) fn n(self) -> usize {
        match self {
            Self::Doubles(block) => block.n(),
            Self::Singles(block) => block.n(),
        }
    }

    /// The records from `first` on, at most as many as the buffer holds. Singles are widened into the buffer, which
    /// should be small enough for the first-level cache. `black_box` hides the kind of records, because otherwise the
    /// compiler would compile the caller's loop twice, once for memory and once for the buffer.
    #[inline(always)]
    pub(crate) fn records_from<'b, const D: usize>(self, first: usize, buffer: &'b mut [[f64; D]]) -> &'b [[f64; D]]
    where
        'a: 'b,
    {
        let records = first..self.n().min(first + buffer.len());
        match std::hint::black_box(self) {
            Self::Doubles(block) => &block.coordinates().as_chunks().0[records],
            Self::Singles(block) => {
                let singles = &block.coordinates().as_chunks::<D>().0[records];
                let buffer = &mut buffer[..singles.len()];
                for (slot, x) in buffer.as_flattened_mut().iter_mut().zip(singles.as_flattened()) {
                    *slot = f64::from(*x);
                }
                buffer
            }
        }
    }
}
