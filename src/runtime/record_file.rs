//! Records in a file, read in blocks by ordinary read calls. If the file shrinks during a run, a read call returns an
//! error, while access to a memory map would kill the process. No part of the file stays in memory.
//!
//! Numbers describe the layout of the file: in every piece of the file, each column has an offset, and a stride from
//! record to record. Such numbers can describe NPY files in both orders, selected columns of these files, and the
//! record batches of Arrow files.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::time::SystemTime;

/// A column of a piece: little-endian floats of 4 or 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The offset of the first record's number.
    pub offset: u64,
    /// The distance in bytes from one record's number to the next record's number.
    pub stride: u64,
    /// Whether a number has 8 bytes; otherwise it has 4.
    pub double: bool,
}

impl Column {
    fn width(&self) -> u64 {
        if self.double { 8 } else { 4 }
    }
}

/// Records that are consecutive in every column.
#[derive(Debug, Clone)]
struct Piece {
    first: usize,
    records: usize,
    columns: Vec<Column>,
    /// The first byte and the length of a record, if all columns have the same stride and a record lies within one
    /// stride. Then a block needs a single read call.
    rows: Option<(u64, u64)>,
}

/// The state of the file when it was opened.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    changed: Option<SystemTime>,
    /// The time of the last change of the inode of the file, in seconds and nanoseconds. A program can set `changed`
    /// back, but it cannot set this time back.
    inode_changed: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        #[cfg(unix)]
        let inode_changed = {
            use std::os::unix::fs::MetadataExt;
            (metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let inode_changed = (0, 0);
        Ok(Self { bytes: metadata.len(), changed: metadata.modified().ok(), inode_changed })
    }
}

/// An open file and the layout of its records.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    pieces: Vec<Piece>,
    n: usize,
    stamp: Stamp,
    /// The error of the first read that failed. Kernels continue with zeros, but their answers are not returned.
    failure: Mutex<Option<String>>,
}

impl RecordFile {
    /// A file with a layout: the number of records and the columns of every piece. A piece that extends beyond the end
    /// of the file is refused.
    pub fn new(file: File, layout: Vec<(usize, Vec<Column>)>) -> io::Result<Self> {
        let stamp = Stamp::of(&file)?;
        let d = layout.first().map_or(0, |(_, columns)| columns.len());
        let (mut pieces, mut n) = (Vec::with_capacity(layout.len()), 0usize);
        for (records, columns) in layout {
            let end = |column: &Column| {
                let last = (records as u64).saturating_sub(1);
                last.saturating_mul(column.stride).saturating_add(column.offset).saturating_add(column.width())
            };
            let end = columns.iter().map(end).max().unwrap_or(0);
            if columns.len() != d || (records > 0 && end > stamp.bytes) {
                let bytes = stamp.bytes;
                return Err(invalid(format!(
                    "it is cut off: its records should end at byte {end}, but it has only {bytes} bytes"
                )));
            }
            pieces.push(Piece { first: n, records, rows: rows(&columns), columns });
            n = n.checked_add(records).ok_or_else(|| invalid("it has too many records".into()))?;
        }
        Ok(Self { file, pieces, n, stamp, failure: Mutex::new(None) })
    }

    /// The dimension.
    pub fn d(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.columns.len())
    }

    /// The number of records.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Copies some records as doubles into a target of the right size. Records that cannot be read become zero, and
    /// [`Self::check`] then returns the reason.
    pub(crate) fn load(&self, records: Range<usize>, target: &mut [f64]) {
        if let Err(error) = self.try_load(records, target) {
            target.fill(0.0);
            let reason = match error.kind() {
                io::ErrorKind::UnexpectedEof => "it ended early: it was cut off while it was read".into(),
                _ => error.to_string(),
            };
            self.failure.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(reason);
        }
    }

    /// Returns an error unless every read succeeded and the file is unchanged.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(reason) = self.failure.lock().unwrap_or_else(|e| e.into_inner()).clone() {
            return Err(reason);
        }
        match Stamp::of(&self.file) {
            Ok(stamp) if stamp == self.stamp => Ok(()),
            Ok(_) => Err("it was changed while it was read".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn try_load(&self, records: Range<usize>, target: &mut [f64]) -> io::Result<()> {
        let d = self.d();
        let mut bytes = Vec::new();
        let mut next = records.start;
        while next < records.end {
            let place = self.pieces.partition_point(|piece| piece.first + piece.records <= next);
            let piece = &self.pieces[place];
            let end = records.end.min(piece.first + piece.records);
            let part = &mut target[(next - records.start) * d..(end - records.start) * d];
            self.load_piece(piece, next - piece.first..end - piece.first, &mut bytes, part)?;
            next = end;
        }
        Ok(())
    }

    fn load_piece(
        &self,
        piece: &Piece,
        records: Range<usize>,
        bytes: &mut Vec<u8>,
        target: &mut [f64],
    ) -> io::Result<()> {
        let (d, first, count) = (piece.columns.len(), records.start as u64, records.len() as u64);
        if let Some((start, row)) = piece.rows {
            let stride = piece.columns[0].stride;
            bytes.resize(((count - 1) * stride + row) as usize, 0);
            read_exact_at(&self.file, bytes, start + first * stride)?;
            if packed(&piece.columns, stride) {
                if piece.columns[0].double {
                    widen::<8>(bytes, target)
                } else {
                    widen::<4>(bytes, target)
                }
                return Ok(());
            }
            for (j, column) in piece.columns.iter().enumerate() {
                pick(&bytes[(column.offset - start) as usize..], column, target, j, d);
            }
            return Ok(());
        }
        for (j, column) in piece.columns.iter().enumerate() {
            bytes.resize(((count - 1) * column.stride + column.width()) as usize, 0);
            read_exact_at(&self.file, bytes, column.offset + first * column.stride)?;
            pick(bytes, column, target, j, d);
        }
        Ok(())
    }
}

/// The first byte and the length of a record, or `None` if the record does not lie within one stride of all columns.
fn rows(columns: &[Column]) -> Option<(u64, u64)> {
    let stride = columns.first()?.stride;
    let start = columns.iter().map(|column| column.offset).min()?;
    let row = columns.iter().map(|column| column.offset - start + column.width()).max()?;
    (columns.iter().all(|column| column.stride == stride) && row <= stride).then_some((start, row))
}

/// Whether the bytes of a record are exactly its numbers, in the order of the columns and all with the same width.
fn packed(columns: &[Column], stride: u64) -> bool {
    let first = columns[0];
    let place = |j: usize| Column { offset: first.offset + j as u64 * first.width(), ..first };
    stride == columns.len() as u64 * first.width() && columns.iter().enumerate().all(|(j, column)| *column == place(j))
}

/// Widens packed numbers of `W` bytes.
fn widen<const W: usize>(bytes: &[u8], target: &mut [f64]) {
    for (target, number) in target.iter_mut().zip(bytes.as_chunks::<W>().0) {
        *target = decode(number);
    }
}

/// Copies every stride-th number to the j-th of d coordinates.
fn pick(bytes: &[u8], column: &Column, target: &mut [f64], j: usize, d: usize) {
    let (width, stride) = (column.width() as usize, column.stride as usize);
    for (record, target) in target.iter_mut().skip(j).step_by(d).enumerate() {
        *target = decode(&bytes[record * stride..][..width]);
    }
}

#[inline(always)]
fn decode(number: &[u8]) -> f64 {
    match *number {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => f64::NAN,
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (bytes, offset) = (&mut bytes[read..], offset + read as u64),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::release::error::Error;
    use crate::runtime::points::Points;
    use crate::runtime::pulse::Silent;
    use crate::statistics::Issued;
    use crate::statistics::gradient::Gradient;

    /// A file that is removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn of(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("dpmedian-{}-{name}", std::process::id()));
            File::create(&path).unwrap().write_all(bytes).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            drop(std::fs::remove_file(&self.0));
        }
    }

    fn column(offset: u64, stride: u64, double: bool) -> Column {
        Column { offset, stride, double }
    }

    fn loaded(file: &RecordFile, records: Range<usize>) -> Vec<f64> {
        let mut target = vec![-1.0; records.len() * file.d()];
        file.load(records, &mut target);
        target
    }

    #[test]
    fn records_are_found_wherever_they_lie() {
        // Three other bytes, six doubles, then the same six numbers as singles by column, with a gap.
        let mut bytes = vec![7; 3];
        (0..6).for_each(|x| bytes.extend(f64::from(x).to_le_bytes()));
        [0.0f32, 2.0, 4.0].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        bytes.push(9);
        [1.0f32, 3.0, 5.0].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        let scratch = Scratch::of("layouts", &bytes);
        let rows = || vec![column(3, 16, true), column(11, 16, true)];
        let turned = || vec![column(11, 16, true), column(3, 16, true)];
        let columns = || vec![column(51, 4, false), column(64, 4, false)];
        let open = |layout| RecordFile::new(File::open(&scratch.0).unwrap(), layout);
        let whole: Vec<f64> = (0..6).map(f64::from).collect();
        for layout in [rows(), columns()] {
            let file = open(vec![(3, layout)]).unwrap();
            assert_eq!((file.n(), file.d(), loaded(&file, 0..3)), (3, 2, whole.clone()));
            assert_eq!((loaded(&file, 1..2), loaded(&file, 2..2)), (vec![2.0, 3.0], vec![]));
            assert_eq!(file.check(), Ok(()));
        }
        assert_eq!(loaded(&open(vec![(3, turned())]).unwrap(), 1..3), [3.0, 2.0, 5.0, 4.0]);
        assert_eq!(loaded(&open(vec![(3, vec![column(11, 16, true)])]).unwrap(), 0..3), [1.0, 3.0, 5.0]);
        let pieces = open(vec![(2, rows()), (0, columns()), (3, columns())]).unwrap();
        assert_eq!(loaded(&pieces, 1..4), [2.0, 3.0, 0.0, 1.0, 2.0, 3.0]);
        assert!(open(vec![(4, columns())]).is_err() && open(vec![(1, rows()), (1, vec![rows()[0]])]).is_err());
    }

    #[test]
    fn a_file_that_shrinks_or_changes_is_an_error_and_loads_zeros() {
        let bytes: Vec<u8> = (0..1000).flat_map(|x| f64::from(x).to_le_bytes()).collect();
        let scratch = Scratch::of("shrinking", &bytes);
        let file = RecordFile::new(File::open(&scratch.0).unwrap(), vec![(1000, vec![column(0, 8, true)])]).unwrap();
        File::options().write(true).open(&scratch.0).unwrap().set_len(80).unwrap();
        assert_eq!(loaded(&file, 5..9), [5.0, 6.0, 7.0, 8.0]);
        assert!(file.check().unwrap_err().contains("changed"));
        assert_eq!(loaded(&file, 8..12), [0.0; 4]);
        assert!(file.check().unwrap_err().contains("cut off"));
    }

    #[test]
    fn no_answer_is_given_about_a_file_that_was_cut_off() {
        let bytes: Vec<u8> = (0..1000).flat_map(|x| f64::from(x).to_le_bytes()).collect();
        let scratch = Scratch::of("answers", &bytes);
        let layout = vec![(500, vec![column(0, 16, true), column(8, 16, true)])];
        let file = RecordFile::new(File::open(&scratch.0).unwrap(), layout).unwrap();
        let points = Points::admit(Arc::new(file), None, None, &mut Silent).unwrap();
        let query = Issued::new(Gradient::new(&[0.0; 2], 20).unwrap());
        assert!(query.answer(&points, &mut Silent).is_ok());
        File::options().write(true).open(&scratch.0).unwrap().set_len(4000).unwrap();
        assert!(matches!(query.answer(&points, &mut Silent), Err(Error::Unreadable(_))));
        assert!(query.answer(&points.gathered(&[3]), &mut Silent).is_ok(), "a copy does not need the file");
    }
}
