//! A caller's array of records, read in place.
//!
//! Between two calls, this crate only keeps a reference to the array. During a call the array is borrowed for reading.
//! So other extensions that follow the rules of rust-numpy cannot write to the array while kernels read it without the
//! GIL.

use nalgebra::DMatrixView;
use numpy::{Element, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use dpmedian_core::runtime::memory::{Memory, Table};
use dpmedian_core::statistics::robust_step::{Piece, Pieces};

/// An array that is borrowed for reading: doubles or singles, of shape (n, d) in C order.
#[derive(FromPyObject)]
pub(super) enum Reading<'py> {
    /// Doubles, which kernels compute with.
    #[pyo3(transparent, annotation = "an aligned array of float64 with two dimensions")]
    Doubles(PyReadonlyArray2<'py, f64>),
    /// Singles, which are widened when they are loaded.
    #[pyo3(transparent, annotation = "an aligned array of float32 with two dimensions")]
    Singles(PyReadonlyArray2<'py, f32>),
}

impl Reading<'_> {
    /// The records of the array. An array of shape (n, d) in C order holds n consecutive records of d coordinates.
    pub(super) fn table(&self) -> PyResult<Table<'_>> {
        let (memory, shape) = match self {
            Self::Doubles(array) => (Memory::Doubles(coordinates(array)?.into()), array.shape()),
            Self::Singles(array) => (Memory::Singles(coordinates(array)?.into()), array.shape()),
        };
        Ok(Table::new(memory, shape[1], shape[0]))
    }

    /// A reference to the array, which can be kept after the borrow has ended.
    pub(super) fn held(&self) -> Held {
        match self {
            Self::Doubles(array) => Held::Doubles((**array).clone().unbind()),
            Self::Singles(array) => Held::Singles((**array).clone().unbind()),
        }
    }
}

/// A vector, or a part of a vector: contiguous doubles or singles.
#[derive(FromPyObject)]
pub(super) enum Part<'py> {
    /// Doubles, which kernels compute with.
    #[pyo3(transparent, annotation = "a contiguous array of float64 with one dimension")]
    Doubles(PyReadonlyArray1<'py, f64>),
    /// Singles, each of which is also a double.
    #[pyo3(transparent, annotation = "a contiguous array of float32 with one dimension")]
    Singles(PyReadonlyArray1<'py, f32>),
}

/// The vector that consists of these parts.
pub(super) fn pieces<'a>(parts: &'a [Part<'_>]) -> PyResult<Pieces<'a>> {
    let pieces = parts.iter().map(|part| match part {
        Part::Doubles(values) => Ok(Piece::Doubles(values.as_slice()?)),
        Part::Singles(values) => Ok(Piece::Singles(values.as_slice()?)),
    });
    pieces.collect::<PyResult<_>>().map(Pieces::new)
}

/// A reference to an array, which is kept between two calls.
pub(super) enum Held {
    Doubles(Py<PyArray2<f64>>),
    Singles(Py<PyArray2<f32>>),
}

impl Held {
    /// Borrows the array for reading.
    pub(super) fn reading<'py>(&self, py: Python<'py>) -> PyResult<Reading<'py>> {
        match self {
            Self::Doubles(array) => Ok(Reading::Doubles(array.bind(py).try_readonly()?)),
            Self::Singles(array) => Ok(Reading::Singles(array.bind(py).try_readonly()?)),
        }
    }
}

/// Views an array of shape (n, d) in C order as a d x n matrix with one record per column.
pub(super) fn view<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<DMatrixView<'a, f64>> {
    let shape = array.shape();
    Ok(DMatrixView::from_slice(coordinates(array)?, shape[1], shape[0]))
}

fn coordinates<'a, T: Element>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<&'a [T]> {
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err("an array of records must be in C order"));
    }
    Ok(array.as_slice()?)
}
