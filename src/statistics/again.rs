//! Queries that are sent to another process. They keep their identity there.

use super::{Arguments, BadParameter, Parameters, Statistic};
use crate::release::exact::Exact;
use crate::release::sensitivity::Sensitivity;
use crate::runtime::identity::Identity;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};

/// A query from another process, with the identity of the original query.
struct Again(Box<dyn Statistic>, Identity);

impl Statistic for Again {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn dimension(&self) -> Option<usize> {
        self.0.dimension()
    }

    fn adds_over_records(&self) -> bool {
        self.0.adds_over_records()
    }

    fn sensitivity(&self) -> Sensitivity {
        self.0.sensitivity()
    }

    fn identity(&self) -> Identity {
        self.1
    }

    fn parameters(&self) -> Parameters {
        self.0.parameters()
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        self.0.exact(points, pulse)
    }
}

/// The query with this name, these parameters and this identity. Hidden randomness is never sent to another process, so
/// a query that needs hidden randomness cannot be read.
pub fn read(name: &str, parameters: Parameters, identity: Identity) -> Result<Box<dyn Statistic>, BadParameter> {
    Ok(Box::new(Again(super::read(name, Arguments::new(parameters, None))?, identity)))
}
