//! Random numbers by position. Every release has its own streams. So the noise depends only on the key and on the
//! position of the release in the run, and not on the number of threads.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::error::Error;
use super::noise::{Additive, Request, Sampler};
use super::sensitivity::Neighbours;
use crate::runtime::pool;

/// The number of coordinates that share a stream. The noise of a longer vector is drawn in blocks, in parallel.
const BLOCK: usize = 1024;

/// Streams are numbered release * 2^24 + block.
const BLOCKS_PER_RELEASE: u32 = 24;

/// The number of independent parts of hidden randomness.
pub(crate) const PARTS: usize = 1 << BLOCKS_PER_RELEASE;

/// A key and the number of the next stream. This type cannot be copied, because two copies would give two releases the
/// same noise.
pub struct Streams {
    key: [u8; 32],
    next: u64,
}

/// Hidden randomness that a statistic uses, such as a pairing of the records.
///
/// Hidden randomness is independent of the data, and a replay uses the same hidden randomness. *Hidden* means that no
/// output may show it. Suppose that on two neighbors the hidden choices can be coupled such that the statistic has its
/// sensitivity for every coupled pair. Then the release, as a mixture over the choices, has its privacy bound, because
/// the divergences of differential privacy are jointly quasi-convex. This holds for the whole run at once. Choices
/// could be shown only if their distribution did not depend on the data. But the distribution does depend on the data:
/// a pairing of n records reveals n, which is private under add/remove.
///
/// A stream cannot be copied, and using it consumes it. Two uses of one stream would give two dependent choices, but
/// the bound of a release holds for independent choices. A statistic that owns a stream makes the same hidden choice in
/// every query.
pub struct Stream {
    rng: ChaCha20Rng,
    neighbours: Neighbours,
}

impl Stream {
    /// The generator, which always begins at the same position, so that a repeated query makes the same hidden choice.
    pub(crate) fn generator(&self) -> ChaCha20Rng {
        self.part(0)
    }

    /// One of [`PARTS`] independent generators, which always begins at the same position. If one generator draws more
    /// numbers, for example because there are more records, this does not change the numbers of the others.
    ///
    /// # Panics
    ///
    /// If `part` is not below [`PARTS`].
    pub(crate) fn part(&self, part: usize) -> ChaCha20Rng {
        assert!(part < PARTS, "there is no part {part} of hidden randomness");
        let mut rng = self.rng.clone();
        rng.set_stream(rng.get_stream() | part as u64);
        rng
    }

    /// The neighbor relation of the tape that this randomness belongs to.
    pub(crate) fn neighbours(&self) -> Neighbours {
        self.neighbours
    }
}

impl Streams {
    /// Streams with a key from the operating system.
    pub fn from_system() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self::from_key(key))
    }

    /// Streams from a given key, for tests and simulations only.
    pub fn from_key(key: [u8; 32]) -> Self {
        Self { key, next: 0 }
    }

    /// Hidden randomness. It uses up the position of one release.
    pub(in crate::release) fn hidden(&mut self, neighbours: Neighbours) -> Stream {
        Stream { rng: self.single(), neighbours }
    }

    /// The generator for a release that needs one stream.
    pub(in crate::release) fn single(&mut self) -> ChaCha20Rng {
        let release = self.advance();
        self.stream(release, 0)
    }

    /// Skips the position of a release. A replay, which draws no noise, calls this function.
    pub(in crate::release) fn advance(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn stream(&self, release: u64, block: u64) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::from_seed(self.key);
        rng.set_stream(release << BLOCKS_PER_RELEASE | block);
        rng
    }

    /// The values plus independent noise on each coordinate, or the index of a choice among the values. A lattice draw
    /// has no values and is refused.
    pub(in crate::release) fn answer(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Error> {
        match request.sampler() {
            Sampler::Additive(noise) => Ok(self.add_noise(noise, exact)),
            Sampler::Choice(choice) => Ok(vec![choice.sample(exact, &mut self.single()) as i64]),
            Sampler::Lattice => Err(Error::Refused(format!("{:?} draws a point and adds no noise", request.name))),
        }
    }

    fn add_noise(&mut self, noise: Additive, exact: &[i64]) -> Vec<i64> {
        let release = self.advance();
        let mut noisy = exact.to_vec();
        let add = |(block, values): (usize, &mut [i64])| {
            let mut rng = self.stream(release, block as u64);
            for value in values {
                let noisy = i128::from(*value).saturating_add(noise.sample(&mut rng));
                // Clamping is post-processing, because it clamps the noisy sum and not the noise.
                *value = noisy.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            }
        };
        pool::for_each_in_parallel(noisy.chunks_mut(BLOCK).enumerate(), add);
        noisy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::noise::Noise;

    fn gaussian() -> Request {
        Request::new("test", Noise::Gaussian { sigma: 1 << 30 }, 1.0).unwrap()
    }

    #[test]
    fn noise_depends_on_the_key_and_the_place_only() {
        let exact = vec![0; 5000];
        let run = |threads| {
            pool::set_threads(Some(threads));
            let mut streams = Streams::from_key([1; 32]);
            let first = streams.answer(&gaussian(), &exact).unwrap();
            (first, streams.answer(&gaussian(), &exact).unwrap())
        };
        let (one, two) = (run(1), run(4));
        pool::set_threads(None);
        assert_eq!(one, two);
        assert_ne!(one.0, one.1, "two releases must not share their noise");
        assert_ne!(one.0[..BLOCK], one.0[BLOCK..2 * BLOCK], "two blocks must not share their noise");
    }

    /// Compares the mean square of N draws with the mean square of the continuous noise, which differs by less than
    /// 1e-8 at this width. The relative standard deviation of the mean square is sqrt(2/N) for the Gaussian and
    /// sqrt(5/N) for the two other distributions. A difference of six standard deviations has probability below 1e-6,
    /// and the key is fixed.
    #[test]
    fn noise_has_the_scale_that_was_asked_for() {
        const N: usize = 40_000;
        let (p, q) = (3, 1 << 30);
        for (noise, square, relative) in [
            (Noise::Gaussian { sigma: 1 << 30 }, 1.0, 2.0f64),
            (Noise::Laplace { p, q }, 2.0, 5.0),
            (Noise::Geometric { p, q }, 2.0, 5.0),
        ] {
            let request = Request::new("test", noise, 1.0).unwrap();
            let drawn = Streams::from_key([2; 32]).answer(&request, &vec![0; N]).unwrap();
            let mean = drawn.iter().map(|&x| (x as f64 / noise.scale()).powi(2)).sum::<f64>() / N as f64;
            assert!((mean / square - 1.0).abs() < 6.0 * (relative / N as f64).sqrt(), "{noise:?}: {mean}");
        }
    }

    #[test]
    fn a_lattice_draw_is_no_noise_on_values() {
        let request = Request::new("test", Noise::Lattice { rate: 1 << 40 }, 1.0).unwrap();
        assert!(matches!(Streams::from_key([1; 32]).answer(&request, &[7]), Err(Error::Refused(_))));
    }

    #[test]
    fn no_two_keys_of_the_system_are_alike() {
        let key = || Streams::from_system().unwrap().key;
        assert_ne!(key(), key());
    }

    #[test]
    fn hidden_randomness_has_a_place_of_its_own() {
        use rand_chacha::rand_core::Rng;
        let mut streams = Streams::from_key([1; 32]);
        let (first, second) = (streams.hidden(Neighbours::Replace), streams.hidden(Neighbours::Replace));
        assert_ne!(first.generator().next_u64(), second.generator().next_u64());
        assert_ne!(first.part(1).next_u64(), first.part(0).next_u64());
        assert_ne!(first.part(PARTS - 1).next_u64(), second.part(0).next_u64());
        assert_eq!(first.generator().next_u64(), first.generator().next_u64());
    }
}
