//! Exact integers that only the tape can open.
//!
//! The answer of a statistic knows its sensitivity. Outside this folder nothing reads its values: there is no accessor,
//! no comparison and no serialisation, and `Debug` shows the form and the length only.

use std::fmt;

use super::error::Error;
use super::sensitivity::Sensitivity;

/// Values are clamped to this magnitude when the tape opens them, so that noise can be added in 64 bits.
const LARGEST: i128 = 1 << 62;

/// What may be released of an exact answer, and what its sensitivity bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Released as a whole; the sensitivity is the L2 distance of the vectors.
    Vector,
    /// Every entry has the sensitivity on its own; one entry that was picked can be released.
    Table,
    /// Scores of candidates, of which an index is chosen; the sensitivity is the range: by how much the difference of two
    /// scores may move.
    Scores,
}

/// Exact integers with their sensitivity.
#[derive(Clone)]
pub struct Exact {
    /// Totals have 128 bits, so no number of records overflows them. They are rounded and clamped once, by the tape:
    /// rounded or clamped shards would depend on how the records were partitioned.
    values: Vec<i128>,
    /// Values are multiples of 2^-surplus lattice units, and the tape rounds them to whole ones.
    surplus: u32,
    sensitivity: Sensitivity,
    form: Form,
}

impl Exact {
    /// An answer that is released as a whole.
    pub(crate) fn vector(values: Vec<i128>, sensitivity: Sensitivity) -> Self {
        Self { values, surplus: 0, sensitivity, form: Form::Vector }
    }

    /// An answer that is released as a whole, with values in units of 2^-surplus of its lattice. The sensitivity is that of
    /// the rounded values: rounding moves the distance of two neighbours by at most 1 in every coordinate, so by at most
    /// the root of their number in all.
    pub(crate) fn rounded(values: Vec<i128>, surplus: u32, sensitivity: Sensitivity) -> Self {
        Self { surplus, ..Self::vector(values, sensitivity) }
    }

    /// An answer of which one entry is released.
    pub(crate) fn table(values: Vec<i128>, sensitivity: Sensitivity) -> Self {
        Self { values, surplus: 0, sensitivity, form: Form::Table }
    }

    /// An answer of which an index is released.
    pub(crate) fn scores(values: Vec<i128>, sensitivity: Sensitivity) -> Self {
        Self { values, surplus: 0, sensitivity, form: Form::Scores }
    }

    /// A caller's own integers with a sensitivity that the caller has proved, the same under both relations: a vector, or
    /// scores. For building blocks; everything else asks a statistic.
    pub fn stated(values: &[i64], sensitivity: f64, scores: bool) -> Self {
        let form = if scores { Form::Scores } else { Form::Vector };
        let values = values.iter().copied().map(i128::from).collect();
        Self { values, surplus: 0, sensitivity: Sensitivity::new(sensitivity, sensitivity), form }
    }

    /// A vector that does not depend on the data.
    pub fn public(values: &[i64]) -> Self {
        Self::stated(values, 0.0, false)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How far the values may move between neighbours.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// What may be released of it.
    pub fn form(&self) -> Form {
        self.form
    }

    /// One entry of a table or of a vector, as a vector of one: an entry moves by no more than its vector. One score has no
    /// sensitivity of its own.
    pub fn pick(&self, index: usize) -> Result<Self, Error> {
        match self.values.get(index) {
            _ if self.form == Form::Scores => Err(Error::Refused("a single score cannot be released".into())),
            None => Err(Error::Refused(format!("there is no entry {index} among {}", self.len()))),
            Some(&value) => Ok(Self::rounded(vec![value], self.surplus, self.sensitivity)),
        }
    }

    /// The answer of all shards together. A record is in one shard, so the sum moves as far as one of them.
    pub fn sum(shards: &[&Self]) -> Result<Self, Error> {
        let (first, others) =
            shards.split_first().ok_or_else(|| Error::Refused("there are no shards to sum".into()))?;
        let mut total = Self::clone(first);
        for shard in others {
            let alike = shard.form == first.form && shard.len() == first.len() && shard.surplus == first.surplus;
            if !(alike && shard.sensitivity == first.sensitivity) {
                return Err(Error::Refused(format!("{first:?} and {shard:?} are no shards of one answer")));
            }
            total.values.iter_mut().zip(&shard.values).for_each(|(total, x)| *total = total.saturating_add(*x));
        }
        Ok(total)
    }

    /// The values for the tape, rounded to the lattice and then clamped to 62 bits: a contraction, coordinate by coordinate,
    /// so every sensitivity holds on.
    pub(in crate::release) fn open(&self) -> Vec<i64> {
        // Half a unit, or nothing where the values are on the lattice.
        let half = 1i128 << self.surplus >> 1;
        let rounded = |value: i128| value.saturating_add(half) >> self.surplus;
        self.values.iter().map(|value| rounded(*value).clamp(-LARGEST, LARGEST) as i64).collect()
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exact({:?}, {})", self.form, self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensitivity() -> Sensitivity {
        Sensitivity::new(2.0, 1.0)
    }

    #[test]
    fn nothing_shows_the_values() {
        assert_eq!(format!("{:?}", Exact::table(vec![41, 42], sensitivity())), "Exact(Table, 2)");
    }

    #[test]
    fn an_entry_of_a_table_is_a_vector_and_a_score_is_not() {
        let picked = Exact::table(vec![41, 42], sensitivity()).pick(1).unwrap();
        assert_eq!((picked.form(), picked.sensitivity(), picked.open()), (Form::Vector, sensitivity(), vec![42]));
        assert!(Exact::table(vec![41, 42], sensitivity()).pick(2).is_err());
        assert!(Exact::scores(vec![41, 42], sensitivity()).pick(0).is_err());
    }

    #[test]
    fn only_shards_of_one_answer_add_up() {
        let shard = |values: &[i128]| Exact::vector(values.to_vec(), sensitivity());
        assert_eq!(Exact::sum(&[&shard(&[1, 2]), &shard(&[10, 20]), &shard(&[-3, 0])]).unwrap().open(), [8, 22]);
        assert!(Exact::sum(&[]).is_err());
        assert!(Exact::sum(&[&shard(&[1]), &shard(&[1, 2])]).is_err(), "another length");
        assert!(Exact::sum(&[&shard(&[1]), &Exact::table(vec![1], sensitivity())]).is_err(), "another form");
        assert!(Exact::sum(&[&shard(&[1]), &Exact::public(&[1])]).is_err(), "another sensitivity");
        assert!(Exact::sum(&[&shard(&[1]), &Exact::rounded(vec![1], 1, sensitivity())]).is_err(), "another unit");
    }

    #[test]
    fn values_are_rounded_after_the_shards_are_summed() {
        let shard = |values: &[i128]| Exact::rounded(values.to_vec(), 3, sensitivity());
        assert_eq!(shard(&[3, 4, 11, 12, -4, -5, -12, -13]).open(), [0, 1, 1, 2, 0, -1, -1, -2]);
        assert_eq!(Exact::sum(&[&shard(&[3]), &shard(&[3])]).unwrap().open(), [1]);
        assert_eq!((shard(&[3, 12]).pick(1).unwrap().open(), shard(&[i128::MAX]).open()), (vec![2], vec![1 << 62]));
    }

    #[test]
    fn values_are_clamped_after_the_shards_are_summed() {
        let shard = |value: i128| Exact::vector(vec![value], sensitivity());
        assert_eq!(shard(i128::MAX).open(), [1 << 62]);
        assert_eq!(Exact::sum(&[&shard(1 << 70), &shard(-(1 << 70) + 5)]).unwrap().open(), [5]);
    }
}
