//! The exact draw in two and three dimensions: rejection from a partition into cells, which is refined as needed.
//!
//! Every leaf stores an integer, its *halvings*, which is a proved lower bound of rate * score for all finest cells in
//! the leaf. So (number of finest cells) * 2^-halvings is an upper bound on the weight of the leaf. A trial draws a
//! leaf with probability proportional to this bound. It then draws a finest cell of the leaf uniformly, and keeps the
//! cell with probability 2^-(rate * score - halvings). For any partition, a cell that is kept has exactly the target
//! distribution. The partition may depend on the data and on earlier, rejected trials, because conditional on both, a
//! cell that is kept in the next trial has the target distribution. So the first cell that is kept has the target
//! distribution. The numbers of trials and of leaves are not limited, because a limit would change the distribution.

use std::collections::BTreeMap;

use rand_chacha::rand_core::Rng;

use super::bound::{Cell, Expansion};
use super::envelope::{Envelope, Group};
use super::lattice::Lattice;
use super::rate::Rate;
use super::score::Records;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::sampler::uniform;

/// The expansion of a cell is used for smaller cells in it as long as its error bound `charge` lowers rate * score by
/// less than this number.
const CHARGE: f64 = 0.25;

/// Trials begin when a trial is expected to keep its cell with at least this probability.
const ACCEPTANCE: f64 = 0.25;

#[derive(Debug, Clone, Copy)]
struct Leaf<const D: usize> {
    cell: Cell<D>,
    /// A lower bound of rate * score in the cell.
    halvings: u64,
    /// The approximate value of rate * score at the center. It only decides which leaves are split.
    estimate: f64,
    /// The index of the expansion that bounds the cell.
    expansion: usize,
}

impl<const D: usize> Leaf<D> {
    /// The binary logarithm of the upper bound of the weight.
    fn power(&self) -> i64 {
        i64::from(self.cell.level) * D as i64 - self.halvings as i64
    }

    /// The estimated difference between rate * score and its lower bound in this leaf.
    fn gap(&self) -> f64 {
        (self.estimate - self.halvings as f64).max(0.0)
    }
}

/// A partition of the domain.
pub struct Partition<'a, const D: usize> {
    records: &'a Records<D>,
    rate: Rate,
    extent: i64,
    leaves: Vec<Leaf<D>>,
    expansions: Vec<Expansion<D>>,
}

impl<'a, const D: usize> Partition<'a, D> {
    /// A partition with one leaf, which is the smallest cell that contains the domain.
    pub fn new(
        records: &'a Records<D>,
        lattice: &Lattice,
        rate: Rate,
        pulse: &mut dyn Pulse,
    ) -> Result<Self, Interrupted> {
        let extent = lattice.extent();
        let level = (extent as u64).next_power_of_two().trailing_zeros();
        let root = Cell { center: [0; D], level };
        let expansions = Expansion::of(records, &[root], pulse)?;
        let mut partition = Self { records, rate, extent, leaves: Vec::new(), expansions };
        partition.leaves.push(partition.leaf(root, 0, 0));
        Ok(partition)
    }

    /// Draws the center of a finest cell of the domain, with probability proportional to 2^(-rate * score).
    pub fn sample<R: Rng + ?Sized>(mut self, rng: &mut R, pulse: &mut dyn Pulse) -> Result<[i64; D], Interrupted> {
        loop {
            self.refine(pulse)?;
            let chosen = self.draw(rng);
            let leaf = self.leaves[chosen];
            let half = leaf.cell.half();
            // Every finest cell of the leaf is equally likely, because the side is a power of two.
            let place = leaf.cell.center.map(|x| x - half + 1 + 2 * uniform::below(rng, half as u64) as i64);
            if self.contains(&place) {
                let score = self.records.score(&place);
                if self.rate.keep(score, leaf.halvings).sample(rng) {
                    return Ok(place);
                }
            }
            self.split(&[chosen], pulse)?;
            pulse.beat(0.0)?;
        }
    }

    fn contains(&self, place: &[i64; D]) -> bool {
        let squares: u128 = place.iter().map(|&x| u128::from(x.unsigned_abs()).pow(2)).sum();
        squares <= u128::from(self.extent.unsigned_abs()).pow(2)
    }

    /// Draws a leaf with probability proportional to its upper bound.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        let mut members: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (index, leaf) in self.leaves.iter().enumerate() {
            members.entry(leaf.power()).or_default().push(index);
        }
        let groups = members.iter().map(|(&power, members)| Group { power, count: members.len() as u64 }).collect();
        let (group, member) = Envelope::new(groups).draw(rng);
        members.into_values().nth(group).expect("a group that was drawn exists")[member as usize]
    }

    /// Splits leaves until a trial is expected to keep its cell with probability [`ACCEPTANCE`]. A leaf is not split if
    /// its weight is too small to matter, or if the estimated difference between rate * score and its lower bound is
    /// less than one.
    fn refine(&mut self, pulse: &mut dyn Pulse) -> Result<(), Interrupted> {
        loop {
            let highest = self.leaves.iter().map(Leaf::power).max().unwrap_or(0);
            let weight = |leaf: &Leaf<D>| ((leaf.power() - highest) as f64).exp2();
            let total: f64 = self.leaves.iter().map(weight).sum();
            let kept: f64 = self.leaves.iter().map(|leaf| weight(leaf) * (-leaf.gap()).exp2()).sum();
            if kept >= ACCEPTANCE * total {
                return Ok(());
            }
            let share = total / (4.0 * self.leaves.len() as f64);
            let matters = |leaf: &Leaf<D>| leaf.gap() >= 1.0 && weight(leaf) >= share;
            let chosen: Vec<usize> = (0..self.leaves.len()).filter(|&i| matters(&self.leaves[i])).collect();
            self.split(&chosen, pulse)?;
        }
    }

    /// Replaces leaves by their children. `chosen` lists the leaves in increasing order of their index. For a finest
    /// cell, the halvings are computed from its exact score.
    fn split(&mut self, chosen: &[usize], pulse: &mut dyn Pulse) -> Result<(), Interrupted> {
        let mut fresh = Vec::new();
        for &index in chosen {
            let parent = self.leaves[index];
            if parent.cell.level == 0 {
                let score = self.records.score(&parent.cell.center);
                self.leaves[index].halvings = self.rate.halvings(score);
                self.leaves[index].estimate = 0.0;
                continue;
            }
            let charge = self.rate.estimate(self.expansions[parent.expansion].charge / 2.0);
            let children = parent.cell.children().filter(|child| !child.outside(self.extent));
            if charge < CHARGE {
                let leaves: Vec<_> = children.map(|cell| self.leaf(cell, parent.expansion, parent.halvings)).collect();
                self.leaves.extend(leaves);
            } else {
                fresh.extend(children.map(|cell| (cell, parent.halvings)));
            }
        }
        let cells: Vec<Cell<D>> = fresh.iter().map(|&(cell, _)| cell).collect();
        let first = self.expansions.len();
        self.expansions.extend(Expansion::of(self.records, &cells, pulse)?);
        for (i, &(cell, halvings)) in fresh.iter().enumerate() {
            self.leaves.push(self.leaf(cell, first + i, halvings));
        }
        for &index in chosen.iter().rev() {
            if self.leaves[index].cell.level > 0 {
                self.leaves.swap_remove(index);
            }
        }
        Ok(())
    }

    /// A new leaf. Its lower bound is at least `halvings`, which is the lower bound of the cell that contains it.
    fn leaf(&self, cell: Cell<D>, expansion: usize, halvings: u64) -> Leaf<D> {
        let bound = self.expansions[expansion].bound(&cell, self.records.count());
        Leaf {
            cell,
            halvings: self.rate.halvings_of_bound(bound.lower / 2.0).max(halvings),
            estimate: self.rate.estimate(bound.center / 2.0),
            expansion,
        }
    }
}
