//! A file of records. The file is opened first, and its layout is set later.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use dpmedian_core::runtime::record_file::{self, Column};

/// The offset, the stride, and whether a number has 8 bytes.
type ColumnArguments = (u64, u64, bool);

/// An open file. It stays readable after its name is removed, so the name of a temporary file is removed early.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct RecordFile {
    file: File,
    records: OnceLock<Arc<record_file::RecordFile>>,
}

impl RecordFile {
    /// The records, if the layout is known.
    pub(super) fn records(&self) -> PyResult<Arc<record_file::RecordFile>> {
        self.records.get().cloned().ok_or_else(|| PyValueError::new_err("the layout of this file is not set"))
    }
}

#[pymethods]
impl RecordFile {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        Ok(Self { file: File::open(path)?, records: OnceLock::new() })
    }

    /// Sets the layout. This is possible once. A piece of the file is given by the number of its records and, for every
    /// column, by the offset of the first number, the stride from record to record, and whether a number has 8 bytes
    /// (otherwise it has 4).
    fn lay_out(&self, pieces: Vec<(usize, Vec<ColumnArguments>)>) -> PyResult<()> {
        let column = |(offset, stride, double)| Column { offset, stride, double };
        let piece = |(records, columns): (usize, Vec<_>)| (records, columns.into_iter().map(column).collect());
        let file = self.file.try_clone()?;
        let records = record_file::RecordFile::new(file, pieces.into_iter().map(piece).collect())?;
        self.records.set(Arc::new(records)).map_err(|_| PyValueError::new_err("the layout of this file is already set"))
    }
}
