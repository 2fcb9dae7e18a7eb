//! Object stores in a build without the feature `object-store`: none exists, and so no objects.
//!
//! A URL is refused earlier ([`Part::require`]).

use std::io::Read;

use crate::error::Part;

/// Object that cannot exist.
#[derive(Clone, Debug)]
pub struct Object(Never);

/// Stores that cannot exist.
#[derive(Debug)]
pub struct Stores(Never);

#[derive(Clone, Debug)]
enum Never {}

impl Object {
    /// Objects that a URL names.
    ///
    /// # Errors
    /// None: there are no stores.
    pub fn named(stores: &mut Stores, _address: &str) -> Result<Vec<Self>, String> {
        match stores.0 {}
    }

    /// A value of any type: this object cannot exist.
    #[cfg(feature = "parquet")]
    pub fn absent<T>(&self) -> T {
        match self.0 {}
    }

    /// Its address.
    pub fn name(&self) -> String {
        match self.0 {}
    }

    /// Its bytes, from the first.
    pub fn open(&self) -> Box<dyn Read + Send> {
        match self.0 {}
    }
}

impl Stores {
    /// Fails: stores need the feature.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> Result<Self, String> {
        Err(Part::ObjectStore.missing("object stores").to_string())
    }
}
