//! Exact integers that only the tape can open.
//!
//! The answer of a statistic stores its sensitivity. Code outside of this folder cannot read the values of an answer:
//! there is no accessor, no comparison and no serialization, and `Debug` shows only the form and the length.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::error::Error;
use super::sensitivity::Sensitivity;
use crate::runtime::identity::{Identity, distinct};
use crate::statistics::parameters::Parameters;

/// The largest absolute value after clamping. The tape clamps the values that it opens, so that noise can be added in
/// 64 bits.
const LARGEST: i128 = 1 << 62;

/// The form of an exact answer, which says how the answer may be released and what its sensitivity bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A vector that is released as a whole. The sensitivity bounds the L2 distance of two vectors.
    Vector,
    /// A table, from which one entry can be picked and released. The sensitivity bounds the change of each single
    /// entry.
    Table,
    /// Scores of candidates. The index of one candidate is released. The sensitivity is the range, which is the largest
    /// change of the difference of two scores.
    Scores,
}

impl Form {
    /// An upper bound on how much the distance between the answers of two neighbors grows if this number of values is
    /// rounded to the lattice. The difference of two values changes by less than 1, and the difference of two
    /// differences of scores by less than 2.
    pub fn rounding(self, values: usize) -> f64 {
        match self {
            Self::Vector => (values as f64).sqrt().next_up(),
            Self::Table => 1.0,
            Self::Scores => 2.0,
        }
    }
}

/// The information with which an answer about some of the records can be added to answers about other records.
#[derive(Clone)]
pub(in crate::release) struct Shard {
    pub(in crate::release) question: Identity,
    /// The identities of the sets of records that the answer is about.
    pub(in crate::release) admissions: Vec<Identity>,
    /// Whether the records have weights, so that the sensitivity is [`Sensitivity::weighted`].
    pub(in crate::release) weighted: bool,
}

/// The query behind an answer: a statistic with public parameters, for the trace of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The name of the statistic.
    pub statistic: &'static str,
    /// The public parameters of the statistic.
    pub parameters: Parameters,
    /// The index of the entry that was picked from the answer, or `None` for the whole answer.
    pub entry: Option<usize>,
}

impl Query {
    /// A query for the whole answer.
    pub fn of(statistic: &'static str, parameters: Parameters) -> Self {
        Self { statistic, parameters, entry: None }
    }
}

/// The stored integers.
#[derive(Clone)]
enum Values {
    /// Totals with 128 bits, which cannot overflow for any number of records.
    Wide(Vec<i128>),
    /// Totals that fit 64 bits, which need half of the memory.
    Narrow(Vec<i64>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Wide(values) => values.len(),
            Self::Narrow(values) => values.len(),
        }
    }

    fn get(&self, index: usize) -> Option<i128> {
        match self {
            Self::Wide(values) => values.get(index).copied(),
            Self::Narrow(values) => values.get(index).copied().map(i128::from),
        }
    }

    fn iter(&self) -> impl Iterator<Item = i128> {
        let (wide, narrow): (&[i128], &[i64]) = match self {
            Self::Wide(values) => (values, &[]),
            Self::Narrow(values) => (&[], values),
        };
        wide.iter().copied().chain(narrow.iter().copied().map(i128::from))
    }
}

/// Exact integers and their sensitivity.
#[derive(Clone)]
pub struct Exact {
    /// The tape rounds and clamps the values once, after all shards are summed. If each shard were rounded or clamped,
    /// the result would depend on the partition of the records.
    values: Values,
    /// The values are multiples of 2^-surplus lattice units. The tape rounds them to whole units.
    surplus: u32,
    sensitivity: Sensitivity,
    form: Form,
    /// This is set only for whole answers of statistics that add over records. Other answers cannot be summed.
    shard: Option<Shard>,
    /// The query that these values answer, or `None` if a caller stated the values.
    query: Option<Arc<Query>>,
}

impl Exact {
    /// A vector that is released as a whole.
    pub(crate) fn vector(values: Vec<i128>, sensitivity: Sensitivity) -> Self {
        Self { values: Values::Wide(values), surplus: 0, sensitivity, form: Form::Vector, shard: None, query: None }
    }

    /// A vector that is released as a whole, with values of 64 bits.
    pub(crate) fn narrow(values: Vec<i64>, sensitivity: Sensitivity) -> Self {
        Self { values: Values::Narrow(values), ..Self::vector(Vec::new(), sensitivity) }
    }

    /// A vector that is released as a whole, with values in units of 2^-surplus of its lattice. The sensitivity must
    /// hold for the rounded values. Rounding changes the distance of two neighbors by at most 1 in every coordinate, so
    /// in total by at most the square root of the number of values.
    pub(crate) fn rounded(values: Vec<i128>, surplus: u32, sensitivity: Sensitivity) -> Self {
        Self { surplus, ..Self::vector(values, sensitivity) }
    }

    /// The answer as a sum over weighted records. Its units are 2^-bits times the units without weights.
    pub(crate) fn weighted(self, bits: u32) -> Self {
        let sensitivity = self.sensitivity.weighted(self.form.rounding(self.len()));
        Self { surplus: self.surplus + bits, sensitivity, ..self }
    }

    /// The answer about the records that hidden coins have kept, with the sensitivity of weighted records.
    pub(crate) fn thinned(self) -> Self {
        Self { sensitivity: self.sensitivity.weighted(0.0), ..self }
    }

    /// The answer with an infinite sensitivity. No tape releases such an answer.
    pub(crate) fn unbounded(self) -> Self {
        Self { sensitivity: Sensitivity::new(f64::INFINITY, f64::INFINITY), ..self }
    }

    /// A table, of which one entry is released.
    pub(crate) fn table(values: Vec<i128>, sensitivity: Sensitivity) -> Self {
        Self { form: Form::Table, ..Self::vector(values, sensitivity) }
    }

    /// Scores, of which an index is released.
    pub(crate) fn scores(values: Vec<i128>, sensitivity: Sensitivity) -> Self {
        Self { form: Form::Scores, ..Self::vector(values, sensitivity) }
    }

    /// The answer as a shard. The query must add over records, and `admissions` are the sets of records that the answer
    /// is about.
    pub(crate) fn into_shard(self, question: Identity, admissions: &[Identity]) -> Self {
        Self { shard: Some(Shard { question, admissions: admissions.to_vec(), weighted: false }), ..self }
    }

    /// The weighted sum as a shard. Its units are 2^-bits times the units without weights. Weighted sums can be shards
    /// because the weight of a record belongs to the record, which is in one shard only, and because the values are
    /// rounded to the lattice once, after all shards are summed.
    pub(crate) fn into_weighted_shard(self, bits: u32, question: Identity, admissions: &[Identity]) -> Self {
        let whole = self.weighted(bits);
        Self { shard: Some(Shard { question, admissions: admissions.to_vec(), weighted: true }), ..whole }
    }

    /// The answer together with its query.
    pub(crate) fn about(self, query: Query) -> Self {
        Self { query: Some(Arc::new(query)), ..self }
    }

    /// The query that these values answer, or `None` if a caller stated the values.
    pub(in crate::release) fn query(&self) -> Option<&Query> {
        self.query.as_deref()
    }

    /// A caller's own integers, as a vector or as scores. The caller has proved the sensitivity, which is the same
    /// under both relations. Such integers are never shards: a caller who sums them must prove the sensitivity of the
    /// sum. Only the building blocks use this function; all other code queries a statistic.
    pub fn stated(values: &[i64], sensitivity: f64, scores: bool) -> Self {
        let form = if scores { Form::Scores } else { Form::Vector };
        let values = values.iter().copied().map(i128::from).collect();
        Self { form, ..Self::vector(values, Sensitivity::new(sensitivity, sensitivity)) }
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
        self.len() == 0
    }

    /// The largest change of the values between neighbors.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// How the answer may be released.
    pub fn form(&self) -> Form {
        self.form
    }

    /// One entry of a table or of a vector, as a vector of length one. The change of an entry is at most the change of
    /// the whole vector. A single score cannot be picked, because its sensitivity is not known. Shards must be summed
    /// before an entry is picked, because entries cannot be summed: a sum could mix entries with different indices.
    pub fn pick(&self, index: usize) -> Result<Self, Error> {
        match self.values.get(index) {
            _ if self.form == Form::Scores => Err(Error::Refused("a single score cannot be released".into())),
            None => Err(Error::Refused(format!("there is no entry {index}: the answer has {} entries", self.len()))),
            Some(value) => {
                let query = self.query().map(|query| Arc::new(Query { entry: Some(index), ..query.clone() }));
                Ok(Self { query, ..Self::rounded(vec![value], self.surplus, self.sensitivity) })
            }
        }
    }

    /// The sum of the answers of all shards. A record is in one shard only, so it changes the sum by as much as the
    /// answer of its shard. Therefore all shards must answer the same query, the query must add over records, and no
    /// two shards may be about the same records.
    pub fn sum(shards: &[&Self]) -> Result<Self, Error> {
        let first = shards.first().ok_or_else(|| Error::Refused("there are no shards to sum".into()))?;
        let mut values = vec![0i128; first.len()];
        let (mut of, mut admissions) = (None, Vec::new());
        for exact in shards {
            let Some(shard) = &exact.shard else {
                let reason = "only whole answers of a statistic that adds over records can be summed";
                return Err(Error::Refused(format!("{exact:?} cannot be summed: {reason}")));
            };
            let alike = exact.form == first.form && exact.len() == first.len() && exact.surplus == first.surplus;
            let own = (shard.question, shard.weighted);
            let of_one = *of.get_or_insert(own) == own;
            if !(alike && of_one && exact.sensitivity == first.sensitivity) {
                return Err(Error::Refused(format!("{first:?} and {exact:?} do not answer the same query")));
            }
            admissions.extend_from_slice(&shard.admissions);
            values.iter_mut().zip(exact.values.iter()).for_each(|(total, x)| *total = total.saturating_add(x));
        }
        let admissions = distinct(admissions)
            .ok_or_else(|| Error::Refused("these answers cannot be summed: they have records in common".into()))?;
        let shard = of.map(|(question, weighted)| Shard { question, admissions, weighted });
        let values = Values::Wide(values);
        let (surplus, sensitivity, form) = (first.surplus, first.sensitivity, first.form);
        Ok(Self { values, shard, surplus, sensitivity, form, query: first.query.clone() })
    }

    /// The shard information, for a [`Message`].
    ///
    /// [`Message`]: super::message::Message
    pub(in crate::release) fn shard_of(&self) -> Result<&Shard, Error> {
        let reason =
            || Error::Refused(format!("{self:?} cannot be sent to another process, because it cannot be summed"));
        self.shard.as_ref().ok_or_else(reason)
    }

    /// The number s such that the values are multiples of 2^-s.
    pub(in crate::release) fn surplus(&self) -> u32 {
        self.surplus
    }

    /// The values as pairs of 64-bit halves, for a message.
    pub(in crate::release) fn halves(&self) -> impl Iterator<Item = u64> {
        self.values.iter().flat_map(|value| [value as u64, (value >> 64) as u64])
    }

    /// A shard with these halves. Its sensitivity is computed from the query that it answers, and from whether the
    /// records have weights.
    pub(in crate::release) fn from_halves(
        halves: &[u64],
        surplus: u32,
        sensitivity: Sensitivity,
        form: Form,
        shard: Shard,
    ) -> Self {
        let value = |[low, high]: &[u64; 2]| (i128::from(high.cast_signed()) << 64) | i128::from(*low);
        let values: Vec<i128> = halves.as_chunks::<2>().0.iter().map(value).collect();
        let rounding = form.rounding(values.len());
        let sensitivity = if shard.weighted { sensitivity.weighted(rounding) } else { sensitivity };
        Self {
            values: Values::Wide(values),
            surplus: surplus.min(126),
            sensitivity,
            form,
            shard: Some(shard),
            query: None,
        }
    }

    /// The values for the tape, rounded to the lattice and then clamped to 62 bits.
    ///
    /// Clamping is a contraction in every coordinate, so the sensitivities of vectors and of entries of a table still
    /// hold. For scores this is not enough: if all scores s_i move together, clamping could stop one score and not
    /// another, and so change their difference. Therefore the tape takes the difference t_i = s_i - min s from the
    /// smallest score, and caps t_i.
    ///
    /// *Claim.* The capped t_i have the same range. *Proof.* Let R be the range, so no difference of two scores moves
    /// by more than R. Because t_i = max over j of (s_i - s_j), t_i moves by some a with |a| <= R, and t_j by some b
    /// with |b| <= R. The difference a - b is the change of t_i - t_j = s_i - s_j, so |a - b| <= R. The cap is monotone
    /// and a contraction, so it keeps the signs of the changes and shortens them to a' and b'. If a and b have the same
    /// sign, |a' - b'| <= max(|a'|, |b'|) <= R. Otherwise |a' - b'| = |a'| + |b'| <= |a| + |b| = |a - b| <= R. ∎
    ///
    /// A choice depends on differences of scores only. Without the cap, t has the same differences as s.
    pub(in crate::release) fn open(&self) -> Vec<i64> {
        // Half a unit, or 0 if the values are already on the lattice.
        let half = 1i128 << self.surplus >> 1;
        let rounded = |value: i128| value.saturating_add(half) >> self.surplus;
        let origin = match self.form {
            Form::Scores => self.values.iter().map(rounded).min().unwrap_or(0),
            Form::Vector | Form::Table => 0,
        };
        // A difference that saturates 128 bits also exceeds the clamp.
        let clamped = |value: i128| rounded(value).saturating_sub(origin).clamp(-LARGEST, LARGEST) as i64;
        self.values.iter().map(clamped).collect()
    }

    /// The same values as [`Self::open`] returns. A vector that needs neither rounding nor clamping is not copied.
    pub(in crate::release) fn opened(&self) -> Cow<'_, [i64]> {
        let within = |value: &i64| (-LARGEST..=LARGEST).contains(&i128::from(*value));
        match &self.values {
            Values::Narrow(values) if self.form == Form::Vector && self.surplus == 0 && values.iter().all(within) => {
                Cow::Borrowed(values)
            }
            _ => Cow::Owned(self.open()),
        }
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exact({:?}, {})", self.form, self.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// Answers to one query, each about different records.
    fn shards<const N: usize>(answers: [Exact; N]) -> [Exact; N] {
        let question = Identity::fresh();
        answers.map(|exact| exact.into_shard(question, &[Identity::fresh()]))
    }

    #[test]
    fn values_of_64_bits_are_opened_as_those_of_128() {
        for values in [vec![], vec![3, -4, 1 << 62, -(1 << 62)], vec![5, i64::MAX], vec![i64::MIN, 0]] {
            let wide = Exact::vector(values.iter().copied().map(i128::from).collect(), sensitivity());
            let narrow = Exact::narrow(values, sensitivity());
            assert_eq!((narrow.opened().to_vec(), narrow.len()), (wide.open(), wide.len()));
            assert_eq!((narrow.open(), wide.opened().to_vec()), (wide.open(), wide.open()));
            let halved = |exact: &Exact| Exact { surplus: 1, ..exact.clone() }.opened().to_vec();
            assert_eq!(halved(&narrow), halved(&wide));
        }
    }

    fn sum<const N: usize>(shards: &[Exact; N]) -> Result<Exact, Error> {
        Exact::sum(&shards.each_ref())
    }

    #[test]
    fn only_shards_of_one_answer_add_up() {
        let vector = |values: &[i128]| Exact::vector(values.to_vec(), sensitivity());
        let summed = sum(&shards([vector(&[1, 2]), vector(&[10, 20]), vector(&[-3, 0])])).unwrap();
        assert_eq!((summed.open(), summed.sensitivity(), summed.form()), (vec![8, 22], sensitivity(), Form::Vector));
        assert!(Exact::sum(&[]).is_err());
        assert!(sum(&shards([vector(&[1]), vector(&[1, 2])])).is_err(), "another length");
        assert!(sum(&shards([vector(&[1]), Exact::table(vec![1], sensitivity())])).is_err(), "another form");
        assert!(sum(&shards([vector(&[1]), Exact::public(&[1])])).is_err(), "another sensitivity");
        assert!(sum(&shards([vector(&[1]), Exact::rounded(vec![1], 1, sensitivity())])).is_err(), "another unit");
    }

    #[test]
    fn answers_to_two_questions_do_not_add_up() {
        let [a, b] = shards([1, 2].map(|x| Exact::vector(vec![x], sensitivity())));
        let [other] = shards([Exact::vector(vec![3], sensitivity())]);
        assert!(Exact::sum(&[&a, &b]).is_ok() && Exact::sum(&[&other]).is_ok());
        assert!(Exact::sum(&[&a, &other]).is_err() && Exact::sum(&[&a, &b, &other]).is_err());
    }

    #[test]
    fn no_records_count_twice() {
        let [a, b, c] = shards([1, 2, 3].map(|x| Exact::vector(vec![x], sensitivity())));
        assert!(Exact::sum(&[&a, &a]).is_err() && Exact::sum(&[&a; 1000]).is_err());
        assert!(Exact::sum(&[&a, &b, &a.clone()]).is_err());
        let some = Exact::sum(&[&a, &b]).unwrap();
        assert!(Exact::sum(&[&some, &b]).is_err() && Exact::sum(&[&some, &some]).is_err());
        assert_eq!(Exact::sum(&[&some, &c]).unwrap().open(), [6]);
    }

    #[test]
    fn what_is_no_shard_has_no_sum() {
        let table = || Exact::table(vec![1, 2], sensitivity());
        assert!(Exact::sum(&[&table(), &table()]).is_err(), "a statistic that does not add over records");
        let stated = Exact::stated(&[1], 2.0, false);
        assert!(Exact::sum(&[&stated, &stated]).is_err());
        assert!(Exact::sum(&[&stated, &Exact::stated(&[1], 2.0, false)]).is_err());
        let [a, b] = shards([table(), table()]);
        assert!(Exact::sum(&[&a.pick(0).unwrap(), &b.pick(1).unwrap()]).is_err(), "entries cannot be summed");
        assert_eq!(Exact::sum(&[&a, &b]).unwrap().pick(1).unwrap().open(), [4]);
    }

    #[test]
    fn values_are_rounded_after_the_shards_are_summed() {
        let rounded = |values: &[i128]| Exact::rounded(values.to_vec(), 3, sensitivity());
        assert_eq!(rounded(&[3, 4, 11, 12, -4, -5, -12, -13]).open(), [0, 1, 1, 2, 0, -1, -1, -2]);
        assert_eq!(sum(&shards([rounded(&[3]), rounded(&[3])])).unwrap().open(), [1]);
        assert_eq!((rounded(&[3, 12]).pick(1).unwrap().open(), rounded(&[i128::MAX]).open()), (vec![2], vec![1 << 62]));
    }

    #[test]
    fn values_are_clamped_after_the_shards_are_summed() {
        let vector = |value: i128| Exact::vector(vec![value], sensitivity());
        assert_eq!(vector(i128::MAX).open(), [1 << 62]);
        assert_eq!(sum(&shards([vector(1 << 70), vector(-(1 << 70) + 5)])).unwrap().open(), [5]);
    }

    #[test]
    fn scores_are_counted_from_the_smallest_before_they_are_clamped() {
        let open = |values: &[i128]| Exact::scores(values.to_vec(), sensitivity()).open();
        assert_eq!(open(&[7, -3, 1 << 70, 0]), [10, 0, 1 << 62, 3]);
        assert_eq!(open(&[i128::MIN, i128::MAX, i128::MIN + 1]), [0, 1 << 62, 1]);
        assert_eq!((open(&[]), open(&[-(1 << 80)])), (vec![], vec![0]));
    }

    proptest! {
        /// Takes scores near the limits of 62 bits. All of them move together by any amount, and relative to each other
        /// by at most the range.
        #[test]
        fn opened_scores_keep_their_range(
            near in prop::collection::vec((prop::sample::select(vec![-2i128, -1, 0, 1, 2]), -9i128..10, 0i128..9), 1..6),
            together in prop_oneof![-9i128..10, Just(1i128 << 62), Just(-(1i128 << 62))],
        ) {
            let scores = |f: &dyn Fn(i128) -> i128| {
                let values = near.iter().map(|(end, rest, moved)| (end << 61) + rest + f(*moved)).collect();
                Exact::scores(values, sensitivity()).open()
            };
            let range = near.iter().map(|x| x.2).max().unwrap() - near.iter().map(|x| x.2).min().unwrap();
            let (before, after) = (scores(&|_| 0), scores(&|moved| moved + together));
            let moves: Vec<i128> = before.iter().zip(&after).map(|(a, b)| i128::from(*b) - i128::from(*a)).collect();
            prop_assert!(moves.iter().max().unwrap() - moves.iter().min().unwrap() <= range, "{moves:?} {range}");
        }
    }
}
