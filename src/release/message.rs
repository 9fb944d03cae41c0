//! Messages with exact answers, queries or records between the processes of one run. Both processes see opaque values.
//!
//! If a data set lies in several processes, its sums and sampled records must be brought together in one of them. A
//! [`Message`] carries them from one process to another. A program, a log or a traceback cannot show the content of a
//! message. The bytes of a message, however, are not encrypted. If the network between the machines is not trusted, the
//! connection must be encrypted. All processes are inside the trust boundary, and messages do not authenticate them.
//!
//! A message contains the identities of the query and of the records. So the receiving process, too, refuses to sum
//! answers to different queries or about the same records. The receiver computes the sensitivity of an answer from its
//! own copy of the query.

use std::fmt;

use super::error::Error;
use super::exact::{Exact, Form, Query, Shard};
use super::sample;
use super::streams::Stream;
use crate::runtime::identity::{Identity, distinct};
use crate::runtime::points::{Points, Repeated};
use crate::runtime::weighting::WHOLE_WEIGHT;
use crate::statistics::parameters::Arguments;
use crate::statistics::parameters::{Parameters, Value};
use crate::statistics::{self, Issued};

/// The first word of every message of this crate.
const MARK: u64 = 0x6470_6d65_6469_616e;

/// The content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Query,
    Answer,
    Records,
    Places,
}

/// A message from one process of a run to another.
#[derive(Clone)]
pub struct Message(Vec<u8>);

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({} bytes)", self.0.len())
    }
}

impl Message {
    /// A message that came from another process.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The unencrypted bytes, only for the connection to another process of the run.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A message with a query, for other processes.
    pub fn query(query: &Issued) -> Result<Self, Error> {
        if !query.adds_over_records() {
            return Err(Error::Refused(format!("{} cannot be answered by another process", query.name())));
        }
        let parameters = query.parameters();
        let mut writing = Writing::new(Kind::Query);
        writing.identities(&[query.identity()]);
        writing.bytes(query.name().as_bytes());
        writing.number(parameters.iter().len() as u64);
        for (name, value) in parameters.iter() {
            writing.bytes(name.as_bytes());
            writing.value(value);
        }
        Ok(writing.done())
    }

    /// The query in a message.
    pub fn queried(&self) -> Result<Issued, Error> {
        let mut reading = self.read(Kind::Query)?;
        let identity = reading.identities()?.first().copied().ok_or_else(broken)?;
        let name = String::from_utf8(reading.bytes()?).map_err(|_| broken())?;
        let mut parameters = Vec::new();
        for _ in 0..reading.number()? {
            parameters.push((String::from_utf8(reading.bytes()?).map_err(|_| broken())?, reading.value()?));
        }
        // Hidden randomness is never sent to another process, so a query that needs it cannot be read.
        let query = statistics::read(&name, Arguments::new(Parameters::named(parameters), None));
        query.map(|query| query.identified(identity)).map_err(|bad| Error::Refused(bad.0))
    }

    /// A message with an answer, for the process that created the query. The answer must be a shard.
    pub fn answer(exact: &Exact) -> Result<Self, Error> {
        let shard = exact.shard_of()?;
        let mut writing = Writing::new(Kind::Answer);
        writing.identities(&[shard.question]);
        writing.identities(&shard.admissions);
        let facts = [u64::from(exact.surplus()), exact.form() as u64, u64::from(shard.weighted)];
        writing.numbers(facts.len(), facts.into_iter());
        writing.numbers(2 * exact.len(), exact.halves());
        Ok(writing.done())
    }

    /// The answer of another process to a query of this process.
    pub fn answered(&self, query: &Issued) -> Result<Exact, Error> {
        let mut reading = self.read(Kind::Answer)?;
        let about = reading.identities()?;
        let admissions = reading.identities()?;
        let facts = reading.numbers()?;
        let halves = reading.numbers()?;
        if about != [query.identity()] {
            return Err(Error::Refused("this message answers another query".into()));
        }
        let (&[surplus, form, weighted @ (0 | 1)], true) = (facts.as_slice(), halves.len().is_multiple_of(2)) else {
            return Err(broken());
        };
        let form = [Form::Vector, Form::Table, Form::Scores].into_iter().find(|known| *known as u64 == form);
        let (form, surplus) = (form.ok_or_else(broken)?, u32::try_from(surplus).map_err(|_| broken())?);
        let shard = Shard { question: query.identity(), admissions, weighted: weighted == 1 };
        let exact = Exact::from_halves(&halves, surplus, query.sensitivity(), form, shard);
        Ok(exact.about(Query::of(query.name(), query.parameters())))
    }

    /// A message with records in the order of their rows, and with their weights if they have weights, for the process
    /// that collects them.
    pub fn records(points: &Points<'_>) -> Result<Self, Error> {
        let weights = points.weighting().map(|weighting| weighting.weights().to_vec());
        let rows = match &weights {
            None => points.borrowed(),
            Some(weights) => points.unweighted(&(0..weights.len()).collect::<Vec<_>>()),
        };
        let dense = rows.dense();
        points.check().map_err(Error::Unreadable)?;
        let mut writing = Writing::new(Kind::Records);
        writing.identities(points.admissions());
        writing.numbers(2, [points.d() as u64, u64::from(weights.is_some())].into_iter());
        writing.numbers(dense.view().len(), dense.view().iter().map(|x| x.to_bits()));
        let weights = weights.unwrap_or_default();
        writing.numbers(weights.len(), weights.iter().map(|&weight| u64::from(weight)));
        Ok(writing.done())
    }

    /// The records of several messages, one after the other. Messages that may contain the same records are refused.
    pub fn gathered(messages: &[Self]) -> Result<Points<'static>, Error> {
        let (mut shape, mut coordinates) = (None, Vec::new());
        let (mut admissions, mut weights) = (Vec::new(), Vec::new());
        for message in messages {
            let mut reading = message.read(Kind::Records)?;
            admissions.extend(reading.identities()?);
            let facts = reading.numbers()?;
            if *shape.get_or_insert_with(|| facts.clone()) != facts {
                return Err(Error::Refused("records with and without weights cannot be in one data set".into()));
            }
            coordinates.extend(reading.numbers()?.into_iter().map(f64::from_bits));
            for weight in reading.numbers()? {
                weights.push(u32::try_from(weight).map_err(|_| broken())?);
            }
        }
        let admissions = distinct(admissions).ok_or_else(|| Error::Refused(Repeated.to_string()))?;
        let Some([d, weighted @ (0 | 1)]) = shape.as_deref() else { return Err(broken()) };
        let whole = Points::of_admissions(coordinates, *d as usize, admissions).ok_or_else(broken)?;
        if *weighted == 0 {
            return Ok(whole);
        }
        let fit = weights.len() == whole.n() && weights.iter().all(|&weight| weight <= WHOLE_WEIGHT);
        if fit { Ok(whole.weighted(weights)) } else { Err(broken()) }
    }

    /// One message for each shard, with the hidden positions in this shard of a uniform sample of min(m, n) records
    /// from all shards. The shards have these sizes.
    pub fn uniform_places(stream: Stream, sizes: &[usize], m: usize) -> Result<Vec<Self>, Error> {
        Ok(Self::divided(&sample::uniform_places_of(stream, sizes.iter().sum(), m)?, sizes))
    }

    /// One message for each shard, with the hidden positions in this shard of a sample that independent coins choose.
    pub fn coin_places(stream: Stream, sizes: &[usize], probability: (u64, u32)) -> Result<Vec<Self>, Error> {
        Ok(Self::divided(&sample::coin_places_of(stream, sizes.iter().sum(), probability)?, sizes))
    }

    fn divided(places: &[usize], sizes: &[usize]) -> Vec<Self> {
        let (mut first, mut rest) = (0, places);
        let one = |size: &usize| {
            let (here, behind) = rest.split_at(rest.partition_point(|place| *place < first + size));
            let mut writing = Writing::new(Kind::Places);
            writing.numbers(here.len(), here.iter().map(|place| (place - first) as u64));
            (first, rest) = (first + size, behind);
            writing.done()
        };
        sizes.iter().map(one).collect()
    }

    /// The records of a shard at positions that another process chose.
    pub fn sampled(&self, points: &Points<'_>) -> Result<Points<'static>, Error> {
        let places: Vec<usize> = self.read(Kind::Places)?.numbers()?.into_iter().map(|place| place as usize).collect();
        if places.iter().any(|place| *place >= points.n()) {
            return Err(broken());
        }
        sample::gathered(points, &places)
    }

    fn read(&self, kind: Kind) -> Result<Reading<'_>, Error> {
        let mut reading = Reading { bytes: &self.0, next: 0 };
        let found = [reading.number()?, reading.number()?];
        if found == [MARK, kind as u64] { Ok(reading) } else { Err(broken()) }
    }
}

fn broken() -> Error {
    Error::Refused("this is not a message of the expected kind".into())
}

/// A message that is being written.
struct Writing(Vec<u8>);

impl Writing {
    fn new(kind: Kind) -> Self {
        let mut writing = Self(Vec::new());
        writing.number(MARK);
        writing.number(kind as u64);
        writing
    }

    fn done(self) -> Message {
        Message(self.0)
    }

    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn numbers(&mut self, count: usize, numbers: impl Iterator<Item = u64>) {
        self.0.reserve(8 * (count + 1));
        self.number(count as u64);
        numbers.for_each(|number| self.number(number));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn value(&mut self, value: &Value) {
        let (kind, numbers): (u64, Vec<u64>) = match value {
            Value::Float(value) => (0, vec![value.to_bits()]),
            Value::Floats(values) => (1, values.iter().map(|x| x.to_bits()).collect()),
            Value::Singles(values) => (2, values.iter().map(|x| x.to_bits().into()).collect()),
            Value::Number(value) => (3, vec![*value]),
            Value::Numbers(values) => (4, values.clone()),
        };
        self.number(kind);
        self.numbers(numbers.len(), numbers.into_iter());
    }

    fn identities(&mut self, identities: &[Identity]) {
        self.numbers(2 * identities.len(), identities.iter().flat_map(|identity| identity.numbers()));
    }
}

/// A message that is being read.
struct Reading<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl Reading<'_> {
    fn number(&mut self) -> Result<u64, Error> {
        let number = self.bytes.get(self.next..).and_then(|rest| rest.first_chunk::<8>()).ok_or_else(broken)?;
        self.next += 8;
        Ok(u64::from_le_bytes(*number))
    }

    fn taken(&mut self, bytes: Option<usize>) -> Result<&[u8], Error> {
        let end = bytes.and_then(|bytes| bytes.checked_add(self.next)).ok_or_else(broken)?;
        let taken = self.bytes.get(self.next..end).ok_or_else(broken)?;
        self.next = end;
        Ok(taken)
    }

    fn numbers(&mut self) -> Result<Vec<u64>, Error> {
        let count = self.number()? as usize;
        let taken = self.taken(count.checked_mul(8))?;
        Ok(taken.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number)).collect())
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let count = self.number()? as usize;
        Ok(self.taken(Some(count))?.to_vec())
    }

    fn value(&mut self) -> Result<Value, Error> {
        let (kind, numbers) = (self.number()?, self.numbers()?);
        Ok(match (kind, numbers.as_slice()) {
            (0, [value]) => Value::Float(f64::from_bits(*value)),
            (1, values) => Value::Floats(values.iter().copied().map(f64::from_bits).collect()),
            (2, values) => Value::Singles(values.iter().map(|bits| f32::from_bits(*bits as u32)).collect()),
            (3, [value]) => Value::Number(*value),
            (4, values) => Value::Numbers(values.to_vec()),
            _ => return Err(broken()),
        })
    }

    fn identities(&mut self) -> Result<Vec<Identity>, Error> {
        let numbers = self.numbers()?;
        Ok(numbers.as_chunks::<2>().0.iter().map(|pair| Identity::from_numbers(*pair)).collect())
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::release::sample::Coins;
    use crate::release::sensitivity::Neighbours;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, Tape};
    use crate::runtime::pulse::Silent;
    use crate::statistics::gradient::Gradient;
    use crate::statistics::tests::{opened, statistics};

    fn points(n: usize) -> Points<'static> {
        let matrix = DMatrix::from_fn(3, n, |i, j| ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0);
        Points::admit(matrix, None, None, &mut Silent).unwrap()
    }

    fn stream() -> Stream {
        Draw::new(Streams::from_key([7; 32]), Neighbours::Replace).hidden()
    }

    /// A data set in two shards, and as a whole, without weights or with weights that are rounded by the same coins.
    fn shards_and_whole(weighted: bool) -> ([Points<'static>; 2], Points<'static>) {
        let shards = [points(200), points(100)];
        let whole = Points::concatenate(&shards.each_ref()).unwrap();
        if !weighted {
            return (shards, whole);
        }
        let coins = Coins::of(stream());
        let weights: Vec<u32> = (0..300).map(|i| (i * 7919) % (WHOLE_WEIGHT + 1)).collect();
        let with = |points: &Points<'_>, rows: std::ops::Range<usize>| {
            sample::weighted(points, &coins, rows.start, &weights[rows]).unwrap()
        };
        ([with(&shards[0], 0..200), with(&shards[1], 200..300)], with(&whole, 0..300))
    }

    fn sent(message: Result<Message, Error>) -> Message {
        Message::from_bytes(message.unwrap().bytes().to_vec())
    }

    #[test]
    fn a_query_that_was_away_is_the_same_and_so_is_its_answer() {
        for weighted in [false, true] {
            let ([here, there], whole) = shards_and_whole(weighted);
            for query in statistics(&[1.0, -2.0, 3.5], 2.0, 200).iter().filter(|query| query.adds_over_records()) {
                let again = sent(Message::query(query)).queried().unwrap();
                assert_eq!((again.name(), again.identity()), (query.name(), query.identity()));
                assert_eq!(again.sensitivity(), query.sensitivity());
                let local = query.answer(&here, &mut Silent).unwrap();
                let away = again.answer(&there, &mut Silent).unwrap();
                let returned = sent(Message::answer(&away)).answered(query).unwrap();
                assert_eq!(returned.sensitivity(), away.sensitivity(), "{}", again.name());
                assert_eq!(opened(&returned), opened(&away), "{}", again.name());
                let sum = Exact::sum(&[&local, &returned]).unwrap();
                let expected = query.answer(&whole, &mut Silent).unwrap();
                assert_eq!(sum.sensitivity(), expected.sensitivity(), "{}", again.name());
                assert_eq!(opened(&sum), opened(&expected), "{}", again.name());
                assert!(Exact::sum(&[&sum, &returned]).is_err(), "the same records are recognized after a transfer");
            }
        }
    }

    #[test]
    fn sums_with_and_without_weights_do_not_add_up() {
        let query = Issued::new(Gradient::new(&[0.0; 3], 20).unwrap());
        let ([weighted, _], _) = shards_and_whole(true);
        let answers = [weighted, points(5)].map(|points| query.answer(&points, &mut Silent).unwrap());
        assert!(Exact::sum(&answers.each_ref()).is_err());
        assert!(answers[0].sensitivity() != answers[1].sensitivity());
    }

    #[test]
    fn an_answer_to_another_query_is_refused() {
        let [asked, other] = [0.0, 1.0].map(|x| Issued::new(Gradient::new(&[x; 3], 20).unwrap()));
        let answer = other.answer(&points(10), &mut Silent).unwrap();
        let message = Message::answer(&answer).unwrap();
        assert!(message.answered(&asked).is_err());
        assert!(message.answered(&other).is_ok());
        assert!(Message::answer(&answer.pick(0).unwrap()).is_err(), "an entry is not a shard");
    }

    #[test]
    fn what_is_no_such_message_is_refused() {
        let records = Message::records(&points(5)).unwrap();
        assert!(records.queried().is_err() && Message::gathered(std::slice::from_ref(&records)).is_ok());
        let bytes = records.bytes();
        for end in [0, 7, 8, 16, 40, bytes.len() - 1] {
            assert!(Message::gathered(&[Message::from_bytes(bytes[..end].to_vec())]).is_err(), "{end}");
        }
        assert!(Message::gathered(&[]).is_err());
        assert!(Message::gathered(&[records.clone(), records]).is_err(), "the same records twice");
        let ([weighted, _], _) = shards_and_whole(true);
        let mixed = [Message::records(&weighted).unwrap(), Message::records(&points(3)).unwrap()];
        assert!(Message::gathered(&mixed).is_err());
    }

    #[test]
    fn a_message_shows_its_size_only() {
        assert_eq!(format!("{:?}", Message::records(&points(1)).unwrap()), "Message(104 bytes)");
    }

    #[test]
    fn a_sample_of_shards_is_that_of_the_whole() {
        for weighted in [false, true] {
            let (shards, whole) = shards_and_whole(weighted);
            let sizes = shards.each_ref().map(Points::n);
            let places =
                [Message::uniform_places(stream(), &sizes, 31), Message::coin_places(stream(), &sizes, (1, 2))];
            let expected = [sample::uniform(&whole, stream(), 31), sample::by_coins(&whole, stream(), (1, 2))];
            for (places, expected) in places.into_iter().zip(expected) {
                let gather =
                    |(shard, places): (&Points<'_>, Message)| sent(Message::records(&places.sampled(shard).unwrap()));
                let parts: Vec<Message> = shards.iter().zip(places.unwrap()).map(gather).collect();
                let (sample, expected) = (Message::gathered(&parts).unwrap(), expected.unwrap());
                assert_eq!(sample.dense().view(), expected.dense().view());
                let weights = |points: &Points<'_>| points.weighting().map(|found| found.weights().to_vec());
                assert_eq!(weights(&sample), weights(&expected));
                assert_eq!(sample.admissions(), whole.admissions(), "samples keep the identities of their records");
            }
        }
    }
}
