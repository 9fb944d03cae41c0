//! The Python module `dpmedian._core`. Only this crate uses pyo3 and numpy. Its functions are short, because the crate
//! `dpmedian-core` does the work.

mod array;
mod call;
mod message;
mod nonprivate;
mod points;
mod postprocess;
mod preprocess;
mod record_file;
mod sensitivity;
mod statistics;
mod tape;

use pyo3::prelude::*;

use dpmedian_core::statistics::KINDS;
use dpmedian_core::statistics::distance_counts::{FIRST_QUARTER_OCTAVE, LAST_QUARTER_OCTAVE};
use dpmedian_core::statistics::shells::{FIRST_HALF_OCTAVE, SHELLS};

// Threads may use all objects of this module at once without an interpreter lock, because mutable state is protected by
// a mutex or by a checked borrow.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("FIRST_QUARTER_OCTAVE", FIRST_QUARTER_OCTAVE)?;
    module.add("LAST_QUARTER_OCTAVE", LAST_QUARTER_OCTAVE)?;
    module.add("FIRST_HALF_OCTAVE", FIRST_HALF_OCTAVE)?;
    module.add("SHELLS", SHELLS)?;
    module.add("STATISTICS", KINDS.to_vec())?;
    module.add_class::<sensitivity::Sensitivity>()?;
    module.add_class::<statistics::Statistic>()?;
    module.add_class::<statistics::Accumulator>()?;
    module.add_class::<points::Points>()?;
    module.add_class::<record_file::RecordFile>()?;
    module.add_class::<tape::Exact>()?;
    module.add_class::<tape::Stream>()?;
    module.add_class::<tape::Coins>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<tape::Tape>()?;
    module.add_class::<postprocess::Feasible>()?;
    module.add_class::<postprocess::VolumetricCenter>()?;
    module.add_class::<postprocess::GridPosterior>()?;
    module.add_class::<postprocess::CoordinatePosterior>()?;
    module.add_function(wrap_pyfunction!(call::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(call::threads, module)?)?;
    module.add_function(wrap_pyfunction!(tape::gaussian_sigma, module)?)?;
    module.add_function(wrap_pyfunction!(statistics::bound, module)?)?;
    module.add_function(wrap_pyfunction!(sensitivity::lattice_score_sensitivity, module)?)?;
    module.add_function(wrap_pyfunction!(nonprivate::nonprivate_median, module)?)?;
    module.add_function(wrap_pyfunction!(nonprivate::nonprivate_objective, module)?)?;
    module.add_function(wrap_pyfunction!(nonprivate::nonprivate_gradient, module)?)?;
    module.add_function(wrap_pyfunction!(nonprivate::nonprivate_ball_counts, module)?)?;
    module.add_function(wrap_pyfunction!(nonprivate::nonprivate_top_count_sums, module)?)?;
    module.add_function(wrap_pyfunction!(nonprivate::nonprivate_quantile_radius, module)?)?;
    module.add_function(wrap_pyfunction!(nonprivate::nonprivate_lattice_scores, module)?)?;
    module.add_function(wrap_pyfunction!(preprocess::label_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(preprocess::label_places, module)?)?;
    module.add_function(wrap_pyfunction!(preprocess::reduce_units, module)?)?;
    module.add_function(wrap_pyfunction!(preprocess::group_contributions, module)?)?;
    module.add_function(wrap_pyfunction!(preprocess::sphere_vectors, module)?)?;
    Ok(())
}
