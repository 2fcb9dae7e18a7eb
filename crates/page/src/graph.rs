//! A page as a graph: hosts, the objects on them, and what each object waits for.
//!
//! The first object is the document. The client knows an object when all its dependencies are met: the moments of
//! other objects at which it is discovered, each with a delay. Of most pages only sizes are known: a server generates
//! filler bytes. Contents, where known, are in [`crate::contents`].

mod host;
mod load;
mod object;
mod removal;

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::{Bytes, Duration};

use crate::Contents;
pub use host::{Hints, Host, OfferedProtocols};
pub use object::{Dependency, Kind, Moment, Object, Priority};

/// Number of images to which Chromium gives medium priority (third_party/blink/common/features.cc,
/// `kBoostImagePriorityImageCount`).
pub(crate) const BOOSTED_IMAGES: usize = 5;

/// A page: the first object is the document, the others are its embedded objects, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Lower-case with hyphens; for a page given by sizes, the sizes.
    pub name: String,
    /// Hosts of the objects, the document's first; at least one.
    pub hosts: Vec<Host>,
    /// Objects in order, the document first; at least one.
    pub objects: Vec<Object>,
    /// Real contents, where known; its files are then these objects, and files that are empty.
    pub contents: Option<Arc<Contents>>,
    /// Sentences about recorded or stored parts that are not modelled, and the share that is.
    pub notes: Vec<String>,
    /// Times of the recording that it comes from, where it has any.
    pub recorded: Option<RecordedTimes>,
}

/// Times of a recorded visit, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedTimes {
    /// The event `DOMContentLoaded`.
    pub content_loaded: Option<Duration>,
    /// The event `load`.
    pub load: Option<Duration>,
    /// End of the last object.
    pub last_end: Option<Duration>,
    /// The client's work between the last byte that the event `load` waits for, and the event.
    pub before_load: Option<Duration>,
    /// Time of the client's threads for each request that it sent and each response that it handled, one after another.
    pub client_time: Option<Duration>,
}

impl Page {
    /// Maximum number of objects, above that of any real page; catches typing errors.
    pub const MAX_OBJECTS: usize = 10_000;
    /// Maximum size of an object: 1 TiB.
    pub const MAX_OBJECT_BYTES: Bytes = Bytes::new(1 << 40);

    /// Maximum number of hosts, above that of any real page.
    pub const MAX_HOSTS: usize = 1_000;

    /// A page of these objects on one host. Objects without dependencies, except the first, wait for the
    /// document's end.
    ///
    /// # Errors
    /// As [`Page::check`].
    pub fn new(name: &str, objects: Vec<Object>) -> Result<Self, PageError> {
        let page = Self::of(name, objects);
        page.check().map(|()| page)
    }

    /// The same, unchecked.
    pub fn of(name: &str, mut objects: Vec<Object>) -> Self {
        for object in objects.iter_mut().skip(1).filter(|object| object.after.is_empty()) {
            object.after.push(Dependency::on_end(0));
        }
        let hosts = vec![Host::new(Host::UNNAMED)];
        Self { name: name.to_owned(), hosts, objects, contents: None, notes: Vec::new(), recorded: None }
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
        is_known.then(|| Self {
            objects: self.objects.iter().map(Object::as_deflated).collect(),
            contents: None,
            ..self.clone()
        })
    }

    /// Whether all objects are on one host, as near as the network, and wait for nothing but the document: the pages
    /// that HTTP/1's formulas know.
    pub fn is_plain(&self) -> bool {
        let is_plain = |object: &Object| {
            let has_no_time = (object.processing, object.request_body) == (None, Bytes::ZERO);
            has_no_time && object.after.iter().all(|after| *after == Dependency::on_end(0))
        };
        let [host] = &self.hosts[..] else { return false };
        let Host {
            name: _,
            address_group: _,
            extra_rtt,
            lookup,
            processing,
            protocols: _,
            certificate_chain: _,
            software: _,
            hints,
        } = host;
        let is_near = [*extra_rtt, *lookup, *processing] == [Duration::ZERO; 3];
        is_near && *hints == Hints::NONE && self.objects.iter().all(is_plain)
    }

    /// Objects that a browser's parser waits for before the document's body: scripts that block rendering, and with them the
    /// style sheets, which scripts wait for. None without such a script: a style sheet alone does not keep the parser from going
    /// on. Only what nothing but the document makes known is part of its head.
    pub fn before_body(&self) -> BTreeSet<usize> {
        let of_head = self.of_head();
        match of_head.iter().any(|index| self.objects[*index].kind == Kind::Script) {
            true => of_head,
            false => BTreeSet::new(),
        }
    }

    /// Objects of the document's head: those that block rendering, and that nothing but the document makes known.
    pub fn of_head(&self) -> BTreeSet<usize> {
        let is_of_head = |(index, object): &(usize, &Object)| {
            *index > 0 && object.is_render_blocking && object.after.iter().all(|after| after.on == 0)
        };
        self.objects.iter().enumerate().filter(is_of_head).map(|(index, _)| index).collect()
    }

    /// Objects of medium priority while a browser holds requests back: of the first five images those that are not small, whatever
    /// their priority becomes once they are laid out (third_party/blink, `kBoostImagePriority`, `image_count`), and others that have
    /// it.
    pub fn of_medium_priority(&self) -> BTreeSet<usize> {
        let objects = || self.objects.iter().enumerate();
        let images = objects().filter(|(_, object)| object.kind == Kind::Image).take(BOOSTED_IMAGES);
        let images = images.filter(|(_, object)| object.priority >= Priority::Medium);
        let has_it = |object: &Object| {
            let has_own_rule = matches!(object.kind, Kind::Image | Kind::Media) || object.is_render_blocking;
            object.priority == Priority::Medium && !has_own_rule
        };
        images.chain(objects().filter(|(_, object)| has_it(object))).map(|(index, _)| index).collect()
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
    /// The first invalid value: no objects or hosts, too many, an empty object or one above 1 TiB, an object on an
    /// unknown host, or one that cannot be discovered.
    pub fn check(&self) -> Result<(), PageError> {
        let Self { name: _, hosts, objects, contents: _, notes: _, recorded: _ } = self;
        if objects.is_empty() || objects.len() > Self::MAX_OBJECTS {
            return Err(PageError::Objects(objects.len()));
        }
        if hosts.is_empty() || hosts.len() > Self::MAX_HOSTS {
            return Err(PageError::Hosts(hosts.len()));
        }
        let sizes = objects.iter().flat_map(|object| [Some(object.size), object.deflated]).flatten();
        if let Some(size) =
            sizes.into_iter().find(|size| *size == Bytes::ZERO || *size > Self::MAX_OBJECT_BYTES)
        {
            return Err(PageError::Size(size));
        }
        if let Some(object) = objects.iter().position(|object| object.host >= hosts.len()) {
            return Err(PageError::Host { object });
        }
        if let Some(host) = hosts.iter().position(|host| !host.hints.all().all(|(after, _)| self.has(&after)))
        {
            return Err(PageError::Hint { host });
        }
        match self.first_undiscovered() {
            Some(object) => Err(PageError::Undiscovered { object }),
            None => Ok(()),
        }
    }

    /// The first object whose dependencies are never met: it waits for an object that is not there, for itself, or
    /// for more bytes than another has.
    fn first_undiscovered(&self) -> Option<usize> {
        let has = |dependency: &Dependency| self.has(dependency);
        if let Some(object) = self.objects.iter().position(|object| !object.after.iter().all(has)) {
            return Some(object);
        }
        let discovered = self.in_order_of_discovery();
        let mut is_discovered = vec![false; self.objects.len()];
        discovered.into_iter().for_each(|index| is_discovered[index] = true);
        is_discovered.iter().position(|is_discovered| !is_discovered)
    }

    /// Whether it has this moment.
    fn has(&self, dependency: &Dependency) -> bool {
        self.objects.get(dependency.on).is_some_and(|on| match dependency.at {
            Moment::Begun | Moment::Ended => true,
            Moment::Delivered(bytes) => bytes <= on.size,
        })
    }

    /// Objects in an order in which each comes after those that it waits for; without those in a cycle, and what
    /// waits for them.
    pub fn in_order_of_discovery(&self) -> Vec<usize> {
        // Objects by the ones that they wait for; each is discovered when its last dependency is.
        let mut waiting: Vec<usize> = self.objects.iter().map(|object| object.after.len()).collect();
        let mut dependents = vec![Vec::new(); self.objects.len()];
        for (index, object) in self.objects.iter().enumerate() {
            for dependency in object.after.iter().filter(|dependency| dependency.on < self.objects.len()) {
                dependents[dependency.on].push(index);
            }
        }
        let mut order: Vec<usize> = (0..waiting.len()).filter(|index| waiting[*index] == 0).collect();
        let mut next = 0;
        while let Some(&object) = order.get(next) {
            next += 1;
            for dependent in std::mem::take(&mut dependents[object]) {
                waiting[dependent] -= 1;
                if waiting[dependent] == 0 {
                    order.push(dependent);
                }
            }
        }
        order
    }
}

/// Reason why a page is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Number of objects: zero, or above the maximum.
    #[error("a page of {0} objects is out of range; give 1 to {max}", max = Page::MAX_OBJECTS)]
    Objects(usize),
    /// Number of hosts: zero, or above the maximum.
    #[error("a page of {0} hosts is out of range; give 1 to {max}", max = Page::MAX_HOSTS)]
    Hosts(usize),
    /// Size of an object: zero, or more than 1 TiB.
    #[error("an object of {0} is out of range; give 1 byte to 1 TiB")]
    Size(Bytes),
    /// An object on a host that the page does not have.
    #[error("object {} is on a host that the page does not have; name the host", .object + 1)]
    Host {
        /// Index of the object.
        object: usize,
    },
    /// A host with a hint that is never known.
    #[error("a hint for host {} is never known; let it wait for an object of the page", .host + 1)]
    Hint {
        /// Index of the host.
        host: usize,
    },
    /// An object whose dependencies are never met.
    #[error(
        "object {} is never discovered; let it wait for objects of the page, without a cycle",
        .object + 1
    )]
    Undiscovered {
        /// Index of the object.
        object: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(after: [&[Dependency]; 3]) -> Page {
        let object = |after: &[Dependency]| Object { after: after.to_vec(), ..Object::sized(Bytes::new(10)) };
        Page { objects: after.map(object).to_vec(), ..Page::of("graph", Vec::new()) }
    }

    #[test]
    fn objects_of_a_page_of_sizes_wait_for_the_document() {
        let page = Page::from_sizes("sizes", [Bytes::new(5), Bytes::new(6)]).unwrap();
        assert_eq!(page.objects[0].after, []);
        assert_eq!(page.objects[1].after, [Dependency::on_end(0)]);
    }

    #[test]
    fn of_five_images_those_not_low_and_whatever_is_recorded_so_are_of_medium_priority() {
        let object = |kind, priority| Object { kind, priority, ..Object::sized(Bytes::new(10)) };
        let mut objects = vec![object(Kind::Image, Priority::High); 7];
        objects[1].priority = Priority::Low;
        objects.extend([object(Kind::Media, Priority::Medium), object(Kind::Script, Priority::Medium)]);
        let page = Page::of("medium", objects);
        assert_eq!(Vec::from_iter(page.of_medium_priority()), [0, 2, 3, 4, 8]);
    }

    #[test]
    fn object_that_is_never_discovered_is_named() {
        let end = Dependency::on_end;
        assert_eq!(page([&[], &[end(0)], &[end(0), end(1)]]).check(), Ok(()));
        for (after, object) in [
            ([&[][..], &[end(3)], &[]], 1),
            ([&[], &[end(1)], &[]], 1),
            ([&[], &[end(0), end(2)], &[end(1)]], 1),
            ([&[], &[], &[Dependency { at: Moment::Delivered(Bytes::new(11)), ..end(0) }]], 2),
        ] {
            assert_eq!(page(after).check(), Err(PageError::Undiscovered { object }));
        }
        let elsewhere = Page { hosts: vec![Host::new("a"); 2], ..page([&[], &[], &[]]) };
        assert_eq!(elsewhere.check(), Ok(()));
        let mut nowhere = elsewhere;
        nowhere.objects[2].host = 2;
        assert_eq!(nowhere.check(), Err(PageError::Host { object: 2 }));
    }
}
