//! What is fetched: a page is its first object and what that one embeds.
//!
//! Not the bytes themselves: a server makes those to size. The papers' pages by name are in [`catalogue`].

mod catalogue;

use wire::Bytes;

/// A page: the first object is the document, the others are what it embeds, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Lower-case with hyphens; for one given by sizes, the sizes.
    pub name: String,
    /// At least one.
    pub objects: Vec<Object>,
}

/// One thing with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The body, as it is stored; at least 1 byte.
    pub size: Bytes,
    /// The body after deflate, where that is known.
    pub deflated: Option<Bytes>,
}

impl Object {
    /// An object of which only the stored size is known.
    pub const fn sized(size: Bytes) -> Self {
        Self { size, deflated: None }
    }
}

impl Page {
    /// All bodies together.
    pub fn size(&self) -> Bytes {
        self.objects.iter().map(|object| object.size).sum()
    }
}
