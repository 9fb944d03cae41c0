//! Draws the cell of a Gaussian candidate. The cell is j < 256 with probability proportional to exp(-j^2/512), and 256
//! with probability proportional to 2 exp(-128). [`super::gaussian`] uses the cells.
//!
//! **Exactness.** Let w_j be exp(-j^2/512) times [`SCALE`], and W_j its integer part. A random word gives cell j < 256
//! with probability W_j/2^64, and no cell with the remaining probability R/2^64, which is less than 2^-30. If there is
//! no cell, an integer u below R is drawn. If u = j <= 256, the result is cell j if a coin with probability w_j - W_j
//! falls heads. u = 257 is treated like u = 256. In all other cases the draw starts again. So a word leads to cell j <
//! 256 with probability W_j/2^64 + (w_j - W_j)/2^64 = w_j/2^64. It leads to cell 256 with probability 2 w_256/2^64,
//! because W_256 = 0 and two values of u stand for this cell. These probabilities are proportional to the weights.
//!
//! An alias table finds the cell of a word without a search. The top eight bits of the word select a column, and the
//! other 56 bits decide between the two cells of the column.

use rand_chacha::rand_core::Rng;

use super::uniform;

/// The number of the last cell, which stands for cell 256 and all later cells.
pub(super) const BEYOND: u64 = 256;

/// The weight of cell 0. With this number, the sum of the weights of all cells is just below 2^64.
const SCALE: u64 = 897_519_610_000_000_000;

/// The number of words in a column.
const COLUMN: u64 = 1 << 56;

/// The number that stands for the rest R in the alias table. It is not used for a cell, because cells 255 and 256 come
/// from the rest only.
const REST: usize = 255;

/// The integer parts W_j.
const WHOLE: [u64; BEYOND as usize + 1] = whole_parts();

/// The rest R.
const REST_WEIGHT: u64 = rest_weight();

/// One entry for each column. It is 256 times a number of words plus a cell. This number of words gives the cell with
/// the number of the column, and the other words give the cell in the entry. In a column with a single cell, all words
/// are other words.
static ALIAS: [u64; 256] = alias_table();

/// Draws a cell.
pub(super) fn sample<R: Rng + ?Sized>(rng: &mut R) -> u64 {
    loop {
        let word = rng.next_u64();
        let column = word >> 56;
        let entry = ALIAS[column as usize];
        let cell = if word % COLUMN < entry >> 8 { column } else { entry % 256 };
        if cell != REST as u64 {
            return cell;
        }
        let index = uniform::below(rng, REST_WEIGHT);
        if let Some(cell) = rest(index, rng) {
            return cell;
        }
    }
}

/// The cell for an integer below R, or `None` if the draw must start again.
#[cold]
fn rest<R: Rng + ?Sized>(index: u64, rng: &mut R) -> Option<u64> {
    let cell = if index == BEYOND + 1 { BEYOND } else { index };
    let whole = *WHOLE.get(usize::try_from(cell).ok()?)?;
    remainder(SCALE, whole, cell, rng).then_some(cell)
}

/// Returns true with probability `scale` exp(-cell^2/512) - `whole`, which must lie between 0 and 1. A uniform real
/// number between `whole` and `whole + 1` is compared with `scale` exp(-cell^2/512). Its words are drawn one by one
/// until the comparison is decided.
fn remainder<R: Rng + ?Sized>(scale: u64, whole: u64, cell: u64, rng: &mut R) -> bool {
    let mut number = vec![0, whole, rng.next_u64(), rng.next_u64(), rng.next_u64(), rng.next_u64()];
    loop {
        number.push(rng.next_u64());
        if let Some(below) = lies_below(&number, scale, cell) {
            return below;
        }
    }
}

/// Compares the real numbers that begin with these words with the bound `scale` exp(-cell^2/512). The result is true if
/// all these numbers are below the bound, false if none of them is, and `None` if the words do not decide. The first
/// word is zero, the second word is the integer part, and the other words, at least three, are the fraction.
///
/// **Lemma.** For scale < 2^60 and cell <= 256 the answer is right. *Proof.* Let x = cell^2/512 <= 128 and let u be the
/// number that the words represent. Then u e^x is the sum of the terms u x^k/k!. The function computes each term from
/// the term before, as an integer in units of the last word, and rounds it down. So partial sums are lower bounds. If a
/// partial sum reaches `scale`, no number that begins with these words is below the bound. As long as no partial sum
/// reaches `scale`, every term is below 2^60. Times cell^2 it is below 2^76, which fits because the first word is zero.
/// Rounding a term down reduces this term by less than 1. It reduces the later terms together by less than e^x - 1,
/// because a loss of 1 in term i reduces term k by x^(k-i) i!/k! <= x^(k-i)/(k-i)!. A term after a zero term is zero
/// without rounding. So the sum of all terms is too small by less than K e^x, where K < 2^64 is the number of steps. A
/// number that begins with these words is less than one unit above u, so its product with e^x is less than e^x above u
/// e^x. Because e^128 < 2^185, both errors together are less than 2^256 units, which is a one followed by four words of
/// zero. ∎
fn lies_below(words: &[u64], scale: u64, cell: u64) -> Option<bool> {
    let bound = [0, scale];
    let (mut sum, mut term) = (words.to_vec(), words.to_vec());
    for k in 1.. {
        // Words compare like numbers. A number that begins with all words of the bound is not below the bound.
        if sum[..] >= bound[..] {
            return Some(false);
        }
        multiply(&mut term, cell * cell);
        divide(&mut term, 512 * k);
        if term.iter().all(|word| *word == 0) {
            break;
        }
        add(&mut sum, &term);
    }
    add(&mut sum, &[1, 0, 0, 0, 0]);
    (sum[..] < bound[..]).then_some(true)
}

fn multiply(words: &mut [u64], factor: u64) {
    let mut carry = 0;
    for word in words.iter_mut().rev() {
        let product = u128::from(*word) * u128::from(factor) + carry;
        (*word, carry) = (product as u64, product >> 64);
    }
}

fn divide(words: &mut [u64], divisor: u64) {
    let mut left = 0;
    for word in words {
        let value = left << 64 | u128::from(*word);
        (*word, left) = ((value / u128::from(divisor)) as u64, value % u128::from(divisor));
    }
}

/// Adds words that are aligned at their last word.
fn add(sum: &mut [u64], words: &[u64]) {
    let mut carry = 0;
    for (word, more) in sum.iter_mut().rev().zip(words.iter().rev().chain(std::iter::repeat(&0))) {
        let total = u128::from(*word) + u128::from(*more) + carry;
        (*word, carry) = (total as u64, total >> 64);
    }
}

/// Computes each weight as the previous weight times exp(-(2 j + 1)/512). This factor is computed by its alternating
/// series in units of 2^-56, rounded down.
///
/// **Lemma.** The weights have an error below 2^-40. *Proof.* Term k of the series is the previous term times at most
/// 1/k. So a term has an error below 2 units, which consists of its own rounding and of the error of the previous term.
/// After at most 34 terms the computed terms are zero, because 2^116 < 34!. The first true term that is left out is
/// below 2 units and larger than the sum of all later terms. So the computed factor has an error of less than 70 units.
/// Multiplying by a factor below 1 does not increase earlier errors. The total error is at most 256 * 70 < 2^16 units.
/// ∎
///
/// A test compares every entry with [`lies_below`] and shows that this error changes no integer part.
const fn whole_parts() -> [u64; BEYOND as usize + 1] {
    let mut parts = [0; BEYOND as usize + 1];
    let mut weight = (SCALE as u128) << 56;
    let mut cell = 0;
    while cell < parts.len() {
        parts[cell] = (weight >> 56) as u64;
        let (mut sum, mut term, mut k) = (0, weight, 1);
        while term > 0 {
            sum = if k % 2 == 1 { sum + term } else { sum - term };
            term = term * (2 * cell as u128 + 1) / (512 * k);
            k += 1;
        }
        weight = sum;
        cell += 1;
    }
    parts
}

const fn rest_weight() -> u64 {
    let mut rest = 1 << 64;
    let mut cell = 0;
    while cell < WHOLE.len() {
        rest -= WHOLE[cell] as u128;
        cell += 1;
    }
    rest as u64
}

/// Builds the table by Walker's method. In each step, the column of the lightest remaining cell is filled up with words
/// of the heaviest remaining cell. The mean weight of the remaining cells is one column. So the lightest cell fits into
/// a column, and the heaviest cell has enough words to fill the column.
const fn alias_table() -> [u64; 256] {
    let mut weights = [0; 256];
    let mut number = 0;
    while number < 256 {
        weights[number] = if number == REST { REST_WEIGHT } else { WHOLE[number] };
        number += 1;
    }
    let mut table = [0; 256];
    let mut placed = [false; 256];
    let mut columns = 0;
    while columns < 256 {
        let (mut lightest, mut heaviest) = (256, 256);
        number = 0;
        while number < 256 {
            if !placed[number] && (lightest == 256 || weights[number] < weights[lightest]) {
                lightest = number;
            }
            if !placed[number] && (heaviest == 256 || weights[number] > weights[heaviest]) {
                heaviest = number;
            }
            number += 1;
        }
        // If the lightest cell fills a column exactly, then all remaining cells do, and `heaviest` equals `lightest`.
        // The shift turns its number of words, 2^56, into 0. So all words belong to the other cell, which is the same
        // cell.
        table[lightest] = weights[lightest] << 8 | heaviest as u64;
        weights[heaviest] -= COLUMN - weights[lightest];
        placed[lightest] = true;
        columns += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use rand_chacha::rand_core::TryRng;

    use super::*;
    use crate::sampler::tests::{assert_fits, generator, histogram, normalised};

    /// `SCALE` exp(-cell^2/512), rounded down to seven words after the point; computed by Python's `decimal` with 320
    /// digits.
    const WEIGHTS: [(u64, [u64; 8]); 5] = [
        (
            1,
            [
                895768352780556754,
                0x59edb0f4f9e3fbe8,
                0x89d3463effe5c279,
                0xbb299676e5ed9658,
                0x21b387ace515d5e7,
                0x821fdc16209cd6b2,
                0xe3ae4d458ec6469f,
                0x91b61d7122d8f1a9,
            ],
        ),
        (
            16,
            [
                544373161158325462,
                0x6d044e50f0364e46,
                0x269f4fda8f7c6e32,
                0x3cfffb11f9c5d22a,
                0x50634bb4ac77c6f8,
                0xecdc045529fb294e,
                0x6b9b71348bdada5e,
                0xdaa5344f07400f7b,
            ],
        ),
        (
            100,
            [
                2956173003,
                0xbbc0cdd285d4b7ea,
                0x98b536226b393a8c,
                0xc53bf74dbff0145b,
                0x60fa1874bc0dca0c,
                0x3009c32f08ed39d0,
                0x98a51f54d09a2321,
                0xfdb7190773d73be5,
            ],
        ),
        (
            146,
            [
                0,
                0xbeb6da052b0157e3,
                0xd81e5974ff4666fe,
                0x4af71162f92860c,
                0xf20d063e697e1fb9,
                0xa0038bf90497bc,
                0x96a3b8f1887b3bd1,
                0xb6e8da6f3ad83dac,
            ],
        ),
        (
            256,
            [
                0,
                0,
                7,
                0xdb14ddce3fc52e28,
                0x3dd0989f83e78e8,
                0xa13948a4cbe8d841,
                0xcf111b9a584bbbde,
                0xb66c6a5c8dfea61f,
            ],
        ),
    ];

    #[test]
    fn every_whole_part_is_that_of_its_weight() {
        assert_eq!(WHOLE[0], SCALE);
        for cell in 1..=BEYOND {
            let whole = WHOLE[cell as usize];
            assert_eq!(
                lies_below(&[0, whole, 0, 0, 0, 0, 0, 0], SCALE, cell),
                Some(true),
                "{cell}: {whole} is too high"
            );
            let next = [0, whole + 1, 0, 0, 0, 0, 0, 0];
            assert_eq!(lies_below(&next, SCALE, cell), Some(false), "{cell}: {whole} is too low");
        }
        assert!(WHOLE[REST] == 0 && WHOLE[BEYOND as usize] == 0 && REST_WEIGHT > BEYOND + 1);
        for (cell, weight) in WEIGHTS {
            assert_eq!(WHOLE[cell as usize], weight[0]);
        }
    }

    #[test]
    fn the_alias_table_gives_every_cell_its_whole_part_and_the_rest_what_is_left() {
        let mut words = [0; 256];
        for (column, entry) in ALIAS.into_iter().enumerate() {
            words[column] += u128::from(entry >> 8);
            words[(entry % 256) as usize] += u128::from(COLUMN - (entry >> 8));
        }
        assert_eq!(words.iter().sum::<u128>(), 1 << 64);
        for (number, words) in words.into_iter().enumerate() {
            let expected = if number == REST { REST_WEIGHT } else { WHOLE[number] };
            assert_eq!(words, u128::from(expected), "{number}");
        }
    }

    #[test]
    fn comparisons_are_decided_outside_of_four_words_and_never_wrongly() {
        for (cell, weight) in WEIGHTS {
            for length in 5..=8 {
                let exact: Vec<u64> = [&[0], &weight[..length]].concat();
                // The bound itself and also larger numbers begin with these words, so the comparison is not decided.
                assert_eq!(lies_below(&exact, SCALE, cell), None);
                // Numbers that differ slightly from the bound: by two units of the fifth word from the end, or by one
                // unit of the last word.
                let mut above = exact.clone();
                add(&mut above, &[2, 0, 0, 0, 0]);
                assert_eq!(lies_below(&above, SCALE, cell), Some(false));
                above.clone_from(&exact);
                add(&mut above, &[1]);
                assert_ne!(lies_below(&above, SCALE, cell), Some(true));
                let mut below = exact.clone();
                add(&mut below[..length - 3], &[u64::MAX; 8][..length - 3]);
                add(&mut below[..length - 3], &[u64::MAX; 8][..length - 3]);
                // If the number is smaller than two of these units, there is no number below it.
                if below[0] == 0 {
                    assert_eq!(lies_below(&below, SCALE, cell), Some(true), "{cell} {length}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn comparisons_agree_with_floating_point_and_with_longer_ones(
            scale in 1u64..1 << 60, cell in 0u64..=256, ratio in 0.0..3.0f64, words in prop::array::uniform7(0u64..),
        ) {
            let product = scale as f64 * (-(cell as f64).powi(2) / 512.0).exp();
            let whole = (product * ratio) as u64;
            let number = [&[0, whole][..], &words].concat();
            let all = lies_below(&number, scale, cell);
            let real = whole as f64 + words[0] as f64 / 64f64.exp2();
            if (real / product - 1.0).abs() > 1e-12 {
                prop_assert_eq!(all, Some(real < product));
            }
            for length in 5..number.len() {
                let some = lies_below(&number[..length], scale, cell);
                prop_assert!(some.is_none() || some == all);
            }
        }
    }

    #[test]
    fn remainders_have_their_probability() {
        let (mut rng, draws) = (generator(21), 40_000);
        for (cell, weight) in &WEIGHTS[..4] {
            let heads = (0..draws).filter(|_| rest(*cell, &mut rng) == Some(*cell)).count();
            let probability = weight[1] as f64 / 64f64.exp2();
            assert_fits(&[heads, draws - heads], &[probability, 1.0 - probability]);
        }
        // The weight of cell 0 is an integer, and the weight of cell 256 is below 2^-120.
        assert!((0..draws).all(|_| rest(0, &mut rng).is_none()));
        assert!((0..100).all(|_| rest(BEYOND, &mut rng).is_none()));
    }

    /// The generator that produces the least likely draws.
    struct Zeros;

    impl TryRng for Zeros {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok(0)
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(0)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.fill(0);
            Ok(())
        }
    }

    #[test]
    fn the_rest_has_every_cell_once_and_what_is_beyond_twice() {
        for cell in 1..=BEYOND {
            assert_eq!(rest(cell, &mut Zeros), Some(cell));
        }
        assert_eq!(rest(BEYOND + 1, &mut Zeros), Some(BEYOND));
        assert!([0, BEYOND + 2, REST_WEIGHT - 1].iter().all(|index| rest(*index, &mut Zeros).is_none()));
    }

    fn masses() -> Vec<f64> {
        normalised((0..256).map(|cell| (-f64::from(cell * cell) / 512.0).exp()).collect())
    }

    #[test]
    fn cells_have_their_masses() {
        let mut rng = generator(22);
        assert_fits(&histogram(0, 255, || sample(&mut rng) as i64), &masses());
    }

    /// Draws cells from the rest only.
    #[test]
    fn cells_from_remainders_alone_have_the_same_masses() {
        let mut rng = generator(23);
        let mut draw = || loop {
            let cell = uniform::below(&mut rng, BEYOND);
            if remainder(1, 0, cell, &mut rng) {
                return cell as i64;
            }
        };
        assert_fits(&histogram(0, 255, &mut draw), &masses());
    }
}
