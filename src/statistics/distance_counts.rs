//! Counts of distances: how many records lie within each radius of a grid around a point.
//!
//! The radii of the grid are 2^(k/4) for integers k. An interval between neighboring radii is a *quarter octave*. The
//! grid reaches from the smallest positive double to more than the largest possible distance. So one pass over the
//! records answers every query about distances from one point.
//!
//! With a target f, an entry is the count minus f n, where n is the number of records; [`super::target`] gives the
//! reason.
//!
//! **Neighbors and sensitivity**, for every single entry: 1 if a record is replaced, and max(f, 1 - f) if a record is
//! added or removed. Without a target f = 0, and both numbers are 1. *Proof.* A record is in one bucket, which is a
//! function of the record and the public point alone. So the record adds -f or 1 - f to every entry, and two
//! contributions differ by at most 1. ∎

use super::target::Target;
use super::prelude::*;
use crate::numeric::block::AnyBlock;
use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::distances;
use crate::numeric::float_scale::scale;
use crate::runtime::parallel_fold::{cumulative, records_per_block, sum_any_records};

/// The first quarter octave: 2^(FIRST_QUARTER_OCTAVE/4) is the smallest positive double.
pub const FIRST_QUARTER_OCTAVE: i32 = -4 * 1074;

/// The last quarter octave. No distance is larger, because differences lie below 2^1001 and the dimension below 2^40.
pub const LAST_QUARTER_OCTAVE: i32 = 4 * 1021;

/// The number of quarter octaves.
const BUCKETS: usize = (LAST_QUARTER_OCTAVE - FIRST_QUARTER_OCTAVE + 1) as usize;

/// The bits of a double below its exponent.
const MANTISSA: i64 = (1 << 52) - 1;

/// The smallest k with distance <= 2^(k/4), at least [`FIRST_QUARTER_OCTAVE`].
#[inline(always)]
fn quarter_octave(distance: f64) -> i64 {
    if distance == 0.0 {
        FIRST_QUARTER_OCTAVE.into()
    } else if distance < f64::MIN_POSITIVE {
        normal_quarter_octave(scale(distance, 64)) - 4 * 64
    } else {
        normal_quarter_octave(distance)
    }
}

/// The result of [`quarter_octave`] for normal doubles. For zero and for subnormal doubles the result is wrong, and its
/// bucket lies below [`FIRST_NORMAL`].
#[inline(always)]
fn normal_quarter_octave(distance: f64) -> i64 {
    const ROOTS: [f64; 4] = [1.0, 1.189_207_115_002_721, std::f64::consts::SQRT_2, 1.681_792_830_507_429];
    let bits = distance.to_bits().cast_signed();
    let beyond = ROOTS.map(|root| i64::from(bits & MANTISSA > root.to_bits().cast_signed() & MANTISSA));
    4 * ((bits >> 52) - 1023) + beyond.iter().sum::<i64>()
}

/// The index of a quarter octave among the counts.
#[inline(always)]
fn bucket(quarter_octave: i64) -> usize {
    (quarter_octave - i64::from(FIRST_QUARTER_OCTAVE)) as usize
}

/// The first index at which only normal doubles are counted. The double 2^-1022 and smaller doubles have lower indices.
const FIRST_NORMAL: usize = (4 * -1022 + 1 - FIRST_QUARTER_OCTAVE) as usize;

/// The number of counters of one bucket. They are used in turn because most records fall into few buckets, and a
/// processor must wait before it reads a counter that it has just written. Only [`WINDOW`] buckets around the bucket of
/// the first record of a block have such counters.
const TURNS: usize = 4;
const WINDOW: usize = 128;

/// Counts the records of a block in their quarter octaves.
struct QuarterOctaves<'a> {
    block: AnyBlock<'a>,
    theta: &'a [f64],
    counts: &'a mut [i64],
}

impl Kernel for QuarterOctaves<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let distances = distances(self.block, self.theta);
        let places: Vec<usize> = distances.iter().map(|distance| bucket(normal_quarter_octave(*distance))).collect();
        // Zeros and subnormals have wrong indices here. These indices lie before the window, so such records are
        // counted below.
        let first = places.first().map_or(0, |place| place.saturating_sub(WINDOW / 2)).max(FIRST_NORMAL);
        let mut near = [[0i64; WINDOW]; TURNS];
        for (record, place) in places.into_iter().enumerate() {
            match near[record % TURNS].get_mut(place.wrapping_sub(first)) {
                Some(count) => *count += 1,
                None => self.counts[bucket(quarter_octave(distances[record]))] += 1,
            }
        }
        for counters in near {
            self.counts[first..].iter_mut().zip(counters).for_each(|(count, counter)| *count += counter);
        }
    }
}

/// For each k from [`FIRST_QUARTER_OCTAVE`] to [`LAST_QUARTER_OCTAVE`], the number of admitted records whose distance from
/// theta has the quarter octave k.
fn bucket_counts(points: &Points<'_>, theta: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i128>, Interrupted> {
    let d = points.d();
    assert_eq!(theta.len(), d, "theta has another dimension than the points");
    sum_any_records(points, d, records_per_block(d), BUCKETS, pulse, |counts, block| {
        dispatch::vectorised(QuarterOctaves { block, theta, counts });
    })
}

/// For each k from [`FIRST_QUARTER_OCTAVE`] to [`LAST_QUARTER_OCTAVE`], the number of records within 2^(k/4) of theta, minus
/// the target's share of all records, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct DistanceCounts {
    theta: Vec<f64>,
    target: Target,
}

impl DistanceCounts {
    /// A query around `theta`, which must have the dimension of the records. The target (p, k) is the share p/2^k. With
    /// the target (0, 0), the entries are plain counts.
    pub fn new(theta: &[f64], bits: u32, target: (u64, u32)) -> Result<Self, BadParameter> {
        let target = Target::new(target, bits)?;
        Ok(Self { theta: theta.iter().copied().map(finite).collect(), target })
    }

    /// The sensitivity of an entry, in any dimension.
    pub fn bound(bits: u32, target: (u64, u32)) -> Result<Sensitivity, BadParameter> {
        Target::new(target, bits).map(of_entry)
    }
}

fn of_entry(target: Target) -> Sensitivity {
    Sensitivity::of_sum(target.largest(), target.one())
}

impl Statistic for DistanceCounts {
    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        of_entry(self.target)
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([
            ("theta", self.theta.as_slice().into()),
            ("target", self.target.fraction().as_slice().into()),
            ("bits", self.target.bits().into()),
        ])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let counts = cumulative(bucket_counts(points, &self.theta, pulse)?);
        Ok(Exact::table(self.target.signed(counts, points.mass()), self.sensitivity()))
    }
}

impl Kind for DistanceCounts {
    const NAME: &'static str = "distance counts";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.small("bits")?, given.fraction("target")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        Ok(Bound::table(Self::bound(given.small("bits")?, given.fraction("target")?)?))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], _scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        vec![Self::new(theta, 3, (0, 0)), Self::new(theta, 9, (205, 9))]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::block::Block;
    use crate::numeric::float_scale::LARGEST;
    use crate::statistics::tests::values;

    fn at(counts: &[i64], k: i32) -> i64 {
        counts[(k - FIRST_QUARTER_OCTAVE) as usize]
    }

    #[test]
    fn equality_is_inside_and_every_record_is_counted() {
        let points = DMatrix::from_column_slice(2, 5, &[0.0, 0.0, 3.0, 4.0, 0.0, 8.0, 1e-300, 0.0, LARGEST, -LARGEST]);
        let counts = values(&DistanceCounts::new(&[0.0, 0.0], 0, (0, 0)).unwrap(), &points);
        assert_eq!((at(&counts, 11), at(&counts, 12), at(&counts, 9)), (3, 4, 2));
        assert_eq!((at(&counts, 10), at(&counts, FIRST_QUARTER_OCTAVE), at(&counts, LAST_QUARTER_OCTAVE)), (3, 1, 5));
        assert_eq!(at(&counts, 4 * -996), 2);
    }

    #[test]
    fn a_target_is_taken_off_for_every_record() {
        let points = DMatrix::from_row_slice(1, 5, &[0.0, 1.0, 2.0, 4.0, 8.0]);
        let counts = |target| values(&DistanceCounts::new(&[0.0], 4, target).unwrap(), &points);
        let (plain, signed) = (counts((0, 0)), counts((3, 3)));
        assert!(plain.iter().zip(&signed).all(|(plain, signed)| plain - 5 * 6 == *signed));
        assert_eq!((at(&signed, 0), at(&signed, LAST_QUARTER_OCTAVE)), (2 * 16 - 30, 5 * 16 - 30));
    }

    proptest! {
        #[test]
        fn a_quarter_octave_is_the_smallest_that_covers(mantissa in 1.0..2.0f64, octave in -1022i32..1000) {
            let distance = scale(mantissa, octave);
            let k = quarter_octave(distance) as i32;
            // The margin covers the rounding of the quarter roots themselves.
            let power = |k: i32| f64::from(k) / 4.0;
            prop_assert!(distance.log2() <= power(k) + 1e-12 && distance.log2() >= power(k - 1) - 1e-12);
        }
    }

    #[test]
    fn the_same_counts_on_every_instruction_set() {
        let points = DMatrix::from_fn(11, 100, |i, j| ((i * 31 + j * 17) % 101) as f64 * 0.37);
        let theta = [3.3; 11];
        let block = AnyBlock::from(Block::new(points.as_slice(), 11, 100));
        let mut counts = [vec![0; BUCKETS], vec![0; BUCKETS]];
        let [here, there] = &mut counts;
        dispatch::portable(QuarterOctaves { block, theta: &theta, counts: here });
        dispatch::vectorised(QuarterOctaves { block, theta: &theta, counts: there });
        assert!(counts[0] == counts[1] && counts[0].iter().sum::<i64>() == 100);
    }

    #[test]
    fn records_beyond_the_window_of_a_block_are_counted_like_others() {
        let powers = [0, 3, -900, 990, 40, -40, -1021, -1022, -1023, -1040];
        let lengths: Vec<f64> = (0..400).map(|i| scale(1.0, powers[i % 10]) * (1.1 + (i % 7) as f64 / 8.0)).collect();
        for first in [1.1, 0.0, scale(1.0, 999), 5e-324, f64::MIN_POSITIVE, 3e-308] {
            let points: Vec<f64> = [first].into_iter().chain(lengths.iter().copied()).collect();
            let mut counts = vec![0; BUCKETS];
            dispatch::portable(QuarterOctaves {
                block: Block::new(&points, 1, 401).into(),
                theta: &[0.0],
                counts: &mut counts,
            });
            let mut expected = vec![0; BUCKETS];
            points.iter().for_each(|x| expected[bucket(quarter_octave(*x))] += 1);
            assert_eq!(counts, expected);
        }
    }
}
