//! A page: its first object, and the objects that this one embeds.
//!
//! Of most pages only sizes are known: a server generates filler bytes. Real contents, where known, are in
//! [`contents`]; a page in one word is parsed by [`text`]; the papers' pages by name are in `catalogue`.

mod catalogue;
pub mod contents;
pub mod text;

use std::fmt;
use std::sync::Arc;

use wire::Bytes;

pub use contents::Contents;

/// A page: the first object is the document, the others are its embedded objects, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Lower-case with hyphens; for a page given by sizes, the sizes.
    pub name: String,
    /// Objects in order, the document first; at least one.
    pub objects: Vec<Object>,
    /// Real contents, where known; its files are then these objects, and files that are empty.
    pub contents: Option<Arc<Contents>>,
    /// Sentences about recorded or stored parts that are not modelled, and the share that is.
    pub notes: Vec<String>,
}

/// An object with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Size of the body, as stored; at least 1 byte.
    pub size: Bytes,
    /// Size of the body after deflate, where known.
    pub deflated: Option<Bytes>,
}

impl Object {
    /// An object of which only the stored size is known.
    pub const fn sized(size: Bytes) -> Self {
        Self { size, deflated: None }
    }
}

impl Page {
    /// Maximum number of objects, above that of any real page; catches typing errors.
    pub const MAX_OBJECTS: usize = 10_000;
    /// Maximum size of an object: 1 TiB.
    pub const MAX_OBJECT_BYTES: Bytes = Bytes::new(1 << 40);

    /// A custom page of known sizes: a recorded visit.
    ///
    /// # Errors
    /// No objects, too many, an empty object or one above 1 TiB.
    pub fn new(name: &str, objects: Vec<Object>) -> Result<Self, PageError> {
        let page = Self { name: name.to_owned(), objects, contents: None, notes: Vec::new() };
        page.check().map(|()| page)
    }

    /// A custom page of which only the stored sizes are known.
    ///
    /// # Errors
    /// As [`Page::new`].
    pub fn from_sizes(name: &str, sizes: impl IntoIterator<Item = Bytes>) -> Result<Self, PageError> {
        Self::new(name, sizes.into_iter().map(Object::sized).collect())
    }

    /// The page as sent by a server that deflated in advance the bodies that shrink by it. `None` if no
    /// object's size after deflate is known.
    pub fn deflated(&self) -> Option<Self> {
        let is_known = self.objects.iter().any(|object| object.deflated.is_some());
        let objects = self.objects.iter().map(|object| Object::sized(object.deflated.unwrap_or(object.size)));
        is_known.then(|| Self {
            name: self.name.clone(),
            objects: objects.collect(),
            contents: None,
            notes: self.notes.clone(),
        })
    }

    /// Size of all bodies together.
    pub fn size(&self) -> Bytes {
        self.objects.iter().map(|object| object.size).sum()
    }

    /// The sizes in the notation of the command line: `43008/11264+3883+1866`.
    pub fn sizes(&self) -> String {
        let sizes: Vec<_> = self.objects.iter().map(Object::to_string).collect();
        sizes.join("+")
    }

    /// Validates the page.
    ///
    /// # Errors
    /// The first invalid value, and its remedy.
    pub fn check(&self) -> Result<(), PageError> {
        let Self { name: _, objects, contents: _, notes: _ } = self;
        if objects.is_empty() || objects.len() > Self::MAX_OBJECTS {
            return Err(PageError::Objects(objects.len()));
        }
        let sizes = objects.iter().flat_map(|object| [Some(object.size), object.deflated]).flatten();
        match sizes.into_iter().find(|size| *size == Bytes::ZERO || *size > Self::MAX_OBJECT_BYTES) {
            Some(size) => Err(PageError::Size(size)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Object {
    /// Notation of the command line: the size, and after a slash the size after deflate where known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, deflated } = self;
        write!(f, "{}", size.get())?;
        deflated.map_or(Ok(()), |deflated| write!(f, "/{}", deflated.get()))
    }
}

/// Reason why a page is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// Number of objects: zero, or above the maximum.
    Objects(usize),
    /// Size of an object: zero, or more than 1 TiB.
    Size(Bytes),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects(count) => {
                write!(f, "a page of {count} objects is out of range; give 1 to {}", Page::MAX_OBJECTS)
            }
            Self::Size(size) => write!(f, "an object of {size} is out of range; give 1 byte to 1 TiB"),
        }
    }
}

impl std::error::Error for PageError {}
