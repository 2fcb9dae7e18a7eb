//! Sites that are made, not found: files of the published sizes, the same from the same seed on every machine.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`microscape`] | the site that the W3C note measured |
//! | `html` | its document |
//! | `picture`, `gif` | its images, and their format |
//!
//! Not a server, and nothing is written here: out flow paths and bytes.

mod gif;
mod html;
pub mod microscape;
mod picture;

use wire::Seed;

use quantity::names::{self, Listing, Unknown};

/// One file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it lies, below the site's folder: parts of letters, digits and hyphens, between slashes.
    pub path: String,
    /// All of it.
    pub contents: Vec<u8>,
}

/// A site that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// One page of two famous ones, with 42 images (`papers/w3c#microscape`).
    Microscape,
}

impl Site {
    /// Every one.
    pub const ALL: [Self; 1] = [Self::Microscape];

    /// The site of that name.
    ///
    /// # Errors
    /// [`Unknown`] when there is none.
    pub fn named(name: &str) -> Result<Self, Unknown> {
        names::find("site", name, &Self::ALL, Self::name)
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        self.listing().name
    }

    /// What the name stands for, and where it is specified.
    pub const fn listing(self) -> Listing {
        match self {
            Self::Microscape => Listing {
                name: "microscape",
                description: "42 kB of HTML, 40 images of 103,299 B and 2 animations of 24,988 B",
                source: "papers/w3c#microscape",
            },
        }
    }

    /// Its files, the document first.
    pub fn files(self, seed: Seed) -> Vec<File> {
        match self {
            Self::Microscape => microscape::files(seed),
        }
    }
}
