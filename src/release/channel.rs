//! Exact answers, queries and records between the processes of one run: ciphertext on the way, opaque at both ends.
//!
//! Sums and sampled records of a data set that lies in several processes have to meet in one of them. What leaves a process
//! is enciphered (ChaCha20, a fresh nonce for every message) with a key that the processes of a run share, so that no log,
//! no spilled task and no network between them holds a number of the data in plain; what arrives is as opaque as before.
//! Whoever has the key is one of these processes: they are inside the trust boundary, and messages are not authenticated.
//!
//! Identities come along, so that answers to two queries, or about the same records, are not summed here either; and an
//! answer is taken with the sensitivity of the query that was asked, which was never away.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::error::Error;
use super::exact::{Exact, Form, Query};
use super::sample;
use super::streams::Stream;
use crate::runtime::identity::Identity;
use crate::runtime::points::Points;
use crate::statistics::Statistic;
use crate::statistics::wire::{self, Parameters};

/// What a message begins with in plain: other bytes come of another key.
const SEAL: u64 = 0x6470_6d65_6469_616e;

/// The key that the processes of one run share.
#[derive(Clone)]
pub struct Channel {
    key: [u8; 32],
}

impl Channel {
    /// A fresh key from the operating system.
    pub fn from_system() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self { key })
    }

    /// The key of another process of the run.
    pub fn from_key(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The key, for another process of the run.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// A query, for other processes.
    pub fn ask(&self, question: &dyn Statistic) -> Result<Vec<u8>, Error> {
        if !question.adds_over_records() {
            return Err(Error::Refused(format!("{} cannot be asked of records elsewhere", question.name())));
        }
        let Parameters { floats, numbers } = question.parameters();
        let mut message = Message::default();
        message.identities(&[question.identity()]);
        message.bytes(question.name().as_bytes());
        message.numbers(floats.len(), floats.iter().map(|x| x.to_bits()));
        message.numbers(numbers.len(), numbers.into_iter());
        self.seal(message)
    }

    /// The query that another process asks.
    pub fn asked(&self, message: &[u8]) -> Result<Box<dyn Statistic>, Error> {
        let mut message = self.open(message)?;
        let identity = message.take_identities()?.first().copied().ok_or_else(broken)?;
        let name = String::from_utf8(message.take_bytes()?).map_err(|_| broken())?;
        let floats = message.take_numbers()?.into_iter().map(f64::from_bits).collect();
        let numbers = message.take_numbers()?;
        wire::read(&name, &Parameters { floats, numbers }, identity).map_err(|bad| Error::Refused(bad.0))
    }

    /// An answer that is a shard, for the process that asked.
    pub fn answer(&self, exact: &Exact) -> Result<Vec<u8>, Error> {
        let (question, admissions, surplus) = exact.shard_of()?;
        let mut message = Message::default();
        message.identities(&[question]);
        message.identities(admissions);
        message.numbers(2, [u64::from(surplus), exact.form() as u64].into_iter());
        message.numbers(2 * exact.len(), exact.halves());
        self.seal(message)
    }

    /// The answer of another process to a query of this one.
    pub fn answered(&self, message: &[u8], question: &dyn Statistic) -> Result<Exact, Error> {
        let mut message = self.open(message)?;
        let about = message.take_identities()?;
        let admissions = message.take_identities()?;
        let units = message.take_numbers()?;
        let halves = message.take_numbers()?;
        if about != [question.identity()] {
            return Err(Error::Refused("this answers another question than the one that was asked".into()));
        }
        let (&[surplus, form], true) = (units.as_slice(), halves.len().is_multiple_of(2)) else { return Err(broken()) };
        let form = [Form::Vector, Form::Table, Form::Scores].into_iter().find(|known| *known as u64 == form);
        let (form, surplus) = (form.ok_or_else(broken)?, u32::try_from(surplus).map_err(|_| broken())?);
        let exact =
            Exact::from_halves(&halves, surplus, question.sensitivity(), form, question.identity(), &admissions);
        Ok(exact.about(Query::of(question.name(), question.parameters())))
    }

    /// Records, for the process that gathers them: those with weights stay where these are.
    pub fn records(&self, points: &Points<'_>) -> Result<Vec<u8>, Error> {
        if points.weighting().is_some() {
            return Err(Error::Refused(
                "records that have weights are sent nowhere: their weights would be lost".into(),
            ));
        }
        let dense = points.dense();
        points.check().map_err(Error::Unreadable)?;
        let mut message = Message::default();
        message.identities(points.admissions());
        message.numbers(1, [points.d() as u64].into_iter());
        message.numbers(dense.view().len(), dense.view().iter().map(|x| x.to_bits()));
        self.seal(message)
    }

    /// The records of another process.
    pub fn gathered(&self, message: &[u8]) -> Result<Points<'static>, Error> {
        let mut message = self.open(message)?;
        let admissions = message.take_identities()?;
        let d = message.take_numbers()?.first().copied().ok_or_else(broken)? as usize;
        let coordinates = message.take_numbers()?.into_iter().map(f64::from_bits).collect();
        Points::of_admissions(coordinates, d, admissions).ok_or_else(broken)
    }

    /// Hidden places of min(m, n) of the records of several shards with these sizes, one message for each shard.
    pub fn uniform_places(&self, stream: Stream, sizes: &[usize], m: usize) -> Result<Vec<Vec<u8>>, Error> {
        self.divided(&sample::uniform_places_of(stream, sizes.iter().sum(), m)?, sizes)
    }

    /// Hidden places by coins.
    pub fn coin_places(&self, stream: Stream, sizes: &[usize], probability: (u64, u32)) -> Result<Vec<Vec<u8>>, Error> {
        self.divided(&sample::coin_places_of(stream, sizes.iter().sum(), probability)?, sizes)
    }

    fn divided(&self, places: &[usize], sizes: &[usize]) -> Result<Vec<Vec<u8>>, Error> {
        let (mut first, mut rest) = (0, places);
        let one = |size: &usize| {
            let (here, behind) = rest.split_at(rest.partition_point(|place| *place < first + size));
            let mut message = Message::default();
            message.numbers(here.len(), here.iter().map(|place| (place - first) as u64));
            (first, rest) = (first + size, behind);
            self.seal(message)
        };
        sizes.iter().map(one).collect()
    }

    /// The records of a shard at places that another process chose.
    pub fn sample(&self, points: &Points<'_>, places: &[u8]) -> Result<Points<'static>, Error> {
        let places: Vec<usize> = self.open(places)?.take_numbers()?.into_iter().map(|place| place as usize).collect();
        if places.iter().any(|place| *place >= points.n()) {
            return Err(broken());
        }
        sample::gathered(points, &places)
    }

    fn seal(&self, Message(mut bytes): Message) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce)
            .map_err(|error| Error::Refused(format!("the operating system gave no randomness: {error}")))?;
        let mut sealed = Message::default();
        sealed.number(u64::from_le_bytes(nonce));
        let start = SEAL.to_le_bytes();
        bytes.splice(0..0, start);
        self.cipher(u64::from_le_bytes(nonce), &mut bytes);
        sealed.0.append(&mut bytes);
        Ok(sealed.0)
    }

    fn open(&self, message: &[u8]) -> Result<Reading, Error> {
        let (nonce, bytes) = message.split_first_chunk::<8>().ok_or_else(broken)?;
        let mut bytes = bytes.to_vec();
        self.cipher(u64::from_le_bytes(*nonce), &mut bytes);
        let mut reading = Reading { bytes, next: 0 };
        if reading.number()? == SEAL { Ok(reading) } else { Err(broken()) }
    }

    /// Enciphers, and deciphers.
    fn cipher(&self, nonce: u64, bytes: &mut [u8]) {
        let mut rng = ChaCha20Rng::from_seed(self.key);
        rng.set_stream(nonce);
        let mut pad = [0; 1024];
        for chunk in bytes.chunks_mut(pad.len()) {
            rng.fill_bytes(&mut pad);
            chunk.iter_mut().zip(&pad).for_each(|(byte, pad)| *byte ^= pad);
        }
    }
}

fn broken() -> Error {
    Error::Refused("this is no message of this run".into())
}

/// A message in plain.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
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

    fn identities(&mut self, identities: &[Identity]) {
        self.numbers(2 * identities.len(), identities.iter().flat_map(|identity| identity.numbers()));
    }
}

/// A message that is read.
struct Reading {
    bytes: Vec<u8>,
    next: usize,
}

impl Reading {
    fn number(&mut self) -> Result<u64, Error> {
        let number = self.bytes.get(self.next..).and_then(|rest| rest.first_chunk::<8>()).ok_or_else(broken)?;
        self.next += 8;
        Ok(u64::from_le_bytes(*number))
    }

    fn take_numbers(&mut self) -> Result<Vec<u64>, Error> {
        let count = self.number()? as usize;
        let end = count.checked_mul(8).and_then(|bytes| bytes.checked_add(self.next)).ok_or_else(broken)?;
        let numbers = self.bytes.get(self.next..end).ok_or_else(broken)?;
        self.next = end;
        Ok(numbers.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number)).collect())
    }

    fn take_bytes(&mut self) -> Result<Vec<u8>, Error> {
        let count = self.number()? as usize;
        let end = self.next.checked_add(count).ok_or_else(broken)?;
        let bytes = self.bytes.get(self.next..end).ok_or_else(broken)?.to_vec();
        self.next = end;
        Ok(bytes)
    }

    fn take_identities(&mut self) -> Result<Vec<Identity>, Error> {
        let numbers = self.take_numbers()?;
        Ok(numbers.as_chunks::<2>().0.iter().map(|pair| Identity::from_numbers(*pair)).collect())
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::release::sensitivity::Neighbours;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, Tape};
    use crate::runtime::pulse::Silent;
    use crate::statistics::gradient::Gradient;
    use crate::statistics::tests::{opened, statistics};

    fn channel() -> Channel {
        Channel::from_key([5; 32])
    }

    fn points(n: usize) -> Points<'static> {
        let matrix = DMatrix::from_fn(3, n, |i, j| ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0);
        Points::admit(matrix, None, None, &mut Silent).unwrap()
    }

    #[test]
    fn a_question_that_was_away_is_the_same_and_so_is_its_answer() {
        let (here, there) = (points(200), points(100));
        for question in statistics(&[1.0, -2.0, 3.5], 2.0, 200).iter().filter(|question| question.adds_over_records()) {
            let again = channel().asked(&channel().ask(question.as_ref()).unwrap()).unwrap();
            assert_eq!((again.name(), again.identity()), (question.name(), question.identity()));
            assert_eq!(again.sensitivity(), question.sensitivity());
            let local = question.answer(&here, &mut Silent).unwrap();
            let away = again.answer(&there, &mut Silent).unwrap();
            let returned = channel().answered(&channel().answer(&away).unwrap(), question.as_ref()).unwrap();
            assert_eq!(opened(&returned), opened(&question.answer(&there, &mut Silent).unwrap()), "{}", again.name());
            let sum = Exact::sum(&[&local, &returned]).unwrap();
            let whole = question.answer(&Points::concatenate(&[&here, &there]).unwrap(), &mut Silent).unwrap();
            assert_eq!(opened(&sum), opened(&whole), "{}", again.name());
            assert!(Exact::sum(&[&sum, &returned]).is_err(), "records that were away are known again");
        }
    }

    #[test]
    fn nothing_about_weighted_records_is_sent() {
        let stream = || Draw::new(Streams::from_key([7; 32]), Neighbours::Replace).hidden();
        let weighted = sample::weighted(&points(4), stream(), &[5, 1 << 20, 7, 1 << 19]).unwrap();
        for question in statistics(&[1.0, -2.0, 3.5], 2.0, 200) {
            // It would come back with the sensitivity that it has without weights: a size that no replacement moves.
            let exact = question.answer(&weighted, &mut Silent).unwrap();
            assert!(matches!(channel().answer(&exact), Err(Error::Refused(_))), "{}", question.name());
            assert!(matches!(Exact::sum(&[&exact]), Err(Error::Refused(_))), "{}", question.name());
        }
        assert!(matches!(channel().records(&weighted), Err(Error::Refused(_))));
    }

    #[test]
    fn an_answer_to_another_question_is_refused() {
        let [asked, other] = [0.0, 1.0].map(|x| Gradient::new(&[x; 3], 20).unwrap());
        let answer = other.answer(&points(10), &mut Silent).unwrap();
        let message = channel().answer(&answer).unwrap();
        assert!(channel().answered(&message, &asked).is_err());
        assert!(channel().answered(&message, &other).is_ok());
        assert!(channel().answer(&answer.pick(0).unwrap()).is_err(), "an entry is no shard");
    }

    #[test]
    fn nothing_is_in_plain_and_no_two_messages_are_alike() {
        let answer = Gradient::new(&[0.0; 3], 20).unwrap().answer(&points(10), &mut Silent).unwrap();
        let [a, b] = [(); 2].map(|()| channel().answer(&answer).unwrap());
        assert!(a != b && a.len() == b.len());
        let plain =
            |message: &[u8]| message.windows(8).any(|window| window == answer.halves().next().unwrap().to_le_bytes());
        assert!(!plain(&a) && !plain(&b));
        let other = Channel::from_key([6; 32]);
        assert!(other.gathered(&channel().records(&points(5)).unwrap()).is_err());
        let mut cut = channel().records(&points(5)).unwrap();
        cut.truncate(40);
        assert!(channel().gathered(&cut).is_err() && channel().gathered(&[]).is_err());
    }

    #[test]
    fn a_sample_of_shards_is_that_of_the_whole() {
        let shards = [points(40), points(0), points(25), points(60)];
        let sizes = shards.each_ref().map(Points::n);
        let whole = Points::concatenate(&shards.each_ref()).unwrap();
        let stream = || Draw::new(Streams::from_key([7; 32]), Neighbours::Replace).hidden();
        let places = [channel().uniform_places(stream(), &sizes, 31), channel().coin_places(stream(), &sizes, (1, 2))];
        let expected = [sample::uniform(&whole, stream(), 31), sample::by_coins(&whole, stream(), (1, 2))];
        for (places, expected) in places.into_iter().zip(expected) {
            let gather = |(shard, places): (&Points<'_>, Vec<u8>)| {
                let sample = channel().sample(shard, &places).unwrap();
                channel().gathered(&channel().records(&sample).unwrap()).unwrap()
            };
            let parts: Vec<Points<'_>> = shards.iter().zip(places.unwrap()).map(gather).collect();
            let sample = Points::concatenate(&parts.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(sample.dense().view(), expected.unwrap().dense().view());
            assert!(Points::concatenate(&[&sample, &whole]).is_err(), "they know where they come from");
        }
    }
}
