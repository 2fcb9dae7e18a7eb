//! Pages: hosts, objects, and what each object waits for; with the sources that pages come from.
//!
//! Names, sizes, HTML, HARs and files flow in; a [`Page`], which is a graph, flows out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`graph`] | hosts, objects, and their dependencies |
//! | [`html`] | references to embedded objects, found while a document arrives |
//! | [`contents`] | a page of files, with its document's references |
//! | [`text`] | a page in one word: a name, or sizes |
//! | `catalogue` | the papers' pages by name |
//! | [`mod@file`] | a page in TOML |
//! | [`har`] | pages from a browser's HTTP archive |
//! | [`what_if`] | changes of a page: without a host, hosts merged, other times |
//! | [`site`] | synthetic sites: Microscape |
//!
//! ```
//! use roundtrip_page::{Dependency, Page};
//!
//! let page = Page::named("small-cluster")?;
//! assert_eq!(page.objects.len(), 3);
//! assert_eq!(page.objects[1].after, [Dependency::on_end(0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It fetches nothing and reads no directory: callers pass bytes. It builds for `wasm32-unknown-unknown`.

mod catalogue;
pub mod contents;
pub mod file;
pub mod graph;
pub mod har;
pub mod html;
pub mod site;
pub mod text;
pub mod what_if;

pub use contents::Contents;
pub use graph::{
    Dependency, Hints, Host, Kind, Moment, Object, OfferedProtocols, Page, PageError, Priority, RecordedTimes,
};
pub use site::Site;
