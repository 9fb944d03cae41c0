//! Posteriors of noisy binary searches: for an index of a grid, and for the median of every coordinate at once.
//!
//! A posterior is a probability distribution of the position of the result: over indices, or over cells of the line
//! relative to a public center. A query is made at the point that divides the probability mass in half. The noisy
//! answer is converted to log-odds, by which the mass on the two sides of this point is weighted. All this is
//! post-processing of noisy answers, so a poor prior leads to more queries but does not affect the privacy.

use std::ops::RangeInclusive;

/// The largest change of the log-odds by one answer. The limit allows later answers to correct a wrong answer.
const CAUTION: f64 = 30.0;

/// Reduces the mass of the less likely of two parts. `evidence` is the log-odds that the result lies in the part with
/// the larger values. The mass is first divided by its total, so that the total stays near 1.
fn weigh((smaller, larger): (&mut [f64], &mut [f64]), evidence: f64, total: f64) {
    // Evidence that is NaN has no effect.
    let unlikely = (-evidence.clamp(-CAUTION, CAUTION).abs()).min(0.0).exp();
    let (below, beyond) = if evidence < 0.0 { (1.0, unlikely) } else { (unlikely, 1.0) };
    for (part, weight) in [(smaller, below), (larger, beyond)] {
        let factor = weight / total;
        part.iter_mut().for_each(|mass| *mass *= factor);
    }
}

/// The posterior over the indices of a grid.
pub struct Grid {
    mass: Vec<f64>,
    asked: usize,
    total: f64,
}

impl Grid {
    /// A prior over 0, ..., size - 1. Indices within `width` of `likely` are about equally likely. The weight of other
    /// indices decreases with the square of their distance.
    pub fn new(size: usize, likely: f64, width: f64) -> Self {
        assert!(size > 0 && width > 0.0, "a grid of {size} indices with a prior of width {width}");
        let prior = |index: usize| {
            let far = width + (index as f64 - likely).abs();
            1.0 / (far * far)
        };
        Self { mass: (0..size).map(prior).collect(), asked: 0, total: 1.0 }
    }

    /// Returns the index for the next query. The mass up to this index and the mass beyond it are as equal as possible.
    pub fn ask(&mut self) -> usize {
        self.total = self.mass.iter().sum();
        let half = 0.5 * self.total;
        let (mut before, mut place) = (0.0, 0);
        let last = self.mass.len().saturating_sub(2);
        while place < last && before + self.mass[place] < half {
            before += self.mass[place];
            place += 1;
        }
        let nearer_before = place > 0 && half - before < before + self.mass[place] - half;
        self.asked = if nearer_before { place - 1 } else { place };
        self.asked
    }

    /// Updates the posterior. `evidence` is the log-odds that the result lies beyond the index of the last query.
    pub fn learn(&mut self, evidence: f64) {
        weigh(self.mass.split_at_mut(self.asked + 1), evidence, self.total);
    }

    /// The most likely index.
    pub fn mode(&self) -> usize {
        (1..self.mass.len()).fold(0, |best, index| if self.mass[index] > self.mass[best] { index } else { best })
    }

    /// The probability of all indices farther than `around` from the most likely index.
    pub fn doubt(&self, around: usize) -> f64 {
        let mode = self.mode();
        let near: f64 = self.mass[mode.saturating_sub(around)..(mode + around + 1).min(self.mass.len())].iter().sum();
        1.0 - near / self.mass.iter().sum::<f64>()
    }
}

/// The octaves of the distance from the public center that are likely a priori. The weight of another octave decreases
/// with the square of its distance from the likely octaves.
#[derive(Clone, Copy)]
pub enum Likely {
    /// Values near the current scale are likely, whose octave is the first octave. Values near 1 are likely, too, in
    /// case the scale is wrong.
    First,
    /// Values near this octave are likely, with this width in octaves. This is for searches in which the scale is not
    /// known.
    Around(f64, f64),
}

/// A prior on the line that is uniform within each octave, for positive and negative values. With this prior a few
/// queries find any distance.
struct Octaves {
    edges: Vec<f64>,
    below: Vec<f64>,
}

impl Octaves {
    /// The first cell reaches from the origin to 2^first.
    fn new(first: i32, last: i32, limit: f64, likely: Likely) -> Self {
        let tops: Vec<f64> = (first..=last).map(|octave| f64::from(octave.min(1001)).exp2().min(limit)).collect();
        let weights = (first..=last).map(|octave| match likely {
            Likely::First => {
                let (far, large) = (1.0 + f64::from(octave - first), 8.0 + f64::from(octave.abs()));
                1.0 / (far * far) + 0.25 / (large * large)
            }
            Likely::Around(middle, width) => (width + (f64::from(octave) - middle).abs()).powi(-2),
        });
        let edges = tops.iter().rev().map(|top| -top).chain([0.0]).chain(tops.iter().copied()).collect();
        let mut below = vec![0.0];
        let mut total = 0.0;
        for weight in weights.clone().rev().chain(weights) {
            total += weight;
            below.push(total);
        }
        Self { edges, below }
    }

    /// An edge at the point `at`. `near` is the likely range of the number of octave edges at or below this point.
    fn edge(&self, at: f64, near: RangeInclusive<usize>) -> Edge {
        let octave = place(at, &self.edges, near);
        Edge { at, octave, below: interpolate(at, octave, &self.edges, &self.below) }
    }

    /// The point with `share` of the prior mass of [left, right] on its left.
    fn divide(&self, left: Edge, right: Edge, share: f64) -> f64 {
        let point = if right.at <= self.edges[left.octave.min(self.edges.len() - 1)] {
            left.at + share * (right.at - left.at)
        } else {
            let below = left.below + share * (right.below - left.below);
            let octave = place(below, &self.below, left.octave..=right.octave);
            interpolate(below, octave, &self.below, &self.edges)
        };
        point.clamp(left.at, right.at)
    }
}

/// A point of the line, the number of octave edges at or below this point, and the prior mass below this point. These
/// numbers are stored because a search makes many queries between the points of earlier queries.
#[derive(Clone, Copy)]
struct Edge {
    at: f64,
    octave: usize,
    below: f64,
}

/// Returns how many of the ascending values are at or below x. The result is probably in the range `near`, which is
/// searched first.
fn place(x: f64, values: &[f64], near: RangeInclusive<usize>) -> usize {
    let (low, high) = near.into_inner();
    let search = |low: usize, high: usize| low + values[low..high].partition_point(|value| *value <= x);
    let found = search(low, high);
    let enough = found > low || values[..low].last().is_none_or(|value| *value <= x);
    let not_more = found < high || values[high..].first().is_none_or(|value| *value > x);
    if enough && not_more { found } else { search(0, values.len()) }
}

/// Evaluates the piecewise linear function through the points (xs, ys) at x. Both lists are ascending, and the function
/// is constant outside of the range of xs. `next` is the number of xs at or below x.
fn interpolate(x: f64, next: usize, xs: &[f64], ys: &[f64]) -> f64 {
    if next == 0 {
        ys[0]
    } else if next == xs.len() {
        ys[next - 1]
    } else {
        let slope = (ys[next] - ys[next - 1]) / (xs[next] - xs[next - 1]);
        slope * (x - xs[next - 1]) + ys[next - 1]
    }
}

/// The posterior of one coordinate: cells between ascending edges, the mass of each cell, cumulative sums of the mass,
/// and the last query.
struct Line {
    edges: Vec<Edge>,
    mass: Vec<f64>,
    sums: Vec<f64>,
    place: usize,
    asked: f64,
    share: f64,
    total: f64,
}

impl Line {
    fn new(left: Edge, right: Edge) -> Self {
        let (mass, sums) = (vec![1.0], vec![1.0]);
        Self { edges: vec![left, right], mass, sums, place: 0, asked: 0.0, share: 0.5, total: 1.0 }
    }

    /// The mass of all cells.
    fn sum(&self) -> f64 {
        self.sums[self.sums.len() - 1]
    }

    /// The cell in which the cumulative mass crosses a target, and the position in the cell.
    fn find(&self, target: f64) -> (usize, f64) {
        let place = self.sums[..self.sums.len() - 1].partition_point(|sum| *sum < target);
        let below = if place == 0 { 0.0 } else { self.sums[place - 1] };
        let inside = self.mass[place];
        (place, if inside > 0.0 { ((target - below) / inside).clamp(0.0, 1.0) } else { 0.5 })
    }

    /// The next query. A cell that is narrower than the resolution, or too narrow for doubles, is not divided, and the
    /// query is at the edge of the cell.
    fn ask(&mut self, prior: &Octaves, resolution: f64) -> f64 {
        self.total = self.sum();
        (self.place, self.share) = self.find(0.5 * self.total);
        let (left, right) = (self.edges[self.place], self.edges[self.place + 1]);
        self.asked = prior.divide(left, right, self.share);
        if right.at - left.at <= resolution || self.asked <= left.at || self.asked >= right.at {
            let first = self.place == 0;
            let last = self.place + 1 == self.mass.len();
            let at_left = (self.share < 0.5 && !first) || last;
            (self.asked, self.share) = if at_left { (left.at, 0.0) } else { (right.at, 1.0) };
        }
        self.asked
    }

    /// Divides the cell at the last query, and updates the posterior. Positive evidence means that the median lies
    /// beyond the query.
    fn learn(&mut self, prior: &Octaves, evidence: f64) {
        let (place, share) = (self.place, self.share);
        let near = self.edges[place].octave..=self.edges[place + 1].octave;
        self.edges.insert(place + 1, prior.edge(self.asked, near));
        self.mass.insert(place + 1, self.mass[place] * (1.0 - share));
        self.mass[place] *= share;
        weigh(self.mass.split_at_mut(place + 1), evidence, self.total);
        self.sums.push(0.0);
    }

    /// Updates the cumulative sums of the mass.
    fn add_up(&mut self) {
        let mut sum = 0.0;
        for (slot, mass) in self.sums.iter_mut().zip(&self.mass) {
            sum += mass;
            *slot = sum;
        }
    }
}

/// The posterior of the median of every coordinate.
pub struct Coordinates {
    prior: Octaves,
    resolution: f64,
    lines: Vec<Line>,
}

impl Coordinates {
    /// Priors over [-limit, limit] in every coordinate, by octaves from 2^first to 2^last.
    pub fn new(dimension: usize, octaves: (i32, i32), limit: f64, resolution: f64, likely: Likely) -> Self {
        let (first, last) = octaves;
        assert!(first <= last && limit > 0.0, "octaves {first} to {last} up to {limit}");
        let prior = Octaves::new(first, last, limit, likely);
        let [left, right] = [-limit, limit].map(|at| prior.edge(at, 0..=prior.edges.len()));
        let lines = (0..dimension).map(|_| Line::new(left, right)).collect();
        Self { prior, resolution, lines }
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.lines.len()
    }

    /// The most informative next query in every coordinate.
    pub fn ask(&mut self) -> Vec<f64> {
        self.lines.iter_mut().map(|line| line.ask(&self.prior, self.resolution)).collect()
    }

    /// Updates every coordinate. `evidence` is, for each coordinate, the log-odds that its median lies beyond the last
    /// query.
    pub fn learn(&mut self, evidence: &[f64]) {
        assert_eq!(evidence.len(), self.lines.len(), "one answer for every coordinate");
        self.lines.iter_mut().zip(evidence).for_each(|(line, evidence)| line.learn(&self.prior, *evidence));
        // Each addition depends on the previous addition of the same line, but not on other lines. Because there is no
        // branch between lines, the processor adds up several lines at once.
        self.lines.iter_mut().for_each(Line::add_up);
    }

    /// The median of the posterior.
    pub fn median(&self) -> Vec<f64> {
        self.quantile(0.5)
    }

    /// In every coordinate, the point with this share of the posterior below it.
    pub fn quantile(&self, share: f64) -> Vec<f64> {
        let point = |line: &Line| {
            let (place, within) = line.find(share * line.sum());
            self.prior.divide(line.edges[place], line.edges[place + 1], within)
        };
        self.lines.iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches with answers without noise. Each answer changes the odds by a factor e^4.
    fn searched(targets: &[f64], first: i32, resolution: f64, questions: usize) -> Vec<f64> {
        let mut posterior = Coordinates::new(targets.len(), (first, 1000), 1e300, resolution, Likely::First);
        for _ in 0..questions {
            let asked = posterior.ask();
            let answers: Vec<f64> =
                asked.iter().zip(targets).map(|(asked, target)| if target > asked { 4.0 } else { -4.0 }).collect();
            posterior.learn(&answers);
        }
        posterior.median()
    }

    #[test]
    fn any_index_of_a_grid_is_found() {
        for size in [1, 2, 3, 50, 4000] {
            for target in [0, size / 3, size - 1] {
                let mut grid = Grid::new(size, 7.0, 8.0);
                for _ in 0..40 {
                    let asked = grid.ask();
                    assert!(asked + 1 < size.max(2));
                    grid.learn(if target > asked { 4.0 } else { -4.0 });
                }
                assert_eq!(grid.mode(), target, "of {size}");
                assert!(grid.doubt(0) < 1e-6, "of {size}");
            }
        }
    }

    #[test]
    fn no_answer_is_final() {
        let mut grid = Grid::new(9, 4.0, 1.0);
        for evidence in [1e300, -1e300, -1e300, 3.0] {
            grid.ask();
            grid.learn(evidence);
        }
        assert!(grid.mass.iter().all(|mass| mass.is_finite() && *mass > 0.0), "{:?}", grid.mass);
    }

    #[test]
    fn any_distance_is_found() {
        let targets = [0.0, 3.25, -1e-9, 1e5, -7e20, 1e299];
        for (found, target) in searched(&targets, -10, 1e-3, 160).into_iter().zip(targets) {
            assert!((found - target).abs() <= 1e-3 + 1e-12 * target.abs(), "{found} for {target}");
        }
    }

    #[test]
    fn a_place_is_found_wherever_it_is_looked_for_first() {
        let values = [-2.0, -0.0, 0.0, 1.0, 1.0, 7.0];
        for x in [f64::NEG_INFINITY, -3.0, -2.0, -0.0, 0.0, 0.5, 1.0, 7.0, 8.0, f64::INFINITY, f64::NAN] {
            let expected = values.iter().filter(|value| **value <= x).count();
            for (low, high) in (0..=values.len()).flat_map(|high| (0..=high).map(move |low| (low, high))) {
                assert_eq!(place(x, &values, low..=high), expected, "{x} from {low} to {high}");
            }
        }
    }

    #[test]
    fn evidence_that_is_no_number_tells_nothing() {
        let mass = [0.25, 0.75];
        for (evidence, expected) in [(f64::NAN, mass), (0.0, mass), (2.0, [0.25 * (-2f64).exp(), 0.75])] {
            let mut weighed = mass;
            weigh(weighed.split_at_mut(1), evidence, 1.0);
            assert_eq!(weighed, expected);
        }
    }

    #[test]
    fn likely_octaves_are_found_sooner() {
        let mass_within = |likely: Likely, radius: f64| {
            let prior = Octaves::new(-1000, 1000, 1e301, likely);
            let below = |x: f64| prior.edge(x, 0..=prior.edges.len()).below;
            (below(radius) - below(-radius)) / below(1e301)
        };
        assert!(mass_within(Likely::First, 1e-200) > 0.9);
        assert!(mass_within(Likely::Around(0.0, 8.0), 1e-200) < 0.05);
        let near = mass_within(Likely::Around(20.0, 4.0), 2f64.powi(25))
            - mass_within(Likely::Around(20.0, 4.0), 2f64.powi(15));
        assert!(near > 0.5, "{near}");
    }

    #[test]
    fn doubt_is_what_lies_farther_from_the_likeliest_index() {
        let grid = Grid { mass: vec![1.0, 2.0, 4.0, 2.0, 1.0], asked: 0, total: 1.0 };
        assert_eq!([0, 1, 2, 9].map(|around| grid.doubt(around)), [1.0 - 0.4, 1.0 - 0.8, 0.0, 0.0]);
    }

    #[test]
    fn quantiles_enclose_the_median_and_narrow() {
        let mut posterior = Coordinates::new(2, (0, 60), 1e18, 0.0, Likely::First);
        let mut widths = vec![];
        for _ in 0..60 {
            let asked = posterior.ask();
            posterior.learn(&asked.iter().map(|asked| if 3.25 > *asked { 2.0 } else { -2.0 }).collect::<Vec<_>>());
            let (low, middle, high) = (posterior.quantile(0.005), posterior.median(), posterior.quantile(0.995));
            assert!(low[0] <= middle[0] && middle[0] <= high[0]);
            widths.push(high[1] - low[1]);
        }
        assert!(widths[59] < 1e-3 && widths[5] > 1.0, "{widths:?}");
    }

    proptest! {
        #[test]
        fn cells_stay_ordered_and_mass_stays_finite(
            first in -1020i32..900,
            answers in proptest::collection::vec(prop_oneof![-30.0..30.0f64, any::<u64>().prop_map(f64::from_bits)], 1..80),
        ) {
            let mut posterior = Coordinates::new(1, (first, 1001), 1e301, 0.0, Likely::First);
            for answer in answers {
                posterior.ask();
                posterior.learn(&[answer]);
                let line = &posterior.lines[0];
                prop_assert!(line.edges.is_sorted_by_key(|edge| edge.at));
                prop_assert_eq!(line.edges.len(), line.mass.len() + 1);
                prop_assert!(line.mass.iter().all(|mass| mass.is_finite() && *mass >= 0.0));
                prop_assert!(line.mass.iter().sum::<f64>() > 0.0);
            }
            prop_assert!(posterior.median()[0].abs() <= 1e301);
        }

        #[test]
        fn any_evidence_leaves_a_grid_with_finite_mass(
            size in 1usize..200,
            likely in -1e3..1e3f64,
            answers in proptest::collection::vec(prop_oneof![-30.0..30.0f64, any::<u64>().prop_map(f64::from_bits)], 1..80),
        ) {
            let mut grid = Grid::new(size, likely, 3.0);
            for answer in answers {
                prop_assert!(grid.ask() < size);
                grid.learn(answer);
                prop_assert!(grid.mass.iter().all(|mass| mass.is_finite() && *mass >= 0.0));
                prop_assert!(grid.mass.iter().sum::<f64>() > 0.0);
            }
            prop_assert!(grid.mode() < size && (0.0..=1.0).contains(&grid.doubt(1)));
        }
    }
}
