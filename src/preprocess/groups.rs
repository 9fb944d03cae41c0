//! The groups to which a unit contributes. The number of these groups is limited, and the unit's own rows determine
//! them.

use super::labels::NONE;
use super::reduce::Grouped;

/// The contributions of all units to all groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contributions {
    /// For each row the contribution to which the row belongs, or [`NONE`]. Contributions are ordered by group, then by
    /// unit.
    pub codes: Vec<i64>,
    /// The position at which the contributions of each group begin, and at the end the number of contributions.
    pub starts: Vec<i64>,
}

/// Lets every unit contribute to the `most` groups in which it has the most rows. Of groups with equally many rows, the
/// groups with smaller codes are chosen.
///
/// `units` and `groups` have a code for each row; a row with [`NONE`] is left out. The choice depends on the unit's own
/// rows only, not on other units or on the sizes of the groups.
///
/// # Panics
///
/// If the lengths differ, or if a code is not below its count.
pub fn contributions(
    units: &[i64],
    unit_count: usize,
    groups: &[i64],
    group_count: usize,
    most: usize,
) -> Contributions {
    assert_eq!(units.len(), groups.len(), "there is one unit and one group for each row");
    let mut codes = vec![NONE; units.len()];
    // The chosen groups of all units, in the order of the units.
    let mut chosen: Vec<i64> = Vec::new();
    let grouped = Grouped::new(units, unit_count);
    let (mut own, mut counts) = (Vec::new(), Vec::<(usize, i64)>::new());
    for unit in 0..unit_count {
        own.clear();
        own.extend(grouped.of(unit).iter().map(|&row| groups[row]).filter(|&group| group != NONE));
        own.sort_unstable();
        counts.clear();
        for run in own.chunk_by(|a, b| a == b) {
            counts.push((run.len(), run[0]));
        }
        counts.sort_unstable_by_key(|&(rows, group)| (std::cmp::Reverse(rows), group));
        counts.truncate(most);
        for &row in grouped.of(unit) {
            if let Some(place) = counts.iter().position(|&(_, group)| group == groups[row]) {
                codes[row] = (chosen.len() + place) as i64;
            }
        }
        chosen.extend(counts.iter().map(|&(_, group)| group));
    }
    let by_group = Grouped::new(&chosen, group_count);
    let mut number = vec![0; chosen.len()];
    for (place, &contribution) in by_group.rows.iter().enumerate() {
        number[contribution] = place as i64;
    }
    codes.iter_mut().filter(|code| **code != NONE).for_each(|code| *code = number[*code as usize]);
    Contributions { codes, starts: by_group.starts.into_iter().map(|start| start as i64).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_contributes_where_it_has_the_most_rows_and_ties_go_to_the_earlier_group() {
        //            unit 0: groups 2, 1, 1, 2, 0      unit 1: group 2, none     unit 2: none
        let units = [0, 0, 1, 0, 0, 0, 1, NONE, 2];
        let groups = [2, 1, 2, 1, 2, 0, NONE, 0, NONE];
        let one = contributions(&units, 3, &groups, 3, 1);
        assert_eq!(one.codes, [NONE, 0, 1, 0, NONE, NONE, NONE, NONE, NONE]);
        assert_eq!(one.starts, [0, 0, 1, 2]);
        let two = contributions(&units, 3, &groups, 3, 2);
        assert_eq!(two.codes, [1, 0, 2, 0, 1, NONE, NONE, NONE, NONE]);
        assert_eq!(two.starts, [0, 0, 1, 3]);
        let all = contributions(&units, 3, &groups, 3, 9);
        assert_eq!(all.codes, [2, 1, 3, 1, 2, 0, NONE, NONE, NONE]);
        assert_eq!(all.starts, [0, 1, 2, 4]);
    }

    #[test]
    fn what_a_unit_contributes_does_not_depend_on_the_other_units() {
        let groups: Vec<i64> = (0..600).map(|row| (row * row + row / 7) % 5 - 1).collect();
        let units: Vec<i64> = (0..600).map(|row| row % 23).collect();
        let kept = |result: &Contributions, unit: i64| -> Vec<bool> {
            (0..600).filter(|&row| units[row] == unit).map(|row| result.codes[row] != NONE).collect()
        };
        for most in 1..4 {
            let whole = contributions(&units, 23, &groups, 4, most);
            for removed in 0..23 {
                let fewer: Vec<i64> = units.iter().map(|&unit| if unit == removed { NONE } else { unit }).collect();
                let rest = contributions(&fewer, 23, &groups, 4, most);
                assert!((0..23).filter(|&unit| unit != removed).all(|unit| kept(&whole, unit) == kept(&rest, unit)));
                let sizes = |result: &Contributions| -> Vec<i64> {
                    result.starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
                };
                let changed: Vec<i64> = sizes(&whole).iter().zip(sizes(&rest)).map(|(a, b)| a - b).collect();
                assert!(changed.iter().all(|change| (0..=1).contains(change)));
                assert!(changed.iter().sum::<i64>() <= most as i64);
            }
        }
    }
}
