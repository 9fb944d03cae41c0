//! The robust step: the sum over records of (x - center)/max(|x - center|, threshold), on an integer lattice.
//!
//! With the threshold 0 a record contributes its unit vector, and the sum is the descent direction of the sum of
//! distances. With a positive threshold C a record contributes its unit vector times min(1, |x - center|/C), and the
//! sum is the descent direction of a sum of Huber losses. Every contribution has a norm of at most 1, for any record.
//!
//! **Neighbors and sensitivity** (L2, lattice units): the same as for [`super::gradient`]. *Proof.* Let s be the
//! computed sum of squares of the difference x - center, added up in segments of [`SEGMENT`] coordinates. The relative
//! error of s is at most (d + 2) 2^-53 for any order of the additions. The difference is divided by max(sqrt(s), C) and
//! multiplied by a weight of at most 1. So the norm has the same error as in [`super::gradient`]. The product with the
//! weight adds 2^-53, and the bound of the gradient has room for this. If sqrt(s) < C, the computed vector is shorter
//! than the difference divided by sqrt(s).
//!
//! If s < 2^-960 and C > 0, the norm of the difference is below 2^-479, which is less than C 2^-179, because C is at
//! least 2^-300. In the other cases with s outside of [2^-960, 2^960], the differences are first scaled by a power of
//! two, so that the largest difference lies in [1, 2), and the bound holds for the scaled differences. If s > 2^960,
//! the norm exceeds every allowed C.
//!
//! Rounding to the lattice adds at most sqrt(d)/2 units. So a record that is added or removed moves the sum by at most
//! 2^bits (1 + (d + 6) 2^-53) + sqrt(d)/2. A record that is replaced, together with its weight, moves the sum by at
//! most twice as much. A record with a coordinate that is not finite contributes zero, and only the record itself
//! decides whether this is so. ∎
//!
//! [`Accumulator`] adds up records that arrive one by one, and needs memory only for the sum. *Claim.* The accumulator
//! has the same sensitivity. *Proof.* The accumulator adds the same contributions as 64-bit integers. As soon as there
//! are so many records that a sum could overflow, it uses [`i64::saturating_add`]. Saturating addition of a fixed
//! number is a contraction: it does not increase the difference of two sums. So two sequences that differ in one record
//! have sums that differ by at most the contributions of this record. Up to 2^(61 - bits) records nothing saturates,
//! and the sum is exact and does not depend on the order. ∎

use std::ops::Range;
use std::sync::Arc;

use super::gradient::{BITS_MAX, Gradient, rounder};
use super::prelude::*;
use crate::numeric::dispatch::{Kernel, vectorised};
use crate::numeric::distance::{LARGE, SMALL, sum_lanes, sum_of_squares};
use crate::numeric::float_scale::{exponent, scale};
use crate::release::exact::Query;
use crate::runtime::parallel_fold::{records_per_block, sum_records};
use crate::runtime::pool;
use crate::runtime::weighting::WEIGHT_BITS;

/// The number of coordinates that are processed together. Their differences from the center fit the first-level cache.
const SEGMENT: usize = 1 << 11;

/// If a record has at least this number of coordinates, several threads share its segments.
const PARALLEL: usize = 1 << 16;

/// Positive thresholds must lie between 2^-300 and 2^300, so that their squares neither underflow nor overflow.
const THRESHOLD_EXPONENT: i32 = 300;

/// Numbers that are adjacent in memory.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// Doubles.
    Doubles(&'a [f64]),
    /// Singles, which are converted to doubles when they are read.
    Singles(&'a [f32]),
}

impl Piece<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Doubles(values) => values.len(),
            Self::Singles(values) => values.len(),
        }
    }

    #[inline(always)]
    fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::Doubles(values) => Self::Doubles(&values[range]),
            Self::Singles(values) => Self::Singles(&values[range]),
        }
    }
}

/// A vector whose coordinates lie in several pieces, such as the layers of a model.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    pieces: Vec<Piece<'a>>,
    /// The index of the first coordinate of each piece, and the total number of coordinates.
    starts: Vec<usize>,
}

impl<'a> Pieces<'a> {
    /// The vector of these pieces, in their order.
    pub fn new(pieces: Vec<Piece<'a>>) -> Self {
        let mut starts = vec![0];
        starts.extend(pieces.iter().scan(0, |end, piece| {
            *end += piece.len();
            Some(*end)
        }));
        Self { pieces, starts }
    }

    /// The dimension.
    pub fn d(&self) -> usize {
        self.starts[self.pieces.len()]
    }

    /// The values of a range of coordinates, or `None` if the range extends over several pieces.
    #[inline(always)]
    fn part(&self, range: &Range<usize>) -> Option<Piece<'a>> {
        let piece = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let start = *self.starts.get(piece)?;
        self.pieces
            .get(piece)
            .filter(|piece| range.end <= start + piece.len())
            .map(|piece| piece.part(range.start - start..range.end - start))
    }

    /// The parts of a range of coordinates, each with its position in the range. The function returns an iterator
    /// because a callback would be compiled for the baseline instruction set.
    #[inline(always)]
    fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, Piece<'a>)> {
        let first = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let pieces = self.pieces[first..].iter().zip(&self.starts[first..]);
        let (begin, end) = (range.start, range.end);
        pieces.take_while(move |(_, start)| **start < end).filter_map(move |(piece, start)| {
            let (low, high) = (begin.max(*start), end.min(start + piece.len()));
            (low < high).then(|| (low - begin..high - begin, piece.part(low - start..high - start)))
        })
    }
}

/// The public point from which differences are taken. Copies share the memory of the coordinates.
#[derive(Debug, Clone, PartialEq)]
pub enum Center {
    /// The origin in this number of dimensions.
    Origin(usize),
    /// A point in doubles.
    Doubles(Arc<[f64]>),
    /// A point in singles, which needs half of the memory.
    Singles(Arc<[f32]>),
}

impl Center {
    fn d(&self) -> usize {
        match self {
            Self::Origin(d) => *d,
            Self::Doubles(values) => values.len(),
            Self::Singles(values) => values.len(),
        }
    }

    /// The center, with finite coordinates.
    fn admitted(self) -> Self {
        let usual = |x: f64| finite(x).to_bits() == x.to_bits();
        match self {
            Self::Doubles(values) if !values.iter().all(|x| usual(*x)) => {
                Self::Doubles(values.iter().map(|x| finite(*x)).collect())
            }
            Self::Singles(values) if !values.iter().all(|x| usual((*x).into())) => {
                Self::Doubles(values.iter().map(|x| finite((*x).into())).collect())
            }
            usual => usual,
        }
    }
}

/// Calls `$with!(values, center_values, difference)` for the part of a record that begins at the coordinate `$start`.
/// `difference` maps a value of the record and a value of the center to their difference.
macro_rules! with_differences {
    ($part:expr, $center:expr, $start:expr, $with:ident) => {{
        let range = $start..$start + $part.len();
        match ($part, $center) {
            (Piece::Doubles(x), Center::Origin(_)) => $with!(x, x, |x: &f64, _: &f64| *x),
            (Piece::Doubles(x), Center::Doubles(c)) => $with!(x, &c[range], |x: &f64, c: &f64| x - c),
            (Piece::Doubles(x), Center::Singles(c)) => $with!(x, &c[range], |x: &f64, c: &f32| x - f64::from(*c)),
            (Piece::Singles(x), Center::Origin(_)) => $with!(x, x, |x: &f32, _: &f32| f64::from(*x)),
            (Piece::Singles(x), Center::Doubles(c)) => $with!(x, &c[range], |x: &f32, c: &f64| f64::from(*x) - c),
            (Piece::Singles(x), Center::Singles(c)) => {
                $with!(x, &c[range], |x: &f32, c: &f32| f64::from(*x) - f64::from(*c))
            }
        }
    }};
}

/// Stores the differences between a range of coordinates and the center in `target`.
#[inline(always)]
fn load(record: &Pieces<'_>, center: &Center, range: &Range<usize>, target: &mut [f64]) {
    for (place, part) in record.parts(range.clone()) {
        let start = range.start + place.start;
        let target = &mut target[place];
        macro_rules! differences {
            ($x:expr, $c:expr, $of:expr) => {
                for (target, (x, c)) in target.iter_mut().zip($x.iter().zip($c)) {
                    *target = $of(x, c);
                }
            };
        }
        with_differences!(part, center, start, differences);
    }
}

/// Computes the sum of squares of a segment of the differences, and an upper bound of the squares.
struct Squares<'a>(&'a Pieces<'a>, &'a Center, Range<usize>);

/// The number of groups of eight lanes. Several groups are used because an addition must wait for the previous addition
/// to the same register.
const GROUPS: usize = 4;
const LANES: usize = 8 * GROUPS;

/// Adds the square of each difference to the lane of its position.
#[inline(always)]
fn add_squares<X: Copy + Default, C: Copy + Default>(
    lanes: &mut [f64; LANES],
    x: &[X],
    c: &[C],
    of: impl Fn(&X, &C) -> f64,
) {
    // The groups are separate variables because these stay in registers, while one long array does not.
    let (groups, _) = lanes.as_chunks_mut::<8>();
    let [mut g0, mut g1, mut g2, mut g3] = [groups[0], groups[1], groups[2], groups[3]];
    let mut add = |x: &[X; LANES], c: &[C; LANES]| {
        let ((x, _), (c, _)) = (x.as_chunks::<8>(), c.as_chunks::<8>());
        for k in 0..8 {
            let [a, b, c, d] =
                [of(&x[0][k], &c[0][k]), of(&x[1][k], &c[1][k]), of(&x[2][k], &c[2][k]), of(&x[3][k], &c[3][k])];
            g0[k] += a * a;
            g1[k] += b * b;
            g2[k] += c * c;
            g3[k] += d * d;
        }
    };
    let ((x, x_rest), (c, c_rest)) = (x.as_chunks::<LANES>(), c.as_chunks::<LANES>());
    for (x, c) in x.iter().zip(c) {
        add(x, c);
    }
    if !x_rest.is_empty() {
        // The last coordinates are padded with zeros in both arrays, and the padding adds nothing.
        let (mut x, mut c) = ([X::default(); LANES], [C::default(); LANES]);
        x[..x_rest.len()].copy_from_slice(x_rest);
        c[..c_rest.len()].copy_from_slice(c_rest);
        add(&x, &c);
    }
    [groups[0], groups[1], groups[2], groups[3]] = [g0, g1, g2, g3];
}

/// The sum of the lanes, in a fixed order.
#[inline(always)]
fn sum_of_lanes(lanes: &[f64; LANES]) -> f64 {
    let mut eight = [0.0; 8];
    for (sum, k) in eight.iter_mut().zip(0..) {
        *sum = (lanes[k] + lanes[k + 16]) + (lanes[k + 8] + lanes[k + 24]);
    }
    sum_lanes(eight)
}

impl Kernel for Squares<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let Squares(record, center, range) = self;
        let mut lanes = [0.0; LANES];
        if let Some(part) = record.part(&range) {
            macro_rules! squares {
                ($x:expr, $c:expr, $of:expr) => {
                    add_squares(&mut lanes, $x, $c, $of)
                };
            }
            with_differences!(part, center, range.start, squares);
        } else {
            let mut differences = vec![0.0; range.len()];
            load(record, center, &range, &mut differences);
            add_squares(&mut lanes, &differences, &differences, |x: &f64, _: &f64| *x);
        }
        // Rounding is monotone, so the sum of a lane is at least as large as every square in the lane.
        (sum_of_lanes(&lanes), lanes.into_iter().fold(0.0, f64::max))
    }
}

/// An integer sum of lattice units.
trait Total: Send {
    /// Adds units modulo the range of the sum.
    fn add(&mut self, units: u64);
}

impl Total for i64 {
    #[inline(always)]
    fn add(&mut self, units: u64) {
        *self = self.wrapping_add(units.cast_signed());
    }
}

impl Total for i32 {
    #[inline(always)]
    fn add(&mut self, units: u64) {
        *self = self.wrapping_add(units as i32);
    }
}

/// Multiplies a segment of the differences by a factor, rounds the products to the lattice, and adds them to the total.
struct AddSegment<'a, T> {
    record: &'a Pieces<'a>,
    center: &'a Center,
    range: Range<usize>,
    factor: f64,
    rounder: f64,
    total: &'a mut [T],
}

impl<T: Total> Kernel for AddSegment<'_, T> {
    type Output = ();

    /// The bits of a rounded sum minus the bits of the rounder are the number of lattice units.
    #[inline(always)]
    fn run(self) {
        let AddSegment { record, center, range, factor, rounder, total } = self;
        let surplus = rounder.to_bits();
        for (place, part) in record.parts(range.clone()) {
            let start = range.start + place.start;
            let total = &mut total[place];
            macro_rules! add {
                ($x:expr, $c:expr, $of:expr) => {
                    for (total, (x, c)) in total.iter_mut().zip($x.iter().zip($c)) {
                        total.add(($of(x, c) * factor + rounder).to_bits().wrapping_sub(surplus));
                    }
                };
            }
            with_differences!(part, center, start, add);
        }
    }
}

/// The sum over records of (x - center)/max(|x - center|, threshold), in units of 2^-bits. A record at the center
/// contributes zero.
#[derive(Debug, Clone, PartialEq)]
pub struct RobustStep {
    center: Center,
    threshold: f64,
    bits: u32,
}

impl RobustStep {
    /// A query with a center that has the dimension of the records. The threshold must be 0 or lie between 2^-300 and
    /// 2^300.
    pub fn new(center: Center, threshold: f64, bits: u32) -> Result<Self, BadParameter> {
        let bits = checked_bits(bits, BITS_MAX)?;
        let usual = f64::from(-THRESHOLD_EXPONENT).exp2()..=f64::from(THRESHOLD_EXPONENT).exp2();
        if threshold != 0.0 && !usual.contains(&threshold) {
            return Err(BadParameter(format!(
                "the threshold of a robust step must be 0 or lie between 2^-300 and 2^300, got {threshold}"
            )));
        }
        Ok(Self { center: center.admitted(), threshold, bits })
    }

    /// The sensitivity in `d` dimensions.
    pub fn bound(d: usize, bits: u32) -> Sensitivity {
        Gradient::bound(d, bits)
    }

    /// Adds the contribution of a record with this weight. Returns false and adds nothing if a coordinate is not
    /// finite.
    fn add(&self, record: &Pieces<'_>, weight: f64, total: &mut [i64]) -> bool {
        match self.measured(record, weight) {
            Some(measured) => self.add_usual(record, measured.factor, total),
            None => return self.add_unusual(record, weight, total),
        }
        true
    }

    /// The factor of a record, and a bound on the units that the record adds to a coordinate. `None` if the sum of
    /// squares could overflow or underflow.
    fn measured(&self, record: &Pieces<'_>, weight: f64) -> Option<Measured> {
        let found = self.fold(record, &|range| vectorised(Squares(record, &self.center, range)));
        let squares: f64 = found.iter().map(|(squares, _)| squares).sum();
        if !((SMALL..=LARGE).contains(&squares) || squares < SMALL && self.threshold > 0.0) {
            return None;
        }
        let factor = weight / squares.sqrt().max(self.threshold);
        let largest = found.iter().fold(0.0f64, |most, (_, largest)| most.max(*largest)).sqrt();
        // Two units are added for the rounding to the lattice and for the rounding of this product.
        let most = largest * factor * f64::from(self.bits).exp2() * (1.0 + 4.0 * f64::EPSILON) + 2.0;
        Some(Measured { factor, most: most as u64 })
    }

    fn add_usual<T: Total>(&self, record: &Pieces<'_>, factor: f64, total: &mut [T]) {
        let (center, rounder) = (&self.center, rounder(self.bits));
        self.for_each(total, &|range, total| {
            vectorised(AddSegment { record, center, range, factor, rounder, total });
        });
    }

    /// Adds a record of any magnitude. Its differences are scaled by a power of two, so that the largest lies in [1,
    /// 2).
    #[cold]
    fn add_unusual(&self, record: &Pieces<'_>, weight: f64, total: &mut [i64]) -> bool {
        let origin = Center::Origin(record.d());
        let differences = |range: &Range<usize>| {
            let (mut values, mut center) = (vec![0.0; range.len()], vec![0.0; range.len()]);
            load(record, &origin, range, &mut values);
            let all = values.iter().all(|x| x.is_finite());
            match &self.center {
                Center::Origin(_) => {}
                Center::Doubles(own) => center.copy_from_slice(&own[range.clone()]),
                Center::Singles(own) => center.iter_mut().zip(&own[range.clone()]).for_each(|(c, x)| *c = (*x).into()),
            }
            values.iter_mut().zip(&center).for_each(|(x, c)| *x = finite(*x) - c);
            all.then_some(values)
        };
        let largest = self.fold(record, &|range| {
            let largest = differences(&range).map(|values| values.iter().fold(0.0f64, |m, x| m.max(x.abs())));
            (0.0, largest.unwrap_or(f64::NAN))
        });
        if largest.iter().any(|x| x.1.is_nan()) {
            return false;
        }
        let largest = largest.into_iter().fold(0.0f64, |most, x| most.max(x.1));
        if largest == 0.0 {
            return true;
        }
        let power = -exponent(largest);
        let scaled = |range: &Range<usize>| -> Vec<f64> {
            differences(range).unwrap_or_default().into_iter().map(|x| scale(x, power)).collect()
        };
        let squares: f64 = self.fold(record, &|range| (sum_of_squares(&scaled(&range)), 0.0)).iter().map(|x| x.0).sum();
        let (factor, rounder) = (weight / squares.sqrt(), rounder(self.bits));
        self.for_each(total, &|range, total| {
            for (total, x) in total.iter_mut().zip(scaled(&range)) {
                let units = (x * factor + rounder).to_bits().wrapping_sub(rounder.to_bits());
                *total = total.wrapping_add(units.cast_signed());
            }
        });
        true
    }

    /// Computes two numbers for each segment, and returns them in the order of the segments.
    fn fold(&self, record: &Pieces<'_>, of: &(dyn Fn(Range<usize>) -> (f64, f64) + Sync)) -> Vec<(f64, f64)> {
        let d = record.d();
        let mut found = vec![(0.0, 0.0); d.div_ceil(SEGMENT)];
        let work = |(segment, slot): (usize, &mut (f64, f64))| *slot = of(segment_of(segment, d));
        if d < PARALLEL {
            found.iter_mut().enumerate().for_each(work);
        } else {
            pool::for_each_in_parallel(found.iter_mut().enumerate(), work);
        }
        found
    }

    /// Visits the segments of a total from the last to the first, because the segments that were measured last are
    /// still in the cache.
    fn for_each<T: Total>(&self, total: &mut [T], visit: &(dyn Fn(Range<usize>, &mut [T]) + Sync)) {
        let d = total.len();
        let work = |(segment, part): (usize, &mut [T])| visit(segment_of(segment, d), part);
        if d < PARALLEL {
            total.chunks_mut(SEGMENT).enumerate().rev().for_each(work);
        } else {
            pool::for_each_in_parallel(total.chunks_mut(SEGMENT).enumerate().rev(), work);
        }
    }
}

/// The factor of a record, and a bound on the units that the record adds to a coordinate.
struct Measured {
    factor: f64,
    most: u64,
}

fn segment_of(segment: usize, d: usize) -> Range<usize> {
    segment * SEGMENT..d.min((segment + 1) * SEGMENT)
}

impl Statistic for RobustStep {
    fn dimension(&self) -> Option<usize> {
        Some(self.center.d())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.center.d(), self.bits)
    }

    fn parameters(&self) -> Parameters {
        let center = match &self.center {
            Center::Origin(d) => vec![0.0; *d],
            Center::Doubles(values) => values.to_vec(),
            Center::Singles(values) => values.iter().map(|x| f64::from(*x)).collect(),
        };
        Parameters::of([
            ("threshold", self.threshold.into()),
            ("center", Value::Floats(center)),
            ("bits", self.bits.into()),
        ])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let d = points.d();
        assert_eq!(self.center.d(), d, "the center has another dimension than the points");
        let sum = sum_records(points, d, records_per_block(d), d, pulse, |total, block| {
            for record in block.records() {
                self.add(&Pieces::new(vec![Piece::Doubles(record)]), 1.0, total);
            }
        })?;
        Ok(Exact::vector(sum, self.sensitivity()))
    }
}

impl Kind for RobustStep {
    const NAME: &'static str = "robust step";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        let center = match (given.optional("center"), given.optional("d")) {
            (Some(Value::Singles(center)), _) => Center::Singles(center.into()),
            (Some(Value::Floats(center)), _) => Center::Doubles(center.into()),
            (None, Some(Value::Number(d))) => Center::Origin(usize::try_from(d).unwrap_or(usize::MAX)),
            _ => return Err(BadParameter("a robust step needs a center, or the dimension d".into())),
        };
        Self::new(center, given.float("threshold")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let (d, bits) = (given.size("d")?, given.bits(BITS_MAX)?);
        Ok(Bound::vector(Self::bound(d, bits), d))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        let center = || Center::Doubles(theta.into());
        vec![Self::new(center(), 0.0, 40), Self::new(center(), radius(scale).clamp(1e-90, 1e90), 32)]
    }
}

/// A record that may add more units than this to a coordinate is added to the total directly. In few dimensions this is
/// the case for most records.
const PENDING_MOST: u64 = 1 << 28;

/// Adds the pending sum to the total.
fn flush(total: &mut [i64], pending: &mut [i32], most: &mut u64) {
    total.iter_mut().zip(pending).for_each(|(total, pending)| *total += i64::from(std::mem::take(pending)));
    *most = 0;
}

/// The reason why a record cannot be added. The reason is public, because it depends on shapes and on earlier calls
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAdded {
    /// The record has another dimension than the sum.
    Dimension(usize),
    /// The weight of the record is not between 0 and 2^20.
    Weight,
    /// The sum was already taken.
    Closed,
}

/// Sums the robust step of records that arrive one by one, and counts the records. The records are not stored.
pub struct Accumulator {
    step: RobustStep,
    /// The sum, or `None` after it was taken.
    total: Option<Vec<i64>>,
    /// A 32-bit sum of records that have not been added to the total yet. It has half of the size of the total, so
    /// adding a record takes less time.
    pending: Vec<i32>,
    /// The largest number of units that a coordinate of `pending` can have.
    pending_most: u64,
    /// The contribution of one record. It is needed only while the sum may saturate.
    scratch: Vec<i64>,
    records: u64,
    /// The sum of the weights, in units of 2^-20.
    weights: i128,
    weighted: bool,
}

impl Accumulator {
    /// An empty sum. If `weighted` is true, the answers have the sensitivity of weighted records.
    pub fn new(step: RobustStep, weighted: bool) -> Self {
        let d = step.center.d();
        Self {
            step,
            total: Some(vec![0; d]),
            pending: Vec::new(),
            pending_most: 0,
            scratch: Vec::new(),
            records: 0,
            weights: 0,
            weighted,
        }
    }

    /// The dimension.
    pub fn d(&self) -> usize {
        self.step.center.d()
    }

    /// Adds a record with a weight in units of 2^-20. If a coordinate is not finite, the function returns false, adds
    /// nothing and does not count the record.
    pub fn add(&mut self, record: &Pieces<'_>, weight: u32) -> Result<bool, NotAdded> {
        let total = self.total.as_mut().ok_or(NotAdded::Closed)?;
        if record.d() != total.len() {
            return Err(NotAdded::Dimension(record.d()));
        }
        if weight > 1 << WEIGHT_BITS {
            return Err(NotAdded::Weight);
        }
        let share = f64::from(weight) / f64::from(1u32 << WEIGHT_BITS);
        let measured = self.step.measured(record, share);
        let there = if self.records >= 1 << (61 - self.step.bits) {
            flush(total, &mut self.pending, &mut self.pending_most);
            self.scratch.clear();
            self.scratch.resize(total.len(), 0);
            let there = self.step.add(record, share, &mut self.scratch);
            total.iter_mut().zip(&self.scratch).for_each(|(total, x)| *total = total.saturating_add(*x));
            there
        } else if let Some(Measured { factor, most }) = measured {
            if most > PENDING_MOST {
                self.step.add_usual(record, factor, total);
            } else {
                if self.pending_most + most > i32::MAX as u64 {
                    flush(total, &mut self.pending, &mut self.pending_most);
                }
                self.pending.resize(total.len(), 0);
                self.step.add_usual(record, factor, &mut self.pending);
                self.pending_most += most;
            }
            true
        } else {
            self.step.add_unusual(record, share, total)
        };
        if there {
            self.count(weight);
        }
        Ok(there)
    }

    /// Adds a record at the center. The record is counted, and the sum does not move.
    pub fn add_center(&mut self, weight: u32) {
        self.count(weight.min(1 << WEIGHT_BITS));
    }

    fn count(&mut self, weight: u32) {
        self.records += 1;
        self.weights += i128::from(weight);
    }

    /// The number of records, or the sum of their weights, in units of 2^-bits.
    pub fn size(&self, bits: u32) -> Result<Exact, BadParameter> {
        let bits = checked_bits(bits, COUNT_BITS_MAX)?;
        let bound = super::size::Size::bound(bits);
        let query = Query::of("size", Parameters::of([("bits", bits.into())]));
        if self.weighted {
            return Ok(Exact::vector(vec![self.weights << bits], bound).weighted(WEIGHT_BITS).about(query));
        }
        Ok(Exact::vector(vec![i128::from(self.records) << bits], bound).about(query))
    }

    /// Takes the sum out of the accumulator. Returns `None` if it was already taken.
    pub fn sum(&mut self) -> Option<Exact> {
        // The parameters do not contain the center, because it has as many coordinates as the sum, and the caller knows
        // it.
        let parameters = Parameters::of([("threshold", self.step.threshold.into()), ("bits", self.step.bits.into())]);
        let mut total = self.total.take()?;
        flush(&mut total, &mut self.pending, &mut self.pending_most);
        self.pending = Vec::new();
        let exact = Exact::narrow(total, self.step.sensitivity());
        let exact = exact.about(Query::of(RobustStep::NAME, parameters));
        // Each contribution was multiplied by its weight before it was rounded. The stated sensitivity of weighted
        // answers covers this rounding.
        Some(if self.weighted { exact.weighted(0) } else { exact })
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::dispatch::portable;
    use crate::numeric::float_scale::norm;
    use crate::release::sensitivity::Neighbours;
    use crate::statistics::tests::{moved, opened, values};

    fn step(center: &[f64], threshold: f64, bits: u32) -> RobustStep {
        RobustStep::new(Center::Doubles(center.into()), threshold, bits).unwrap()
    }

    /// The sum of records of weight one that arrive in this order.
    fn arrived<'a>(step: &RobustStep, records: impl Iterator<Item = Pieces<'a>>) -> Vec<i64> {
        let mut sum = Accumulator::new(step.clone(), false);
        for record in records {
            sum.add(&record, 1 << WEIGHT_BITS).unwrap();
        }
        opened(&sum.sum().unwrap())
    }

    fn doubles(record: &[f64]) -> Pieces<'_> {
        Pieces::new(vec![Piece::Doubles(record)])
    }

    fn in_units(values: &[i64], bits: u32) -> Vec<f64> {
        values.iter().map(|&x| scale(x as f64, -(bits as i32))).collect()
    }

    #[test]
    fn a_record_contributes_a_unit_vector_or_a_shorter_one_below_the_threshold() {
        let one = |threshold: f64, x: [f64; 2]| {
            in_units(&values(&step(&[1.0, 1.0], threshold, 32), &DMatrix::from_column_slice(2, 1, &x)), 32)
        };
        assert_eq!(one(0.0, [1.0, 3.0]), [0.0, 1.0]);
        assert_eq!(one(4.0, [1.0, 3.0]), [0.0, 0.5]);
        assert_eq!(one(4.0, [1.0, -7.0]), [0.0, -1.0]);
        assert_eq!(one(4.0, [1e300, 1.0]), [1.0, 0.0]);
        assert_eq!((one(0.0, [1.0, 1.0]), one(4.0, [1.0, 1.0])), (vec![0.0; 2], vec![0.0; 2]));
        let tiny = values(&step(&[0.0; 2], 4.0, 40), &DMatrix::from_column_slice(2, 1, &[1e-200, 0.0]));
        assert_eq!(tiny, [0, 0]);
        let tiny = values(&step(&[0.0; 2], 0.0, 40), &DMatrix::from_column_slice(2, 1, &[0.0, -1e-200]));
        assert_eq!(tiny, [0, -(1 << 40)]);
    }

    #[test]
    fn a_record_contributes_a_vector_of_norm_one_at_every_magnitude() {
        for power in -1070..=999 {
            let x = [3.0, -5.0, 1.0].map(|x| scale(x, power));
            let length = norm(&in_units(&values(&step(&[0.0; 3], 0.0, 32), &DMatrix::from_column_slice(3, 1, &x)), 32));
            assert!((length - 1.0).abs() < 1e-9, "2^{power}: {length}");
        }
    }

    #[test]
    fn a_record_that_turns_around_needs_the_rounding_in_the_sensitivity() {
        for bits in [20, 32, 40] {
            let step = step(&[0.0; 5], 0.0, bits);
            let widest = (0..200).map(|k| {
                let x: Vec<f64> = (1..=5).map(|j| f64::from(k * j).sin()).collect();
                let [a, b] = [1.0, -1.0].map(|sign| DMatrix::from_iterator(5, 1, x.iter().map(|x| sign * x)));
                moved(&values(&step, &a), &values(&step, &b))
            });
            let widest = widest.fold(0.0, f64::max);
            let bound = step.sensitivity().under(Neighbours::Replace);
            assert!(2.0 * f64::from(bits).exp2() < widest && widest <= bound, "{bits}: {widest}");
        }
    }

    #[test]
    fn a_clipped_record_moves_the_sum_by_at_most_one() {
        for threshold in [0.0, 0.3, 1.0, 20.0] {
            let step = step(&[0.1; 4], threshold, 32);
            for k in 0..300 {
                let x: Vec<f64> = (1..=4).map(|j| f64::from(k * j).sin() * f64::from(k % 30 - 15).exp2()).collect();
                let sum = values(&step, &DMatrix::from_column_slice(4, 1, &x));
                assert!(moved(&sum, &[0; 4]) <= step.sensitivity().under(Neighbours::AddRemove), "{threshold} {x:?}");
            }
        }
    }

    /// Records with ordinary coordinates, and a few with extreme or missing coordinates.
    fn records(d: usize, n: usize) -> Vec<Vec<f64>> {
        let ordinary = |i: usize, j: usize| ((7919 * i + 104_729 * j) % 1009) as f64 / 37.0 - 13.0;
        let mut made: Vec<Vec<f64>> = (0..n).map(|j| (0..d).map(|i| ordinary(i, j)).collect()).collect();
        for (j, by) in [(1, 1e300), (2, 1e-200), (3, 0.0)] {
            if j < n {
                made[j].iter_mut().for_each(|x| *x *= by);
            }
        }
        made
    }

    #[test]
    fn records_that_arrive_have_the_bits_of_an_array_in_any_order_and_in_any_pieces() {
        for d in [0, 1, 5, SEGMENT - 1, SEGMENT, 3 * SEGMENT + 7] {
            let records = records(d, 9);
            let matrix = DMatrix::from_iterator(d, records.len(), records.iter().flatten().copied());
            for threshold in [0.0, 5.0] {
                let step = step(&vec![0.25; d], threshold, 34);
                let expected = values(&step, &matrix);
                assert_eq!(arrived(&step, records.iter().map(|x| doubles(x))), expected);
                assert_eq!(arrived(&step, records.iter().rev().map(|x| doubles(x))), expected);
                for cut in [1, 3, 1000] {
                    let layers = |x: &'_ [f64]| {
                        x.chunks(cut)
                            .flat_map(|part| [&part[..part.len() / 2], &part[part.len() / 2..], &[]])
                            .map(<[f64]>::to_vec)
                            .collect::<Vec<_>>()
                    };
                    let split: Vec<Vec<Vec<f64>>> = records.iter().map(|x| layers(x)).collect();
                    let pieces = split.iter().map(|x| Pieces::new(x.iter().map(|part| Piece::Doubles(part)).collect()));
                    assert_eq!(arrived(&step, pieces), expected, "{d} {cut}");
                }
            }
        }
    }

    #[test]
    fn singles_are_the_doubles_that_they_are_as_records_and_as_center() {
        let d = 2 * SEGMENT + 3;
        let singles: Vec<Vec<f32>> = records(d, 7).iter().map(|x| x.iter().map(|x| *x as f32).collect()).collect();
        let center: Vec<f32> = (0..d).map(|i| i as f32 / 7.0).collect();
        let widened: Vec<f64> = center.iter().map(|x| f64::from(*x)).collect();
        let finite: Vec<&Vec<f32>> = singles.iter().filter(|x| x.iter().all(|x| x.is_finite())).collect();
        let wide: Vec<Vec<f64>> = finite.iter().map(|x| x.iter().map(|x| f64::from(*x)).collect()).collect();
        let narrow = RobustStep::new(Center::Singles(center.into()), 0.0, 34).unwrap();
        let expected = arrived(&step(&widened, 0.0, 34), wide.iter().map(|x| doubles(x)));
        let pieces = finite.iter().map(|x| Pieces::new(vec![Piece::Singles(&x[..9]), Piece::Singles(&x[9..])]));
        assert_eq!(arrived(&narrow, pieces), expected);
        let origin = RobustStep::new(Center::Origin(d), 0.0, 34).unwrap();
        let at_zero = arrived(&step(&vec![0.0; d], 0.0, 34), wide.iter().map(|x| doubles(x)));
        assert_eq!(arrived(&origin, wide.iter().map(|x| doubles(x))), at_zero);
    }

    #[test]
    fn the_same_bits_for_any_number_of_threads_and_on_every_instruction_set() {
        let d = PARALLEL + 5;
        let record = &records(d, 1)[0];
        let step = step(&vec![0.5; d], 0.0, 34);
        let whole = arrived(&step, std::iter::once(doubles(record)));
        for threads in [1, 2, 4] {
            pool::set_threads(Some(threads));
            assert_eq!(arrived(&step, std::iter::once(doubles(record))), whole);
        }
        pool::set_threads(None);
        let pieces = doubles(record);
        let squares: f64 =
            (0..d.div_ceil(SEGMENT)).map(|k| portable(Squares(&pieces, &step.center, segment_of(k, d))).0).sum();
        let (factor, rounder) = (1.0 / squares.sqrt(), rounder(34));
        let mut total = vec![0; d];
        for (k, total) in total.chunks_mut(SEGMENT).enumerate() {
            portable(AddSegment {
                record: &pieces,
                center: &step.center,
                range: segment_of(k, d),
                factor,
                rounder,
                total,
            });
        }
        assert_eq!(total, whole);
    }

    #[test]
    fn what_is_pending_is_added_before_it_overflows() {
        let d = 2 * SEGMENT;
        let mut sum = Accumulator::new(step(&vec![0.0; d], 0.0, 36), false);
        let record = vec![1.0; d];
        let mut flushed = 0;
        for _ in 0..200 {
            let before = sum.pending_most;
            sum.add(&doubles(&record), 1 << WEIGHT_BITS).unwrap();
            flushed += usize::from(sum.pending_most < before);
        }
        // Each record adds 2^30 units to every coordinate, so no units stay pending.
        assert_eq!((flushed, sum.pending.len()), (0, 0));
        let mut sum = Accumulator::new(step(&vec![0.0; d], 0.0, 30), false);
        for _ in 0..200 {
            let before = sum.pending_most;
            sum.add(&doubles(&record), 1 << WEIGHT_BITS).unwrap();
            flushed += usize::from(sum.pending_most < before);
        }
        assert!(flushed >= 5, "{flushed}");
        assert_eq!(opened(&sum.sum().unwrap()), vec![200 << 24; d]);
    }

    #[test]
    fn a_record_that_is_no_number_is_not_there() {
        for threshold in [0.0, 3.0] {
            let step = step(&[0.0; 3], threshold, 32);
            let mut sum = Accumulator::new(step.clone(), false);
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert_eq!(sum.add(&doubles(&[1.0, bad, 0.0]), 1 << WEIGHT_BITS), Ok(false));
            }
            assert_eq!(opened(&sum.size(3).unwrap()), [0]);
            assert_eq!(sum.add(&doubles(&[1.7e308, -1.7e308, 0.0]), 1 << WEIGHT_BITS), Ok(true));
            sum.add_center(1 << WEIGHT_BITS);
            assert_eq!(opened(&sum.size(3).unwrap()), [16]);
            let half = (0.5f64.sqrt() * 32f64.exp2()).round() as i64;
            assert_eq!(opened(&sum.sum().unwrap()), [half, -half, 0]);
        }
    }

    #[test]
    fn what_cannot_be_added_is_refused() {
        let mut sum = Accumulator::new(step(&[0.0; 3], 0.0, 32), true);
        assert_eq!(sum.add(&doubles(&[1.0; 2]), 1), Err(NotAdded::Dimension(2)));
        assert_eq!(sum.add(&doubles(&[1.0; 3]), (1 << WEIGHT_BITS) + 1), Err(NotAdded::Weight));
        assert!(sum.sum().is_some() && sum.sum().is_none());
        assert_eq!(sum.add(&doubles(&[1.0; 3]), 1), Err(NotAdded::Closed));
        assert!(sum.size(63).is_err());
    }

    #[test]
    fn more_records_than_64_bits_hold_saturate() {
        let step = step(&[0.0], 0.0, 40);
        let mut sum = Accumulator::new(step, false);
        sum.total = Some(vec![i64::MAX - (1 << 40) - 5]);
        sum.records = 1 << 21;
        for expected in [i64::MAX - 5, i64::MAX, i64::MAX] {
            sum.add(&doubles(&[1.0]), 1 << WEIGHT_BITS).unwrap();
            assert_eq!(sum.total, Some(vec![expected]));
        }
        sum.add(&doubles(&[-1.0]), 1 << WEIGHT_BITS).unwrap();
        assert_eq!(sum.total, Some(vec![i64::MAX - (1 << 40)]));
    }

    proptest! {
        /// Adds a record, or replaces a record and its weight. The coordinates are any bits, and the records arrive in
        /// any order.
        #[test]
        fn a_record_that_arrives_moves_the_sum_by_at_most_the_sensitivity(
            d in 1usize..12,
            coordinates in prop::collection::vec(prop_oneof![any::<u64>().prop_map(f64::from_bits), -3.0..3.0f64, Just(0.0)], 12 * 6),
            weights in prop::collection::vec(prop_oneof![Just(1u32 << 20), 0..=1u32 << 20], 6),
            threshold in prop_oneof![Just(0.0), (-200i32..200).prop_map(|e| f64::from(e).exp2())],
            bits in 20u32..=40,
            weighted in any::<bool>(),
        ) {
            let weight = |i: usize| if weighted { weights[i] } else { 1 << 20 };
            let step = step(&coordinates[..d], threshold, bits);
            let sum = |records: &[usize]| {
                let mut sum = Accumulator::new(step.clone(), weighted);
                for &i in records {
                    sum.add(&doubles(&coordinates[i * 12..i * 12 + d]), weight(i)).unwrap();
                }
                let size = opened(&sum.size(10).unwrap());
                (sum.sum().unwrap(), size)
            };
            let ((a, size), (b, fewer), (c, _)) = (sum(&[1, 2, 3, 4]), sum(&[1, 2, 4]), sum(&[1, 5, 3, 4]));
            let bound = a.sensitivity();
            prop_assert!(moved(&opened(&a), &opened(&b)) <= bound.under(Neighbours::AddRemove));
            prop_assert!(moved(&opened(&a), &opened(&c)) <= bound.under(Neighbours::Replace));
            prop_assert!((0..=1024).contains(&(size[0] - fewer[0])));
        }
    }
}
