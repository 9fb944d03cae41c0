//! Compares the samplers with enumerated distributions, by chi-square tests with alpha = 1e-6 and fixed seeds.

use nalgebra::DMatrix;
use proptest::prelude::*;

use super::*;
use crate::release::sample;
use crate::release::sensitivity::Neighbours;
use crate::release::streams::Streams;
use crate::release::tape::Draw;
use crate::runtime::pool;
use crate::runtime::pulse::Silent;
use crate::sampler::tests::assert_fits;

/// A tape whose seed is its key.
fn tape(seed: u8) -> Draw {
    Draw::new(Streams::from_key([seed; 32]), Neighbours::Replace)
}

/// Both relations are tested, because their scores in one dimension differ.
const RELATIONS: [Neighbours; 2] = [Neighbours::Replace, Neighbours::AddRemove];

fn admitted(points: &DMatrix<f64>) -> Points<'static> {
    Points::admit(points.clone(), None, None, &mut Silent).unwrap()
}

fn rate(epsilon: f64) -> Rate {
    Rate::new((epsilon / (2.0 * std::f64::consts::LN_2) * 2f64.powi(40)) as u64).unwrap()
}

/// All centers of cells in the domain.
fn domain(d: usize, lattice: &Lattice) -> Vec<Vec<i64>> {
    let side = lattice.extent() + lattice.extent() % 2;
    let mut places = vec![vec![]];
    for _ in 0..d {
        let line = (0..side).map(|i| 2 * i + 1 - side);
        places = places.iter().flat_map(|p| line.clone().map(|x| [&p[..], &[x]].concat())).collect();
    }
    places.retain(|p| p.iter().map(|x| x * x).sum::<i64>() <= lattice.extent().pow(2));
    places
}

/// Draws many cells, and compares their frequencies with the weights 2^(-rate * score) over the whole domain.
fn assert_exact(points: &DMatrix<f64>, lattice: &Lattice, epsilon: f64, draws: usize) {
    assert_exact_under(Neighbours::Replace, points, lattice, epsilon, draws);
}

fn assert_exact_under(neighbours: Neighbours, points: &DMatrix<f64>, lattice: &Lattice, epsilon: f64, draws: usize) {
    assert_exact_of(&admitted(points), neighbours, lattice, epsilon, draws);
}

fn assert_exact_of(points: &Points, neighbours: Neighbours, lattice: &Lattice, epsilon: f64, draws: usize) {
    let center = vec![0.0; points.d()];
    let places = domain(points.d(), lattice);
    let classes = points.weighting().map(Weighting::classes);
    let scores = scores(points.dense().view(), classes, &center, lattice, &places.concat(), neighbours);
    let weights: Vec<f64> = scores.iter().map(|&s| (-(s as f64) / 2f64.powi(31) * epsilon / 2.0).exp()).collect();
    let total: f64 = weights.iter().sum();
    let probabilities: Vec<f64> = weights.iter().map(|w| w / total).collect();
    let mut tape = Draw::new(Streams::from_key([5; 32]), neighbours);
    let mut counts = vec![0; places.len()];
    for _ in 0..draws {
        let place = release(points, &center, lattice, rate(epsilon), &mut tape, &mut Silent).unwrap();
        counts[places.binary_search(&place).expect("a released cell lies in the domain")] += 1;
    }
    assert_fits(&counts, &probabilities);
}

#[test]
fn one_dimension_has_the_enumerated_distribution() {
    let lattice = Lattice::new(1.0, 40, 4).unwrap();
    let even = DMatrix::from_row_slice(1, 8, &[-30.0, -6.0, -6.0, -6.0, 2.0, 4.0, 40.0, 40.0]);
    let odd = DMatrix::from_row_slice(1, 7, &[-40.0, -6.0, -6.0, 0.0, 2.0, 2.0, 38.0]);
    for (epsilon, neighbours) in [0.3, 1.0, 5.0].iter().flat_map(|&e| RELATIONS.map(|relation| (e, relation))) {
        assert_exact_under(neighbours, &even, &lattice, epsilon, 40_000);
        assert_exact_under(neighbours, &odd, &lattice, epsilon, 40_000);
    }
}

#[test]
fn two_dimensions_have_the_enumerated_distribution() {
    let lattice = Lattice::new(1.0, 24, 8).unwrap();
    let data = [-20.0, 3.0, 5.0, 5.0, 5.0, 5.0, 6.0, 4.0, -1.0, 0.0, 0.0, 12.0, 23.0, -3.0];
    let points = DMatrix::from_column_slice(2, 7, &data);
    for epsilon in [0.2, 2.0, 8.0] {
        assert_exact(&points, &lattice, epsilon, 20_000);
    }
    let cluster = DMatrix::from_element(2, 30, 4.0);
    assert_exact(&cluster, &lattice, 1.0, 20_000);
}

#[test]
fn three_dimensions_have_the_enumerated_distribution() {
    let lattice = Lattice::new(1.0, 8, 4).unwrap();
    let data = [-7.0, 3.0, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, -4.0, 0.0, 0.0, 5.0, 6.0];
    let points = DMatrix::from_column_slice(3, 5, &data);
    for epsilon in [0.5, 6.0] {
        assert_exact(&points, &lattice, epsilon, 20_000);
    }
}

/// A cloud of standard deviation about `spread` around `offset`, and a tenth of outliers.
fn cloud(d: usize, n: usize, offset: f64, spread: f64) -> DMatrix<f64> {
    let hash = |i: usize, j: usize| {
        let x = ((i * 0x9E37_79B9 + j * 0x85EB_CA6B + 12_345) as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        ((x ^ x >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 11) as f64 / 2f64.powi(53) - 0.5
    };
    let place = |i: usize, j: usize| offset + spread * (0..6).map(|k| hash(i, 8 * j + k)).sum::<f64>();
    DMatrix::from_fn(d, n, |j, i| if i % 10 == 9 { 9e5 * hash(i, j) } else { place(i, j) })
}

#[test]
fn the_release_depends_on_the_seed_and_not_on_the_threads() {
    let lattice = Lattice::new(1.0 / 4096.0, 1_000_000 << 12, 4096).unwrap();
    for d in 1..=3 {
        let points = cloud(d, 9000, 12_345.0, 30.0);
        let run = |threads, seed| {
            pool::set_threads(Some(threads));
            release(&admitted(&points), &vec![0.0; d], &lattice, rate(1.0), &mut tape(seed), &mut Silent).unwrap()
        };
        assert_eq!(run(1, 1), run(3, 1));
        assert_ne!(run(2, 1), run(2, 2));
    }
    pool::set_threads(None);
}

#[test]
fn a_wide_domain_is_searched_to_the_median() {
    let lattice = Lattice::new(1.0 / 4096.0, 1_000_000 << 12, 4096).unwrap();
    for d in 1..=3 {
        let points = cloud(d, 1000, 12_345.0, 30.0);
        let place = release(&admitted(&points), &vec![0.0; d], &lattice, rate(1.0), &mut tape(3), &mut Silent).unwrap();
        for x in place {
            assert!((x as f64 / 4096.0 - 12_345.0).abs() < 10.0, "{x}");
        }
    }
}

#[test]
fn an_interrupt_ends_the_run() {
    struct Stop;
    impl Pulse for Stop {
        fn beat(&mut self, _done: f64) -> Result<(), Interrupted> {
            Err(Interrupted)
        }
    }
    let lattice = Lattice::new(1.0, 1 << 20, 16).unwrap();
    let points = cloud(2, 100, 0.0, 1.0);
    let stopped = release(&admitted(&points), &[0.0; 2], &lattice, rate(1.0), &mut tape(3), &mut Stop);
    assert_eq!(stopped, Err(Error::Interrupted));
}

#[test]
fn no_records_have_the_uniform_distribution_and_replay_against_one() {
    use crate::release::recording::{Record, Replay};
    let lattice = Lattice::new(1.0, 8, 4).unwrap();
    for d in 1..=3 {
        assert_exact(&DMatrix::zeros(d, 0), &lattice, 1.0, 20_000);
        let (empty, one) = (DMatrix::zeros(d, 0), DMatrix::from_element(d, 1, 7.0));
        for (here, there) in [(&empty, &one), (&one, &empty)] {
            let mut record = Record::new(Streams::from_key([5; 32]), Neighbours::AddRemove);
            let center = vec![0.0; d];
            let place = release(&admitted(here), &center, &lattice, rate(3.0), &mut record, &mut Silent).unwrap();
            let stated = sensitivity(d, false).unwrap().under(Neighbours::AddRemove);
            assert_eq!(record.entries()[0].request.sensitivity, stated);
            let entries = record.entries().to_vec();
            let mut replay = Replay::new(Streams::from_key([5; 32]), Neighbours::AddRemove, entries);
            assert_eq!(release(&admitted(there), &center, &lattice, rate(3.0), &mut replay, &mut Silent), Ok(place));
        }
    }
}

#[test]
fn a_record_more_moves_the_score_on_the_line_by_one_half() {
    let lattice = Lattice::new(1.0, 40, 4).unwrap();
    let stated = sensitivity(1, false).unwrap().under(Neighbours::AddRemove) as u64;
    let data = [-30.0, -6.0, -6.0, 2.0, 4.0, 40.0, 40.0];
    let places: Vec<i64> = (-43..44).step_by(2).collect();
    let points = |data: &[f64]| DMatrix::from_row_slice(1, data.len(), data);
    let at = |data: &[f64]| scores(points(data).as_view(), None, &[0.0], &lattice, &places, Neighbours::AddRemove);
    let mut widest = 0;
    for n in 0..data.len() {
        for added in [-40.0, 0.0, 3.0, 40.0] {
            let pairs = at(&data[..n]).into_iter().zip(at(&[&data[..n], &[added]].concat()));
            widest = pairs.map(|(a, b)| a.abs_diff(b)).fold(widest, u64::max);
        }
    }
    assert_eq!((widest, stated), (1 << 30, 1 << 30));
}

#[test]
fn the_score_on_the_line_is_half_of_the_records_to_add() {
    let lattice = Lattice::new(1.0, 40, 4).unwrap();
    let places: Vec<i64> = (-43..44).step_by(2).collect();
    let data = [-30.0, -6.0, -6.0, 2.0, 4.0, 40.0, 40.0];
    for n in 0..=data.len() {
        let records = DMatrix::from_row_slice(1, n, &data[..n]);
        let found = scores(records.as_view(), None, &[0.0], &lattice, &places, Neighbours::AddRemove);
        for (&y, score) in places.iter().zip(found) {
            let side = |outside: &dyn Fn(f64) -> bool| 2 * data[..n].iter().filter(|x| outside(**x)).count();
            let farther = side(&|x| x < (y - 4) as f64).max(side(&|x| x > (y + 4) as f64));
            // Adds copies at the point of the window that is nearest to the majority of the records, one copy for each
            // record in excess of half.
            assert_eq!(score, (farther.saturating_sub(n) as u64) << 30, "{n} {y}");
        }
    }
}

#[test]
fn draws_of_weighted_records_are_exact() {
    for d in 1..=3 {
        let points = DMatrix::from_fn(d, 7, |i, j| [3.0, -5.0, 8.0, 0.0, 1.0, -9.0, 6.0][(2 * i + j) % 7]);
        let weights = [1 << 20, 1 << 19, 300_000, 0, 77, 1 << 20, 100];
        let weighted = sample::weighted(&admitted(&points), &sample::Coins::of(tape(9).hidden()), 0, &weights).unwrap();
        let lattice = Lattice::new(1.0, if d == 1 { 40 } else { 10 }, 4).unwrap();
        for neighbours in RELATIONS {
            assert_exact_of(&weighted, neighbours, &lattice, 3.0, 4000);
        }
    }
}

fn any_bits() -> impl Strategy<Value = f64> {
    let special = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX), Just(5e-324), Just(0.0)];
    prop_oneof![any::<u64>().prop_map(f64::from_bits), special, -3.0..3.0f64]
}

proptest! {
    /// Takes records and centers with any bits, on lattices of any size.
    #[test]
    fn any_bits_have_scores_that_move_by_no_more_than_their_sensitivity(
        d in 1usize..4,
        n in 1usize..9,
        exponent in -1074i32..1024,
        (reach, smoothing) in prop_oneof![Just((40i64, 4i64)), Just((1 << 51, 2)), Just((1 << 51, 1 << 51))],
        center in prop::collection::vec(any_bits(), 3),
        coordinates in prop::collection::vec(any_bits(), 3 * 10),
        places in prop::collection::vec(-20i64..20, 30),
    ) {
        let step = if exponent < -1022 { 5e-324 } else { f64::from(exponent).exp2() };
        let lattice = Lattice::new(step, reach, smoothing).unwrap();
        let origin = vec![0.0; d];
        // Odd coordinates are centers of cells.
        let places: Vec<i64> = places[..places.len() / d * d].iter().map(|place| 2 * place + 1).collect();
        let at = |points: &DMatrix<f64>, neighbours| {
            let points = Points::admit(points, None, Some(&origin), &mut Silent).unwrap();
            scores(points.dense().view(), None, &center[..d], &lattice, &places, neighbours)
        };
        let points = DMatrix::from_column_slice(d, n, &coordinates[..d * n]);
        let mut replaced = points.clone();
        replaced.column_mut(n - 1).copy_from_slice(&coordinates[27..27 + d]);
        let removed = points.clone().remove_column(n - 1);
        let stated = sensitivity(d, false).unwrap();
        for (other, neighbours) in [(&replaced, Neighbours::Replace), (&removed, Neighbours::AddRemove)] {
            for (one, other) in at(&points, neighbours).into_iter().zip(at(other, neighbours)) {
                prop_assert!(one.abs_diff(other) as f64 <= stated.under(neighbours), "{one} {other} {neighbours:?}");
            }
        }
    }
}

proptest! {
    /// Takes weighted records at any positions. A record is added, removed, or replaced together with its weight.
    #[test]
    fn weighted_scores_move_by_no_more_than_their_sensitivity(
        d in 1usize..4,
        coordinates in prop::collection::vec(prop_oneof![-30.0..30.0f64, Just(0.0), Just(1e300)], 3 * 10),
        weights in prop::collection::vec(prop_oneof![Just(0u32), Just(1), Just(1 << 20), 0..=1u32 << 20], 10),
        n in 1usize..9,
        places in prop::collection::vec(-12i64..12, 30),
    ) {
        let lattice = Lattice::new(1.0, 40, 4).unwrap();
        let places: Vec<i64> = places[..places.len() / d * d].iter().map(|place| 2 * place + 1).collect();
        let stream = || Draw::new(Streams::from_key([3; 32]), Neighbours::Replace).hidden();
        let at = |rows: &[usize]| {
            let flat: Vec<f64> = rows.iter().flat_map(|&row| coordinates[3 * row..3 * row + d].to_vec()).collect();
            let points = DMatrix::from_column_slice(d, rows.len(), &flat);
            let points = Points::admit(points, None, None, &mut Silent).unwrap();
            let own: Vec<u32> = rows.iter().map(|&row| weights[row]).collect();
            let points = sample::weighted(&points, &sample::Coins::of(stream()), 0, &own).unwrap();
            let classes = points.weighting().unwrap().classes();
            scores(points.dense().view(), Some(classes), &vec![0.0; d], &lattice, &places, Neighbours::Replace)
        };
        let rows: Vec<usize> = (0..n).collect();
        let replaced = [&rows[..n - 1], &[9]].concat();
        let stated = sensitivity(d, true).unwrap();
        for (other, neighbours) in [(&replaced[..], Neighbours::Replace), (&rows[..n - 1], Neighbours::AddRemove)] {
            for (one, other) in at(&rows).into_iter().zip(at(other)) {
                prop_assert!(one.abs_diff(other) as f64 <= stated.under(neighbours), "{one} {other} {neighbours:?}");
            }
        }
    }
}
