//! Names of the engines.
//!
//! No engine is imported here.

use quantity::names::{self, Listing, UnknownName};

/// Method to compute a result from a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// The closed formulas.
    Model,
    /// TCP packet by packet in virtual time.
    Simulate,
    /// The real kernel over an emulated link.
    Measure,
}

impl Engine {
    /// Every engine, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Model, Self::Simulate, Self::Measure];

    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        self.listing().name
    }

    /// The engine of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name, with the nearest and all the others.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("engine", name, &Self::ALL, Self::name)
    }

    /// Description of the name.
    pub const fn listing(self) -> Listing {
        let (name, description, source) = match self {
            Self::Model => ("model", "the papers' closed formulas", "papers/heidemann-model"),
            Self::Simulate => ("simulate", "TCP packet by packet in virtual time", "ours"),
            Self::Measure => ("measure", "this machine's kernel over an emulated link", "ours"),
        };
        Listing { name, description, source }
    }
}
