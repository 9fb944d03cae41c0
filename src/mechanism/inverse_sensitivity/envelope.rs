//! An exact draw from groups of weight count * 2^power. The powers may differ by any amount.

use rand_chacha::rand_core::Rng;

use crate::sampler::{Bernoulli, BernoulliPower, uniform};

/// The number of bits that integer weights have below the highest power. Lighter groups are rounded up to one unit, and
/// a random rejection corrects the difference.
const DEPTH: u32 = 64;

/// `count` equally likely members, each of weight 2^`power`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The binary logarithm of a member's weight.
    pub power: i64,
    /// The number of members, below 2^60.
    pub count: u64,
}

/// A list of groups from which members can be drawn.
pub struct Envelope {
    groups: Vec<Group>,
    highest: i64,
    ceilings: Vec<u128>,
    total: u128,
}

impl Envelope {
    /// At least one group must have a member.
    ///
    /// In units of 2^(highest - 64), the weights of heavy groups are integers. A light group of weight w is proposed
    /// with weight ceil(w) and kept with probability w/ceil(w). If it is not kept, the draw starts again. This is
    /// rejection sampling, so the draw is exact.
    pub fn new(groups: Vec<Group>) -> Self {
        let highest = groups.iter().filter(|group| group.count > 0).map(|group| group.power).max();
        let highest = highest.expect("the domain is never empty");
        let ceilings: Vec<u128> = groups.iter().map(|group| ceiling(group, highest)).collect();
        let total = ceilings.iter().sum();
        Self { groups, highest, ceilings, total }
    }

    /// The index of a group and of a member in it, drawn with probability proportional to the member's weight.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> (usize, u64) {
        loop {
            let mut place = uniform::below_wide(rng, self.total);
            let mut index = 0;
            while place >= self.ceilings[index] {
                place -= self.ceilings[index];
                index += 1;
            }
            let group = self.groups[index];
            if keep(&group, self.highest, self.ceilings[index], rng) {
                return (index, uniform::below(rng, group.count));
            }
        }
    }
}

/// By how much the power of a group is below the power of the unit of integer weights.
fn excess(group: &Group, highest: i64) -> u64 {
    (highest - group.power).saturating_sub(i64::from(DEPTH)).max(0) as u64
}

fn ceiling(group: &Group, highest: i64) -> u128 {
    if group.count == 0 {
        return 0;
    }
    let below = (highest - group.power) as u64;
    match excess(group, highest) {
        0 => u128::from(group.count) << (u64::from(DEPTH) - below),
        excess if excess < 64 => u128::from(group.count).div_ceil(1 << excess),
        _ => 1,
    }
}

/// Returns true with probability count * 2^-excess / ceiling.
fn keep<R: Rng + ?Sized>(group: &Group, highest: i64, ceiling: u128, rng: &mut R) -> bool {
    let excess = excess(group, highest);
    if excess == 0 {
        return true;
    }
    // For excess > 64 the ceiling is one, and the rest of the power is a sequence of fair coins.
    let (near, rest) = (excess.min(64), excess.saturating_sub(64));
    let coin = |p: u128, q: u128| Bernoulli::new(p, q).expect("the weight of a group is at most its ceiling");
    let run = BernoulliPower::new(rest.into(), 0).expect("2^0 fits");
    coin(group.count.into(), ceiling << near).sample(rng) && run.sample(rng)
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    /// The frequencies of 10^6 draws lie within 5 standard deviations of the weights (alpha below 10^-5 over all
    /// groups). The powers are far apart, and one group has a low power and many members.
    #[test]
    fn groups_come_in_proportion_to_their_weights() {
        let groups = [(0, 3), (-70, 1 << 58), (-1, 2), (-66, 1 << 59), (-200, 5), (-12, 0), (-3, 1)];
        let groups = groups.map(|(power, count)| Group { power, count });
        let weight = |group: &Group| group.count as f64 * (group.power as f64).exp2();
        let total: f64 = groups.iter().map(weight).sum();
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let draws = 1_000_000;
        let mut seen = [0u32; 7];
        let envelope = Envelope::new(groups.to_vec());
        for _ in 0..draws {
            let (index, member) = envelope.draw(&mut rng);
            assert!(member < groups[index].count);
            seen[index] += 1;
        }
        for (group, seen) in groups.iter().zip(seen) {
            let p = weight(group) / total;
            let deviation = (f64::from(seen) - draws as f64 * p).abs();
            assert!(deviation <= 5.0 * (draws as f64 * p * (1.0 - p)).sqrt() + 1e-9, "{group:?}: {seen}");
        }
    }

    /// If even the heaviest group is light, the coins decide. The comparison is as above.
    #[test]
    fn light_groups_pay_their_ceiling_by_a_coin() {
        let groups = [Group { power: 0, count: 1 }, Group { power: -66, count: 5 << 58 }];
        let mut rng = ChaCha20Rng::from_seed([4; 32]);
        let envelope = Envelope::new(groups.to_vec());
        let light = (0..100_000).filter(|_| envelope.draw(&mut rng).0 == 1).count() as f64;
        let p = 5.0 / 256.0 / (1.0 + 5.0 / 256.0);
        assert!((light - 1e5 * p).abs() <= 5.0 * (1e5 * p * (1.0 - p)).sqrt(), "{light}");
        let kept = |excess: i64, count: u64, rng: &mut ChaCha20Rng| {
            let group = Group { power: -64 - excess, count };
            let ceiling = ceiling(&group, 0);
            (0..100_000).filter(|_| keep(&group, 0, ceiling, rng)).count() as f64
        };
        assert!((kept(3, 5, &mut rng) - 62_500.0).abs() <= 5.0 * 153.1);
        assert!((kept(66, 3 << 58, &mut rng) - 1171.9).abs() <= 5.0 * 34.1);
    }
}
