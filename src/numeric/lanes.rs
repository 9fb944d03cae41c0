//! Eight doubles side by side.
//!
//! Every operation is written out element by element, because the compiler then reliably uses vector instructions of
//! any width; it does not always do so for loops over arrays. Each lane is an ordinary double, and its bits do not
//! depend on the other lanes.

use std::ops::{Add, Mul, Sub};

use crate::numeric::block::Coordinate;

/// Eight doubles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lanes(pub(crate) [f64; 8]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; 8]);

    /// Eight coordinates, widened if they are singles.
    #[inline(always)]
    pub(crate) fn of<T: Coordinate>(x: &[T; 8]) -> Self {
        Self([x[0].into(), x[1].into(), x[2].into(), x[3].into(), x[4].into(), x[5].into(), x[6].into(), x[7].into()])
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
