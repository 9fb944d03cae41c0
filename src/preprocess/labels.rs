//! Ids and labels as codes: two labels get the same code if and only if they are equal.
//!
//! Labels are compared in full. If digests were compared, two units with the same digest would become one unit, and
//! adding a unit would have the effect of replacing a unit.

use std::collections::HashMap;
use std::hash::Hash;

/// The code of a row that has no label, or whose label is not among the keys.
pub const NONE: i64 = -1;

/// The labels of all rows.
#[derive(Debug, Clone, Copy)]
pub enum Labels<'a> {
    /// One number for each row.
    Integers(&'a [i64]),
    /// The concatenated texts of all rows, and the position at which each text ends.
    Text {
        /// All texts.
        bytes: &'a [u8],
        /// One end for each row.
        ends: &'a [i64],
    },
}

impl<'a> Labels<'a> {
    /// Labels from texts that are concatenated in `bytes`. `None` if the ends are not ascending or not within `bytes`.
    pub fn text(bytes: &'a [u8], ends: &'a [i64]) -> Option<Self> {
        let mut last = 0;
        for &end in ends {
            if end < last || end as u64 > bytes.len() as u64 {
                return None;
            }
            last = end;
        }
        Some(Self::Text { bytes, ends })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(labels) => labels.len(),
            Self::Text { ends, .. } => ends.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn texts(bytes: &'a [u8], ends: &'a [i64]) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(move |(start, &end)| &bytes[start as usize..end as usize])
    }
}

/// Returns for each row the rank of its label among the different labels in ascending order, or [`NONE`] if the label
/// is missing. Also returns the number of different labels.
///
/// # Panics
///
/// If `missing` has another length than the labels.
pub fn ranks(labels: &Labels<'_>, missing: Option<&[bool]>) -> (Vec<i64>, usize) {
    match *labels {
        Labels::Integers(labels) => ranked(labels.iter().copied(), there(labels.len(), missing)),
        Labels::Text { bytes, ends } => ranked(Labels::texts(bytes, ends), there(ends.len(), missing)),
    }
}

/// Returns for each row the position of its label among the keys, or [`NONE`] if the label is not a key. The result is
/// `None` if a key occurs twice, or if labels and keys have different types.
///
/// # Panics
///
/// If `missing` has another length than the labels.
pub fn places(labels: &Labels<'_>, missing: Option<&[bool]>, keys: &Labels<'_>) -> Option<Vec<i64>> {
    let there = there(labels.len(), missing);
    match (*labels, *keys) {
        (Labels::Integers(labels), Labels::Integers(keys)) => {
            placed(labels.iter().copied(), there, keys.iter().copied())
        }
        (Labels::Text { bytes, ends }, Labels::Text { bytes: key_bytes, ends: key_ends }) => {
            placed(Labels::texts(bytes, ends), there, Labels::texts(key_bytes, key_ends))
        }
        _ => None,
    }
}

/// For each row, whether it has a label.
fn there(n: usize, missing: Option<&[bool]>) -> impl Iterator<Item = bool> {
    assert!(missing.is_none_or(|missing| missing.len() == n), "there is one mark for each row");
    (0..n).map(move |row| !missing.is_some_and(|missing| missing[row]))
}

fn ranked<K: Copy + Eq + Hash + Ord>(
    labels: impl Iterator<Item = K>,
    there: impl Iterator<Item = bool>,
) -> (Vec<i64>, usize) {
    let mut found = HashMap::new();
    let mut different = Vec::new();
    let mut code = |(label, there): (K, bool)| {
        if !there {
            return NONE;
        }
        *found.entry(label).or_insert_with(|| {
            different.push(label);
            different.len() as i64 - 1
        })
    };
    let mut codes: Vec<i64> = labels.zip(there).map(&mut code).collect();
    let mut order: Vec<usize> = (0..different.len()).collect();
    order.sort_unstable_by_key(|&code| different[code]);
    let mut rank = vec![0; order.len()];
    for (place, code) in order.into_iter().enumerate() {
        rank[code] = place as i64;
    }
    codes.iter_mut().filter(|code| **code != NONE).for_each(|code| *code = rank[*code as usize]);
    (codes, rank.len())
}

fn placed<K: Copy + Eq + Hash>(
    labels: impl Iterator<Item = K>,
    there: impl Iterator<Item = bool>,
    keys: impl Iterator<Item = K>,
) -> Option<Vec<i64>> {
    let mut found = HashMap::new();
    for (place, key) in keys.enumerate() {
        if found.insert(key, place as i64).is_some() {
            return None;
        }
    }
    let place = |(label, there)| if there { found.get(&label).copied().unwrap_or(NONE) } else { NONE };
    Some(labels.zip(there).map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(texts: &[&str]) -> (Vec<u8>, Vec<i64>) {
        let ends = texts.iter().scan(0, |end, text| {
            *end += text.len() as i64;
            Some(*end)
        });
        (texts.concat().into_bytes(), ends.collect())
    }

    #[test]
    fn equal_labels_have_equal_codes_in_ascending_order() {
        let numbers = [7, -3, 7, i64::MIN, i64::MAX, -3];
        assert_eq!(ranks(&Labels::Integers(&numbers), None), (vec![2, 1, 2, 0, 3, 1], 4));
        let marks = [false, true, false, true, false, true];
        assert_eq!(ranks(&Labels::Integers(&numbers), Some(&marks)), (vec![0, NONE, 0, NONE, 1, NONE], 2));
        // One text begins with another, and different texts have the same concatenation.
        let (bytes, ends) = joined(&["ab", "a", "", "abc", "c", "a"]);
        assert_eq!(ranks(&Labels::text(&bytes, &ends).unwrap(), None), (vec![2, 1, 0, 3, 4, 1], 5));
        assert_eq!(ranks(&Labels::Integers(&[]), None), (vec![], 0));
    }

    #[test]
    fn a_million_labels_that_differ_in_one_bit_stay_apart() {
        let numbers: Vec<i64> = (0..1_000_000).map(|i| i << 3).collect();
        let (codes, count) = ranks(&Labels::Integers(&numbers), None);
        assert_eq!(count, numbers.len());
        assert!(codes.into_iter().eq(0..1_000_000));
    }

    #[test]
    fn labels_have_the_places_of_their_keys() {
        let (bytes, ends) = joined(&["north", "south", "nort", "", "north"]);
        let (key_bytes, key_ends) = joined(&["south", "east", "north"]);
        let (labels, keys) = (Labels::text(&bytes, &ends).unwrap(), Labels::text(&key_bytes, &key_ends).unwrap());
        assert_eq!(places(&labels, None, &keys), Some(vec![2, 0, NONE, NONE, 2]));
        let marks = [true, false, false, false, false];
        assert_eq!(places(&labels, Some(&marks), &keys), Some(vec![NONE, 0, NONE, NONE, 2]));
        assert_eq!(places(&Labels::Integers(&[4, 5]), None, &Labels::Integers(&[5, 6])), Some(vec![NONE, 0]));
        assert_eq!(places(&Labels::Integers(&[4]), None, &Labels::Integers(&[5, 6, 5])), None);
        assert_eq!(places(&Labels::Integers(&[4]), None, &keys), None);
    }

    #[test]
    fn ends_that_are_out_of_order_are_refused() {
        assert!(Labels::text(b"abc", &[1, 3, 2]).is_none());
        assert!(Labels::text(b"abc", &[1, 4]).is_none());
        assert!(Labels::text(b"abc", &[-1, 3]).is_none());
        assert!(Labels::text(b"abc", &[0, 0, 3]).is_some_and(|labels| labels.len() == 3 && !labels.is_empty()));
    }
}
