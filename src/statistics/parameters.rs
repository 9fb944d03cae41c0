//! The public parameters of a query, by name. The trace of a run stores them, and another process rebuilds the query
//! from them.

use std::borrow::Cow;

use super::{BadParameter, checked_bits};
use crate::release::streams::Stream;

/// A public parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A length, a weight or a share.
    Float(f64),
    /// A point, several points one after the other, or radii.
    Floats(Vec<f64>),
    /// A point in single precision. Every such point is also a point in double precision.
    Singles(Vec<f32>),
    /// The bits of a lattice, a count, or a flag.
    Number(u64),
    /// A fraction p/2^k as the pair of p and k, or codes.
    Numbers(Vec<u64>),
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&[f64]> for Value {
    fn from(values: &[f64]) -> Self {
        Self::Floats(values.to_vec())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Number(value as u64)
    }
}

impl From<&[u64]> for Value {
    fn from(values: &[u64]) -> Self {
        Self::Numbers(values.to_vec())
    }
}

/// The parameters of a query, in the order in which they are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters(Vec<(Cow<'static, str>, Value)>);

impl Parameters {
    /// Parameters with names that are known in advance.
    pub fn of<const N: usize>(values: [(&'static str, Value); N]) -> Self {
        Self(values.map(|(name, value)| (Cow::Borrowed(name), value)).into())
    }

    /// Parameters whose names come from the caller.
    pub fn named(values: Vec<(String, Value)>) -> Self {
        Self(values.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect())
    }

    /// How many numbers all parameters contain together.
    pub fn size(&self) -> usize {
        let size = |(_, value): (&str, &Value)| match value {
            Value::Float(_) | Value::Number(_) => 1,
            Value::Floats(values) => values.len(),
            Value::Singles(values) => values.len(),
            Value::Numbers(values) => values.len(),
        };
        self.iter().map(size).sum()
    }

    /// The names and the values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }
}

/// The input for creating a query or a bound: parameters, which are taken out one by one, and hidden randomness if the
/// query needs it.
pub struct Arguments {
    parameters: Parameters,
    stream: Option<Stream>,
}

impl Arguments {
    /// The input with these parameters, with or without hidden randomness.
    pub fn new(parameters: Parameters, stream: Option<Stream>) -> Self {
        Self { parameters, stream }
    }

    /// Takes a parameter that may be missing.
    pub(super) fn optional(&mut self, name: &str) -> Option<Value> {
        let Parameters(values) = &mut self.parameters;
        let place = values.iter().position(|(known, _)| known == name)?;
        Some(values.remove(place).1)
    }

    fn required(&mut self, name: &str) -> Result<Value, BadParameter> {
        self.optional(name).ok_or_else(|| BadParameter(format!("the parameter {name:?} is missing")))
    }

    /// Takes a length, a weight or a share. A whole number is accepted, too.
    pub(super) fn float(&mut self, name: &str) -> Result<f64, BadParameter> {
        match self.required(name)? {
            Value::Float(value) => Ok(value),
            Value::Number(value) => Ok(value as f64),
            other => Err(unlike(name, "a number", &other)),
        }
    }

    /// Takes a point, several points or radii.
    pub(super) fn floats(&mut self, name: &str) -> Result<Vec<f64>, BadParameter> {
        match self.required(name)? {
            Value::Floats(values) => Ok(values),
            Value::Singles(values) => Ok(values.into_iter().map(f64::from).collect()),
            other => Err(unlike(name, "floating-point numbers", &other)),
        }
    }

    /// Takes a whole number.
    pub(super) fn size(&mut self, name: &str) -> Result<usize, BadParameter> {
        match self.required(name)? {
            Value::Number(value) => Ok(usize::try_from(value).unwrap_or(usize::MAX)),
            other => Err(unlike(name, "a whole number", &other)),
        }
    }

    /// Takes the bits of a lattice, or another small number. A number that is too large becomes a number that every
    /// check refuses.
    pub(super) fn small(&mut self, name: &str) -> Result<u32, BadParameter> {
        Ok(u32::try_from(self.size(name)?).unwrap_or(u32::MAX))
    }

    /// Takes the bits of a lattice of multiples of 2^-bits, which must be no finer than the finest.
    pub(super) fn bits(&mut self, finest: u32) -> Result<u32, BadParameter> {
        checked_bits(self.small("bits")?, finest)
    }

    /// Takes whole numbers.
    pub(super) fn numbers(&mut self, name: &str) -> Result<Vec<u64>, BadParameter> {
        match self.required(name)? {
            Value::Numbers(values) => Ok(values),
            other => Err(unlike(name, "whole numbers", &other)),
        }
    }

    /// Takes a fraction p/2^k. If it is missing, the result is 0.
    pub(super) fn fraction(&mut self, name: &str) -> Result<(u64, u32), BadParameter> {
        match self.optional(name) {
            None => Ok((0, 0)),
            Some(Value::Numbers(pair)) if pair.len() == 2 => Ok((pair[0], u32::try_from(pair[1]).unwrap_or(u32::MAX))),
            Some(other) => Err(unlike(name, "a pair (p, k) for p/2^k", &other)),
        }
    }

    /// Takes a flag. If it is missing, the flag is not set.
    pub fn flag(&mut self, name: &str) -> Result<bool, BadParameter> {
        match self.optional(name) {
            None | Some(Value::Number(0)) => Ok(false),
            Some(Value::Number(1)) => Ok(true),
            Some(other) => Err(unlike(name, "true or false", &other)),
        }
    }

    /// Takes the hidden randomness.
    pub(super) fn stream(&mut self) -> Result<Stream, BadParameter> {
        self.stream.take().ok_or_else(|| BadParameter("the query needs hidden randomness".into()))
    }

    /// Returns the created value, or an error if a parameter was not taken.
    pub(super) fn taken<T>(self, made: T) -> Result<T, BadParameter> {
        match self.parameters.0.first() {
            None => Ok(made),
            Some((name, _)) => Err(BadParameter(format!("there is no parameter {name:?}"))),
        }
    }
}

fn unlike(name: &str, expected: &str, got: &Value) -> BadParameter {
    BadParameter(format!("{name} must be {expected}, got {got:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_the_type_that_is_asked_for_or_none() {
        let parameters = Parameters::of([("radius", 2u32.into()), ("theta", [1.0].as_slice().into())]);
        let given = || Arguments::new(parameters.clone(), None);
        assert_eq!(given().float("radius"), Ok(2.0));
        assert_eq!((given().size("radius"), given().floats("theta")), (Ok(2), Ok(vec![1.0])));
        assert!(
            given().floats("radius").is_err() && given().size("theta").is_err() && given().float("weight").is_err()
        );
        assert!(
            given().numbers("theta").is_err() && given().fraction("theta").is_err() && given().flag("radius").is_err()
        );
        assert_eq!((given().fraction("target"), given().flag("centered")), (Ok((0, 0)), Ok(false)));
        assert!(given().taken(()).is_err() && Arguments::new(Parameters::of([]), None).taken(()).is_ok());
        assert!(given().stream().is_err());
    }
}
