//! Tests for every statistic: its sensitivity under both relations, sums of shards, and an answer for any input.

use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

use super::ball_counts::LargestBallCounts;
use super::cluster_gradients::{ClusterGradients, Weights};
use super::curvature::Curvature;
use super::directions::{self, GradientAndDirections};
use super::distance_counts::DistanceCounts;
use super::gradient::Gradient;
use super::grid_cells::GridCells;
use super::hessian::Hessian;
use super::mean_shift::MeanShift;
use super::objective_differences::ObjectiveDifferences;
use super::pair_counts::PairCounts;
use super::ranks::Ranks;
use super::robust_step::{Center, RobustStep};
use super::shells::ShellsAndDirections;
use super::size::Size;
use super::{Issued, Statistic};
use crate::numeric::float_scale::{LARGEST, norm};
use crate::release::exact::{Exact, Form, Query};
use crate::release::recording::Record;
use crate::release::sample;
use crate::release::sensitivity::Neighbours::{self, AddRemove, Replace};
use crate::release::streams::Streams;
use crate::release::tape::{Draw, Tape};
use crate::runtime::points::Points;
use crate::runtime::pool;
use crate::runtime::pulse::Silent;

/// The exact values of an answer, read from the recording of a tape. No other function gives access to them.
pub(crate) fn opened(exact: &Exact) -> Vec<i64> {
    let mut tape = Record::new(Streams::from_key([1; 32]), Replace);
    match exact.form() {
        // The range is at least 1 here, because equal candidates have the range 0.
        Form::Scores => drop(tape.choose("test", exact, 1.0, 1).unwrap()),
        Form::Vector | Form::Table => {
            for index in 0..exact.len() {
                tape.laplace("test", &exact.pick(index).unwrap(), (1, 1)).unwrap();
            }
        }
    }
    tape.entries().iter().flat_map(|entry| entry.exact.clone()).collect()
}

/// The values of an answer about records. Records that are not finite are moved to the origin.
pub(crate) fn values(statistic: &dyn Statistic, records: &DMatrix<f64>) -> Vec<i64> {
    opened(&statistic.exact(&admitted(records), &mut Silent).unwrap().about(Query::of("test", statistic.parameters())))
}

fn admitted(records: &DMatrix<f64>) -> Points<'static> {
    Points::admit(records.clone(), None, Some(&vec![0.0; records.nrows()]), &mut Silent).unwrap()
}

/// Every statistic at a point, and several statistics also with other parameters. n is the public number of records.
pub(crate) fn statistics(theta: &[f64], scale: f64, n: usize) -> Vec<Issued> {
    super::examples(theta, scale, n)
}

/// The given number if it can be a radius, and otherwise 1.
pub(crate) fn radius(scale: f64) -> f64 {
    if (1e-300..1e300).contains(&scale) { scale } else { 1.0 }
}

/// Ascending radii up to a large one.
pub(crate) fn radii(scale: f64) -> Vec<f64> {
    vec![0.0, radius(scale) / 2.0, radius(scale), 1e300]
}

/// The distance of two vectors.
pub(crate) fn moved(a: &[i64], b: &[i64]) -> f64 {
    norm(&a.iter().zip(b).map(|(a, b)| (a - b) as f64).collect::<Vec<_>>())
}

/// The distance of two answers, in the norm that belongs to their form.
fn distance(form: Form, a: &[i64], b: &[i64]) -> f64 {
    let moved: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a - b) as f64).collect();
    let fold = |f: fn(f64, f64) -> f64| moved.iter().copied().reduce(f).unwrap_or(0.0);
    match form {
        Form::Vector => norm(&moved),
        Form::Table => fold(f64::max).max(-fold(f64::min)),
        Form::Scores => fold(f64::max) - fold(f64::min),
    }
}

/// Checks that the answers about two neighbors differ by at most the stated sensitivity.
fn holds(statistic: &Issued, a: &DMatrix<f64>, b: &DMatrix<f64>, neighbours: Neighbours) -> Result<(), String> {
    let form = statistic.answer(&admitted(a), &mut Silent).unwrap().form();
    let moved = distance(form, &values(&**statistic, a), &values(&**statistic, b));
    let bound = statistic.sensitivity().under(neighbours);
    let name = statistic.name();
    if moved <= bound { Ok(()) } else { Err(format!("{name} moved by {moved}, {bound} is stated, {neighbours:?}")) }
}

/// Any bits of a double, with many extremes, ties and ordinary numbers.
fn odd() -> impl Strategy<Value = f64> {
    let special = prop::sample::select(vec![
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        -f64::MAX,
        LARGEST,
        -LARGEST,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        0.0,
        -0.0,
        1e-162,
        1e16,
    ]);
    prop_oneof![
        2 => any::<u64>().prop_map(f64::from_bits),
        3 => special,
        3 => (-3i32..4).prop_map(f64::from),
        3 => -3.0..3.0f64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bits_have_bounded_answers_that_move_by_no_more_than_their_sensitivity(
        d in prop_oneof![1usize..6, Just(35usize)],
        n in 1usize..12,
        theta in prop::collection::vec(odd(), 35),
        scale in odd(),
        coordinates in prop::collection::vec(odd(), 35 * 12),
        place in 0usize..12,
    ) {
        let theta = &theta[..d];
        let points = DMatrix::from_column_slice(d, n, &coordinates[..d * n]);
        let record = DVector::from_column_slice(&coordinates[coordinates.len() - d..]);
        let mut replaced = points.clone();
        replaced.set_column(place % n, &record);
        for statistic in statistics(theta, scale, n) {
            holds(&statistic, &points, &replaced, Replace).map_err(TestCaseError::fail)?;
            // The last record is removed, because the coupling of hidden pairings is for the last record.
            let gone = if statistic.adds_over_records() { place % n } else { n - 1 };
            let removed = points.clone().remove_column(gone);
            holds(&statistic, &points, &removed, AddRemove).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn answers_of_shards_add_up_to_that_of_the_whole(
        d in 1usize..6,
        theta in prop::collection::vec(odd(), 6),
        scale in odd(),
        coordinates in prop::collection::vec(odd(), 6 * 20),
        cuts in prop::array::uniform2(0usize..=20),
    ) {
        let points = DMatrix::from_column_slice(d, 20, &coordinates[..d * 20]);
        let (low, high) = (cuts[0].min(cuts[1]), cuts[0].max(cuts[1]));
        let parts = [(0, low), (low, high - low), (high, 20 - high)]
            .map(|(first, count)| admitted(&points.columns(first, count).into_owned()));
        let whole = Points::concatenate(&parts.each_ref()).unwrap();
        for statistic in statistics(&theta[..d], scale, 20).into_iter().filter(|s| s.adds_over_records()) {
            let answer = |points: &Points| statistic.answer(points, &mut Silent).unwrap();
            let shards = parts.each_ref().map(answer);
            let sum = Exact::sum(&shards.each_ref()).unwrap();
            prop_assert_eq!(opened(&sum), opened(&answer(&whole)), "{}", statistic.name());
        }
    }
}

/// Every row with its weight. A hidden coin rounds the weight.
fn weighted(records: &DMatrix<f64>, weights: &[u32]) -> Points<'static> {
    let stream = Draw::new(Streams::from_key([4; 32]), Replace).hidden();
    sample::weighted(&admitted(records), &sample::Coins::of(stream), 0, &weights[..records.ncols()]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Checks the stated sensitivity if a record is removed, if a record and its weight are replaced, and if only its
    /// weight changes.
    #[test]
    fn answers_about_weighted_records_move_by_no_more_than_they_say(
        d in prop_oneof![1usize..6, Just(35usize)],
        n in 1usize..12,
        theta in prop::collection::vec(odd(), 35),
        scale in odd(),
        coordinates in prop::collection::vec(odd(), 35 * 12),
        weights in prop::collection::vec(prop_oneof![Just(0u32), Just(1), Just(1 << 20), 0..=1u32 << 20], 13),
    ) {
        let points = DMatrix::from_column_slice(d, n, &coordinates[..d * n]);
        let mut replaced = points.clone();
        replaced.set_column(n - 1, &DVector::from_column_slice(&coordinates[coordinates.len() - d..]));
        let mut changed = weights.clone();
        changed[n - 1] = weights[12];
        let removed = points.clone().remove_column(n - 1);
        for statistic in statistics(&theta[..d], scale, n) {
            if !statistic.adds_over_records() && statistic.coins().is_none() {
                continue;
            }
            let answer = |points: &DMatrix<f64>, weights: &[u32]| {
                statistic.answer(&weighted(points, weights), &mut Silent).unwrap()
            };
            let here = answer(&points, &weights);
            let neighbours = [
                (answer(&replaced, &changed), Replace),
                (answer(&points, &changed), Replace),
                (answer(&removed, &weights), AddRemove),
            ];
            for (there, relation) in neighbours {
                prop_assert_eq!(here.sensitivity(), there.sensitivity());
                let (moved, stated) =
                    (distance(here.form(), &opened(&here), &opened(&there)), here.sensitivity().under(relation));
                prop_assert!(moved <= stated, "{} moved by {moved}, {stated} is stated", statistic.name());
            }
        }
    }

    #[test]
    fn a_weighted_sum_is_the_sum_of_copies(
        d in 1usize..6,
        theta in prop::collection::vec(-3.0..3.0f64, 6),
        coordinates in prop::collection::vec(-3.0..3.0f64, 6 * 12),
        copies in prop::collection::vec(0usize..5, 12),
    ) {
        let points = DMatrix::from_column_slice(d, 12, &coordinates[..d * 12]);
        let times: Vec<usize> = (0..12).flat_map(|row| vec![row; copies[row]]).collect();
        let copied = points.select_columns(&times);
        // The weights are quarters of the cap. So four times the weighted answer is the answer about copies, up to
        // rounding and the clamp.
        let weights: Vec<u32> = copies.iter().map(|&copies| (copies as u32) << 18).collect();
        for statistic in statistics(&theta[..d], 1.0, 12).into_iter().filter(|s| s.adds_over_records()) {
            let here = opened(&statistic.answer(&weighted(&points, &weights), &mut Silent).unwrap());
            let there = values(&*statistic, &copied);
            for (here, there) in here.into_iter().zip(there) {
                prop_assert!((4 * here - there).abs() <= 4, "{}: {here} {there}", statistic.name());
            }
        }
    }
}

#[test]
fn weighted_answers_are_the_same_for_any_number_of_threads() {
    let points = DMatrix::from_fn(3, 30_000, |i, j| ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0);
    let weights: Vec<u32> = (0..30_000).map(|j| ((j * 7907) % 1_048_577) as u32).collect();
    let points = weighted(&points, &weights);
    let answers = || -> Vec<Vec<i64>> {
        let all = statistics(&[13.0; 3], 5.0, 10);
        let sums = all.iter().filter(|s| s.adds_over_records());
        sums.map(|s| opened(&s.answer(&points, &mut Silent).unwrap())).collect()
    };
    let whole = answers();
    for threads in [1, 2, 4] {
        pool::set_threads(Some(threads));
        assert_eq!(answers(), whole);
    }
    pool::set_threads(None);
}

#[test]
fn what_is_neither_a_sum_nor_has_coins_has_no_answer_about_weighted_records() {
    let points = weighted(&DMatrix::zeros(2, 5), &[1 << 20; 5]);
    for statistic in statistics(&[0.0; 2], 1.0, 5) {
        let exact = statistic.answer(&points, &mut Silent).unwrap();
        let bounded = [Replace, AddRemove].map(|relation| exact.sensitivity().under(relation).is_finite());
        assert_eq!(bounded, [statistic.name() != "largest ball counts"; 2], "{}", statistic.name());
    }
}

#[test]
fn only_answers_of_one_question_about_different_records_add_up() {
    let [a, b] = [1.0, 2.0].map(|x| admitted(&DMatrix::from_element(2, 9, x)));
    let both = Points::concatenate(&[&a, &b]).unwrap();
    let part = sample::uniform(&a, Draw::new(Streams::from_key([3; 32]), Replace).hidden(), 4).unwrap();
    let again = statistics(&[0.5, 1.5], 1.0, 9);
    for (one, other) in statistics(&[0.5, 1.5], 1.0, 9).iter().zip(&again) {
        let added = |s: &Issued, points: &Points, t: &Issued, others: &Points| {
            let answers = [s.answer(points, &mut Silent).unwrap(), t.answer(others, &mut Silent).unwrap()];
            Exact::sum(&answers.each_ref()).is_ok()
        };
        let name = one.name();
        assert_eq!(added(one, &a, one, &b), one.adds_over_records(), "{name}");
        assert!(!added(one, &a, other, &b), "{name}: a query that is created again is another query");
        for overlapping in [&a, &both, &part] {
            assert!(!added(one, &a, one, overlapping), "{name}: records in common");
        }
    }
}

#[test]
fn no_records_and_one_record_have_answers() {
    for d in [0, 1, 2, 3, 40] {
        for n in [0, 1] {
            let points = DMatrix::from_element(d, n, 1.5);
            for statistic in statistics(&vec![0.5; d], 1.0, n) {
                let zero = values(&*statistic, &points).iter().all(|x| *x == 0);
                assert!(n == 1 || zero, "{} of nothing, d = {d}", statistic.name());
            }
        }
    }
}

#[test]
fn every_statistic_says_what_it_is() {
    let of = |f: fn(&Issued) -> bool| -> Vec<&'static str> {
        statistics(&[0.0; 3], 1.0, 5).iter().filter(|s| f(s)).map(|s| s.name()).collect()
    };
    assert_eq!(of(|s| s.dimension().is_some_and(|d| d != 3)), Vec::<&str>::new());
    assert_eq!(of(|s| !s.adds_over_records()), ["pair counts", "pair counts", "largest ball counts"]);
    assert_eq!(of(|s| s.dimension().is_none()), ["size", "pair counts", "pair counts", "largest ball counts"]);
    assert_eq!(of(|s| s.sensitivity().under(AddRemove).is_infinite()), ["largest ball counts"]);
}

#[test]
fn sensitivities_are_those_of_the_proofs() {
    let both = |s: crate::release::sensitivity::Sensitivity| (s.under(Replace), s.under(AddRemove));
    let (replaced, added) = both(Gradient::bound(5, 32));
    assert!(replaced == 2.0 * added && added > 2f64.powi(32) && added < 2f64.powi(32) + 2.0);
    assert_eq!(both(MeanShift::bound(5, 32)), (replaced, added));
    assert_eq!(both(RobustStep::bound(5, 32)), (replaced, added));
    let (replaced, added) = both(Ranks::bound(4, 10, false));
    assert!(replaced == added && replaced > 2048.0 && replaced < 2049.0);
    assert_eq!(both(Ranks::bound(4, 10, true)), (replaced, added / 2.0));
    assert_eq!(both(DistanceCounts::bound(10, (0, 0)).unwrap()), (1024.0, 1024.0));
    assert_eq!(both(DistanceCounts::bound(10, (1, 1)).unwrap()), (1024.0, 512.0));
    assert_eq!(both(DistanceCounts::bound(10, (3, 3)).unwrap()), (1024.0, 640.0));
    assert_eq!(both(Size::bound(10)), (0.0, 1024.0));
    assert_eq!(both(Curvature::bound(20)), (1048576.0, 1048576.0));
    let unit = 2f64.powi(40);
    let near = |value: f64, expected: f64| value > expected * unit && value < (expected + 1e-5) * unit;
    // If a record is replaced, weights up to min(sqrt(2), 1/(1 - 1/d)) of the curvature do not change the sensitivity.
    for (d, weight, replaced, added) in [
        (2, 2f64.sqrt(), 2f64.sqrt(), 2f64.sqrt()),
        (3, 1.0, 2f64.sqrt(), (1.0f64 + 4.0 / 9.0).sqrt()),
        (10, 10.0 / 9.0, 2f64.sqrt(), 2f64.sqrt()),
        (10, 2.0, (1.0f64 + 3.24).sqrt(), (1.0f64 + 3.24).sqrt()),
        (1, 1.0, 2f64.sqrt(), 1.0),
    ] {
        let found = both(Hessian::bound(d, weight, 40).unwrap());
        assert!(near(found.0, replaced) && near(found.1, added), "{d} {weight} {found:?}");
    }
    let found = both(GradientAndDirections::bound(3, directions::WEIGHT_MAX, 40).unwrap());
    assert!(near(found.0, 2.0) && near(found.1, 1.5f64.sqrt()), "{found:?}");
    let found = both(ShellsAndDirections::bound(3, 2.0, 40).unwrap());
    assert!(near(found.0, 10f64.sqrt()) && near(found.1, 5f64.sqrt()), "{found:?}");
    assert_eq!(both(GridCells::bound(0).unwrap()), (2f64.sqrt().next_up(), 1.0));
    let found = both(ClusterGradients::bound(4, 3, Weights { counts: 1.0, shells: 0.5 }, 40).unwrap());
    assert!(near(found.0, 4.5f64.sqrt()) && near(found.1, 1.5), "{found:?}");
    assert_eq!(both(PairCounts::bound(16, 1)), (32.0, 32.0));
    assert_eq!(both(LargestBallCounts::bound(3, 4)), (5.0, f64::INFINITY));
    assert_eq!(both(LargestBallCounts::bound(1, 0)), (0.0, f64::INFINITY));
    let line = DMatrix::from_row_slice(1, 2, &[0.0, 0.75]);
    let (replaced, added) = both(ObjectiveDifferences::bound(line.as_view()).unwrap());
    assert!(replaced <= 2.0 * added && added <= 0.75 * 2f64.powi(32) + 3.0, "{replaced} {added}");
}

#[test]
fn parameters_that_make_no_question_are_refused() {
    let stream = || Draw::new(Streams::from_key([3; 32]), Replace).hidden();
    assert!(Gradient::new(&[0.0], 41).is_err() && MeanShift::new(&[0.0], 1.0, 41).is_err());
    assert!(Hessian::new(&[0.0], 1.0, 1.0, 41).is_err() && Hessian::new(&[0.0; 4001], 1.0, 1.0, 32).is_err());
    let both = GradientAndDirections::new;
    assert!(both(&[0.0], 0.5, 41).is_err() && both(&[0.0; 4001], 0.5, 32).is_err() && both(&[0.0], 0.8, 32).is_err());
    for weight in [0.0, -1.0, f64::NAN, 2.1] {
        assert!(Hessian::new(&[0.0], 1.0, weight, 32).is_err() && Hessian::bound(1, weight, 32).is_err());
    }
    for radius in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Hessian::new(&[0.0], radius, 1.0, 32).is_err() && Curvature::new(&[0.0], radius, 32).is_err());
    }
    for radius in [0.0, -1.0, f64::NAN, f64::INFINITY, 5e-324] {
        assert!(MeanShift::new(&[0.0], radius, 32).is_err());
    }
    for threshold in [-1.0, f64::NAN, f64::INFINITY, 5e-324, 1e300] {
        assert!(RobustStep::new(Center::Origin(1), threshold, 32).is_err());
    }
    assert!(RobustStep::new(Center::Origin(1), 0.0, 41).is_err());
    assert!(Ranks::new(&[0.0], 63, false).is_err() && DistanceCounts::new(&[0.0], 63, (0, 0)).is_err());
    assert!(Curvature::new(&[0.0], 1.0, 19).is_err() && Curvature::new(&[0.0], 1.0, 63).is_err());
    assert!(DistanceCounts::new(&[0.0], 2, (1, 3)).is_err() && DistanceCounts::bound(2, (5, 2)).is_err());
    assert!(PairCounts::new(vec![1.0], 1, stream(), 2, (1, 3)).is_err() && Size::new(63).is_err());
    for radii in [vec![1.0, 0.5], vec![-1.0], vec![f64::NAN], vec![f64::INFINITY]] {
        assert!(PairCounts::new(radii.clone(), 1, stream(), 0, (0, 0)).is_err());
        assert!(LargestBallCounts::new(radii, 1, 5).is_err());
    }
    assert!(PairCounts::new(vec![1.0], 1, stream(), 63, (0, 0)).is_err());
    assert!(PairCounts::new(vec![1.0], (1 << 24) + 1, stream(), 0, (0, 0)).is_err());
    assert!(LargestBallCounts::new(vec![1.0], 1, 1 << 32).is_err());
    assert!(ObjectiveDifferences::new(DMatrix::zeros(2, 0).as_view()).is_err());
}

#[test]
fn more_records_than_were_stated_cannot_be_released() {
    let statistic = Issued::new(LargestBallCounts::new(vec![1.0], 2, 3).unwrap());
    let answer = |n| statistic.answer(&admitted(&DMatrix::zeros(2, n)), &mut Silent).unwrap().pick(0).unwrap();
    let mut tape = Draw::new(Streams::from_key([3; 32]), Replace);
    assert!(tape.laplace("test", &answer(3), (1, 5)).is_ok());
    assert!(tape.laplace("test", &answer(4), (1, 5)).is_err());
    assert!(Draw::new(Streams::from_key([3; 32]), AddRemove).laplace("test", &answer(3), (1, 5)).is_err());
}

/// The tape, and not the statistic, clamps a count on a fine lattice.
#[test]
fn totals_beyond_62_bits_are_clamped_once() {
    let points = DMatrix::from_element(1, 3, 0.0);
    assert_eq!(values(&Ranks::new(&[1.0], 62, false).unwrap(), &points), [1 << 62]);
    assert_eq!(values(&Ranks::new(&[-1.0], 62, false).unwrap(), &points), [0]);
}
