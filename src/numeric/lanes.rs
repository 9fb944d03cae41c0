//! Eight doubles side by side.
//!
//! Every operation is written out element by element, which the compiler reliably turns into vector instructions of
//! whatever width there is; loops over arrays it does not always. Each lane is an ordinary double: no lane's bits depend
//! on the others.

use std::ops::{Add, Div, Mul, Sub};

/// Eight doubles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lanes(pub(crate) [f64; 8]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; 8]);

    #[inline(always)]
    pub(crate) fn splat(value: f64) -> Self {
        Self([value; 8])
    }

    /// The doubles as integers.
    #[inline(always)]
    pub(crate) fn bits(self) -> Bits {
        let [a, b, c, d, e, f, g, h] = self.0;
        Bits([a.to_bits(), b.to_bits(), c.to_bits(), d.to_bits(), e.to_bits(), f.to_bits(), g.to_bits(), h.to_bits()])
    }

    #[inline(always)]
    pub(crate) fn sqrt(self) -> Self {
        let [a, b, c, d, e, f, g, h] = self.0;
        Self([a.sqrt(), b.sqrt(), c.sqrt(), d.sqrt(), e.sqrt(), f.sqrt(), g.sqrt(), h.sqrt()])
    }

    /// Whether all lanes lie between two bounds.
    #[inline(always)]
    pub(crate) fn all_within(self, low: f64, high: f64) -> bool {
        let inside = |x: f64| (low <= x) & (x <= high);
        let [a, b, c, d, e, f, g, h] = self.0;
        (inside(a) & inside(b) & inside(c) & inside(d)) & (inside(e) & inside(f) & inside(g) & inside(h))
    }
}

macro_rules! elementwise {
    ($operator:ident, $method:ident, $symbol:tt) => {
        impl $operator for Lanes {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let (a, b) = (self.0, other.0);
                Self([
                    a[0] $symbol b[0],
                    a[1] $symbol b[1],
                    a[2] $symbol b[2],
                    a[3] $symbol b[3],
                    a[4] $symbol b[4],
                    a[5] $symbol b[5],
                    a[6] $symbol b[6],
                    a[7] $symbol b[7],
                ])
            }
        }
    };
}

elementwise!(Add, add, +);
elementwise!(Sub, sub, -);
elementwise!(Mul, mul, *);
elementwise!(Div, div, /);

/// Eight integers; sums wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits(pub(crate) [u64; 8]);

impl Bits {
    pub(crate) const ZERO: Self = Self([0; 8]);

    /// Over the lanes.
    #[inline(always)]
    pub(crate) fn sum(self) -> u64 {
        self.0.iter().fold(0, |sum, x| sum.wrapping_add(*x))
    }
}

impl Add for Bits {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([
            a[0].wrapping_add(b[0]),
            a[1].wrapping_add(b[1]),
            a[2].wrapping_add(b[2]),
            a[3].wrapping_add(b[3]),
            a[4].wrapping_add(b[4]),
            a[5].wrapping_add(b[5]),
            a[6].wrapping_add(b[6]),
            a[7].wrapping_add(b[7]),
        ])
    }
}
