//! Neighbor relations by name, and sensitivities under them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use dpmedian_core::mechanism::inverse_sensitivity;
use dpmedian_core::release::sensitivity::{self, Neighbours};

/// The relation with this name.
pub(super) fn as_neighbours(name: &str) -> PyResult<Neighbours> {
    Neighbours::named(name).map_err(PyValueError::new_err)
}

/// The largest change of an exact answer between neighbors, in units of the answer's lattice, rounded up.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Sensitivity(pub(super) sensitivity::Sensitivity);

#[pymethods]
impl Sensitivity {
    /// The sensitivity if one record is replaced by another.
    #[getter]
    fn replace(&self) -> f64 {
        self.0.under(Neighbours::Replace)
    }

    /// The sensitivity if one record is added or removed.
    #[getter]
    fn add_remove(&self) -> f64 {
        self.0.under(Neighbours::AddRemove)
    }

    /// The sensitivity under a relation, given by its name: "replace" or "add_remove".
    fn under(&self, neighbours: &str) -> PyResult<f64> {
        Ok(self.0.under(as_neighbours(neighbours)?))
    }

    fn __repr__(&self) -> String {
        format!("Sensitivity(replace={}, add_remove={})", self.replace(), self.add_remove())
    }
}

/// The largest change of the score of a lattice point if a record changes, with or without weights, in units of 2^-31.
#[pyfunction]
#[pyo3(signature = (d, weighted=false))]
pub(super) fn lattice_score_sensitivity(d: usize, weighted: bool) -> PyResult<Sensitivity> {
    let sensitivity = inverse_sensitivity::sensitivity(d, weighted);
    sensitivity
        .map(Sensitivity)
        .ok_or_else(|| PyValueError::new_err(format!("a lattice has one to three dimensions, got {d}")))
}
