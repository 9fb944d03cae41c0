//! Records that lie one after the other, as a kernel reads them: doubles, or singles that are widened in registers.

use nalgebra::{DMatrixView, Scalar};

/// A coordinate as it lies in memory. Every single is a double, so sums have the bits of a converted array.
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

    /// The records one by one.
    #[inline(always)]
    pub(crate) fn records(self) -> impl Iterator<Item = &'a [T]> {
        (0..self.n).map(move |i| &self.coordinates[i * self.d..(i + 1) * self.d])
    }
}

/// Records as they lie.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lying<'a> {
    /// As they are computed with.
    Doubles(Block<'a, f64>),
    /// Widened by the kernel.
    Singles(Block<'a, f32>),
}
