//! Synthetic sites: files of the published sizes, the same from the same seed on every host.
//!
//! | module | contents |
//! | --- | --- |
//! | [`microscape`] | the site that the W3C note measured |
//! | `html` | its document |
//! | `picture`, `raster`, `gif` | its images, their words and symbols, and their format |
//!
//! It is not a server, and writes nothing: it returns paths and bytes.

mod gif;
mod html;
pub mod microscape;
mod picture;
mod raster;

use wire::Seed;

use quantity::names::{self, Listing, UnknownName};

/// A file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path below the site's directory: parts of letters, digits and hyphens, separated by slashes.
    pub path: String,
    /// Contents of the file.
    pub contents: Vec<u8>,
}

/// A synthetic site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// One page of two famous ones, with 42 images (`papers/w3c#microscape`).
    Microscape,
}

impl Site {
    /// Every site.
    pub const ALL: [Self; 1] = [Self::Microscape];

    /// The site of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("site", name, &Self::ALL, Self::name)
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        self.listing().name
    }

    /// Description of the name, and its specification.
    pub const fn listing(self) -> Listing {
        match self {
            Self::Microscape => Listing {
                name: "microscape",
                description: "42 kB of HTML, 40 images of 103,299 B and 2 animations of 24,988 B",
                source: "papers/w3c#microscape",
            },
        }
    }

    /// The site's files, the document first.
    pub fn files(self, seed: Seed) -> Vec<File> {
        match self {
            Self::Microscape => microscape::files(seed),
        }
    }
}
