//! Bodies that make a browser play a page's graph: markup that names objects at the byte where they were discovered, style
//! sheets and scripts that load theirs, and fillers.
//!
//! A page flows in; for each object its URL, media type and body flow out. The rules:
//!
//! - What a document makes known while it arrives is a tag that ends at that byte; style sheets and scripts block as recorded.
//! - What a script makes known is code of that script, which runs after the recorded delay. What an image, a font, data or a
//!   style sheet makes known is code of whatever loads that.
//! - Fonts and images that a style sheet names are its rules, unless they come later than [`RENDERING`]: rendering requests them, and
//!   waits for style sheets and scripts by itself.
//! - A delay below [`OWN_WORK`] is the browser's own work, which it does again, and is not played. So is any delay after a
//!   document for an object of the event `load`: the browser's parser waits for style sheets and scripts again.
//! - Other delays before an object of the event `load` are played as work of a script: a timer would not hold that event.
//! - Of parts of an object that is not a document only the end counts.

mod code;
mod markup;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use page::{Dependency, Kind, Moment, Object, Page};
use wire::Duration;

use crate::peers::client::image;

/// Delay that counts as the browser's own work: parsing, style, layout, the start of a script.
pub(crate) const OWN_WORK: Duration = Duration::from_millis(10);

/// Delay that counts as rendering, after the last style sheet or script that it waits for. Later a script changed the document.
const RENDERING: Duration = Duration::from_millis(300);

/// Maximum size of the code and markup of all objects: that of a page in which many objects wait for many is a product.
const MAX_CODE_BYTES: usize = 8 << 20;

/// An object as it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedObject {
    /// Scheme, host and path.
    pub(crate) url: String,
    /// Path with query; no other object of the page has it.
    pub(crate) path: String,
    pub(crate) media_type: &'static str,
    pub(crate) body: Arc<[u8]>,
}

/// A page as it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedPage {
    /// In the order of the page's objects.
    pub(crate) objects: Vec<ServedObject>,
    /// Bytes by which bodies are larger than the page's, because of what they name.
    pub(crate) excess: u64,
}

/// Too much code for the objects' dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyDependencies;

/// The page's bodies. Objects have their own paths, where these are unique, and short ones where the names would not fit
/// otherwise.
pub(crate) fn serve(page: &Page, has_tls: impl Fn(usize) -> bool) -> Result<ServedPage, TooManyDependencies> {
    let schemes = schemes(page, has_tls);
    let recorded = Builder::new(page, &schemes, recorded_paths(page)).page()?;
    if recorded.excess == 0 {
        return Ok(recorded);
    }
    let short = (0..page.objects.len()).map(|index| format!("/{index}")).collect();
    let short = Builder::new(page, &schemes, short).page()?;
    Ok(if short.excess < recorded.excess { short } else { recorded })
}

/// The page's bodies, under paths that are names of files: servers derive the media type from the extension.
pub(crate) fn serve_as_files(
    page: &Page,
    has_tls: impl Fn(usize) -> bool,
) -> Result<ServedPage, TooManyDependencies> {
    let schemes = schemes(page, has_tls);
    let builder = Builder::new(page, &schemes, Vec::new());
    let name = |index| format!("/{index}.{}", extension(builder.kind(index)));
    let paths = (0..page.objects.len()).map(name).collect();
    Builder { paths, ..builder }.page()
}

fn schemes(page: &Page, has_tls: impl Fn(usize) -> bool) -> Vec<&'static str> {
    (0..page.hosts.len()).map(|host| if has_tls(host) { "https" } else { "http" }).collect()
}

const fn extension(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "html",
        Kind::StyleSheet => "css",
        Kind::Script => "js",
        Kind::Image => "gif",
        Kind::Font => "woff2",
        Kind::Media | Kind::Data | Kind::Other => "json",
    }
}

/// Recorded paths; numbers in place of those that are not unique, or have characters with a meaning in markup or code.
fn recorded_paths(page: &Page) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut path = |(index, object): (usize, &Object)| {
        let recorded = object.path.as_ref().filter(|path| is_plain(path) && !taken.contains(*path));
        let path = recorded.cloned().unwrap_or_else(|| format!("/{index}"));
        // A number that another object has as its path: the later one gets a name that none can have.
        let path = if taken.contains(&path) { format!("/{index}?roundtrip") } else { path };
        taken.insert(path.clone());
        path
    };
    page.objects.iter().enumerate().map(&mut path).collect()
}

/// Whether a path has only characters that are themselves in URLs, attributes, strings of scripts and style sheets.
fn is_plain(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/?=,:;+@!*$%[]|".contains(&byte);
    path.starts_with('/') && !path.starts_with("//") && path.len() <= 1_000 && path.bytes().all(is_plain)
}

/// An object that another makes known, and its dependency.
#[derive(Clone, Copy, Debug)]
struct Edge {
    to: usize,
    dependency: Dependency,
}

struct Builder<'a> {
    page: &'a Page,
    schemes: &'a [&'static str],
    paths: Vec<String>,
    /// Edges by the object that they wait for.
    edges: Vec<Vec<Edge>>,
    /// Bytes of code and markup made so far.
    made: usize,
}

impl<'a> Builder<'a> {
    fn new(page: &'a Page, schemes: &'a [&'static str], paths: Vec<String>) -> Self {
        let mut edges = vec![Vec::new(); page.objects.len()];
        for (to, after) in dependencies(page).into_iter().enumerate() {
            for dependency in after {
                edges[dependency.on].push(Edge { to, dependency });
            }
        }
        Self { page, schemes, paths, edges, made: 0 }
    }

    fn page(mut self) -> Result<ServedPage, TooManyDependencies> {
        let mut served = ServedPage { objects: Vec::new(), excess: 0 };
        for (index, object) in self.page.objects.iter().enumerate() {
            let size = usize::try_from(object.size.get()).unwrap_or(usize::MAX);
            let (media_type, body) = match self.kind(index) {
                Kind::Document => ("text/html; charset=utf-8", self.document(index, size)?),
                Kind::StyleSheet => ("text/css", padded(self.style_sheet(index)?, size, "/*", "*/")),
                Kind::Script => ("text/javascript", padded(self.script(index)?, size, "/*", "*/")),
                Kind::Image => ("image/gif", image(size).unwrap_or_else(|| vec![b'.'; size])),
                Kind::Font => ("font/woff2", vec![b'.'; size]),
                Kind::Media | Kind::Data | Kind::Other => ("application/json", json(size)),
            };
            served.excess += body.len().saturating_sub(size) as u64;
            let path = self.paths[index].clone();
            served.objects.push(ServedObject { url: self.url(index), path, media_type, body: body.into() });
        }
        Ok(served)
    }

    /// The type as which an object is loaded. Of an unknown type it is an image, if the event `load` waits for it, and
    /// otherwise data.
    fn kind(&self, index: usize) -> Kind {
        let object = &self.page.objects[index];
        let is_plain_get = object.method == http1::message::Method::Get;
        match object.kind {
            _ if index == 0 => Kind::Document,
            _ if !is_plain_get => Kind::Data,
            Kind::Media | Kind::Other if object.counts_for_load => Kind::Image,
            Kind::Media | Kind::Other => Kind::Data,
            kind => kind,
        }
    }

    /// The whole URL of an object.
    fn url(&self, index: usize) -> String {
        let host = self.page.objects[index].host;
        format!("{}://{}{}", self.schemes[host], self.page.hosts[host].name, self.paths[index])
    }

    /// The URL of an object for a reference in another one.
    fn reference(&self, index: usize, from: usize) -> String {
        let name = |index: usize| &self.page.hosts[self.page.objects[index].host].name;
        if name(index) == name(from) { self.paths[index].clone() } else { self.url(index) }
    }

    /// Number of dependencies that an object has.
    fn waits_for(&self, index: usize) -> usize {
        self.edges.iter().flatten().filter(|edge| edge.to == index).count()
    }

    /// Counts code or markup.
    fn count(&mut self, text: &str) -> Result<(), TooManyDependencies> {
        self.made += text.len();
        if self.made > MAX_CODE_BYTES { Err(TooManyDependencies) } else { Ok(()) }
    }

    /// Whether an edge from a style sheet is a rule of it: an object with nothing else to wait for, and nothing that waits for it.
    fn is_rule(&self, edge: &Edge) -> bool {
        let is_natural = edge.dependency.plus < OWN_WORK && self.waits_for(edge.to) == 1;
        match self.kind(edge.to) {
            Kind::StyleSheet => is_natural,
            Kind::Font | Kind::Image => is_natural && self.edges[edge.to].is_empty(),
            Kind::Document | Kind::Script | Kind::Media | Kind::Data | Kind::Other => false,
        }
    }
}

/// Dependencies of each object, of which none is on the beginning of another: that has the other's own dependencies.
fn dependencies(page: &Page) -> Vec<Vec<Dependency>> {
    let mut all: Vec<Vec<Dependency>> = vec![Vec::new(); page.objects.len()];
    for index in page.in_order_of_discovery() {
        if let Some(named) = named_by_style_sheet(page, index) {
            all[index].push(named);
            continue;
        }
        let mut after: BTreeMap<(usize, bool), Dependency> = BTreeMap::new();
        for dependency in &page.objects[index].after {
            let resolved = match dependency.at {
                Moment::Begun if dependency.on > 0 => {
                    let earlier = all[dependency.on].iter();
                    earlier.map(|one| Dependency { plus: one.plus + dependency.plus, ..*one }).collect()
                }
                Moment::Begun | Moment::Delivered(_) | Moment::Ended => vec![*dependency],
            };
            for one in resolved {
                let known = after.entry((one.on, one.at == Moment::Ended)).or_insert(one);
                // The browser has its own time before it reads the first of them.
                let plus = if known.at == one.at { known.plus.max(one.plus) } else { one.plus };
                if known.at <= one.at {
                    *known = Dependency { plus, ..one };
                }
            }
        }
        all[index] = after.into_values().collect();
    }
    all
}

/// The end of the style sheet that names an object which rendering requests: the first of what it waits for.
fn named_by_style_sheet(page: &Page, index: usize) -> Option<Dependency> {
    let object = &page.objects[index];
    let kind = |dependency: &Dependency| page.objects[dependency.on].kind;
    let named = object.after.first().filter(|first| kind(first) == Kind::StyleSheet)?;
    let awaits_rendering = object.after.iter().all(|dependency| {
        let is_awaited = matches!(kind(dependency), Kind::StyleSheet | Kind::Script);
        is_awaited && dependency.at == Moment::Ended && dependency.plus <= RENDERING
    });
    let is_last =
        page.objects.iter().all(|other| other.after.iter().all(|dependency| dependency.on != index));
    let is_rule = matches!(object.kind, Kind::Font | Kind::Image) && awaits_rendering && is_last;
    is_rule.then_some(Dependency { plus: Duration::ZERO, ..*named })
}

/// Text of this size: the rest is a comment, or spaces.
fn padded(text: String, size: usize, open: &str, close: &str) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    let Some(missing) = size.checked_sub(bytes.len()) else { return bytes };
    match missing.checked_sub(open.len() + close.len()) {
        Some(rest) => {
            bytes.extend_from_slice(open.as_bytes());
            bytes.resize(bytes.len() + rest, b'.');
            bytes.extend_from_slice(close.as_bytes());
        }
        None => bytes.resize(size, b' '),
    }
    bytes
}

/// A string in JSON of this size.
fn json(size: usize) -> Vec<u8> {
    match size.checked_sub(2) {
        Some(letters) => [&b"\""[..], &vec![b'.'; letters], b"\""].concat(),
        None => vec![b'0'; size],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Bytes;

    fn object(kind: Kind, size: u64, after: &[Dependency]) -> Object {
        Object { kind, after: after.to_vec(), ..Object::sized(Bytes::new(size)) }
    }

    fn delivered(on: usize, bytes: u64) -> Dependency {
        Dependency { on, at: Moment::Delivered(Bytes::new(bytes)), plus: Duration::ZERO }
    }

    fn body(served: &ServedPage, index: usize) -> String {
        String::from_utf8_lossy(&served.objects[index].body).into_owned()
    }

    fn served(objects: Vec<Object>) -> ServedPage {
        serve(&Page::of("page", objects), |_| true).unwrap()
    }

    #[test]
    fn every_body_has_its_size() {
        let kinds = Kind::NAMES.map(|(kind, _)| object(kind, 3_000, &[delivered(0, 2_000)]));
        let mut objects = vec![object(Kind::Document, 5_000, &[])];
        objects.extend(kinds);
        let served = served(objects.clone());
        let sizes: Vec<u64> = served.objects.iter().map(|object| object.body.len() as u64).collect();
        assert_eq!(sizes, objects.iter().map(|object| object.size.get()).collect::<Vec<_>>());
        assert_eq!(served.excess, 0);
    }

    #[test]
    fn a_tag_ends_at_the_byte_that_made_its_object_known() {
        let served = served(vec![
            object(Kind::Document, 9_000, &[]),
            object(Kind::Image, 100, &[delivered(0, 6_000)]),
            object(Kind::StyleSheet, 100, &[delivered(0, 1_000)]),
        ]);
        let document = body(&served, 0);
        let tag = "<img src=\"/1\">";
        assert_eq!(document.find(tag).map(|at| at + tag.len()), Some(6_000), "{document}");
        assert!(document.find("href=\"/2\"").is_some_and(|at| at < 1_000));
    }

    #[test]
    fn a_hint_is_a_link_at_its_byte() {
        let objects =
            vec![object(Kind::Document, 9_000, &[]), object(Kind::Image, 100, &[delivered(0, 6_000)])];
        let mut page = Page::of("page", objects);
        page.hosts.push(page::Host::new("cdn.example"));
        page.objects[1].host = 1;
        page.hosts[1].hints.preconnect = Some(delivered(0, 3_000));
        let document = body(&serve(&page, |_| true).unwrap(), 0);
        let link = "<link rel=preconnect href=\"https://cdn.example\">";
        assert_eq!(document.find(link).map(|at| at + link.len()), Some(3_000), "{document}");
    }

    #[test]
    fn a_script_fetches_what_it_fetched_at_the_time_it_did() {
        let later = Dependency { plus: Duration::from_millis(50), ..Dependency::on_end(1) };
        let served = served(vec![
            object(Kind::Document, 9_000, &[]),
            object(Kind::Script, 900, &[delivered(0, 500)]),
            object(Kind::Data, 100, &[later]),
            object(Kind::Image, 100, &[Dependency::on_end(2)]),
        ]);
        let script = body(&served, 1);
        assert!(script.contains("setTimeout(()=>{") && script.contains("fetch('/2'"), "{script}");
        assert!(script.contains("},50)") && script.contains(".src='/3'"), "{script}");
        assert!(!body(&served, 0).contains("/2"));
    }

    #[test]
    fn regress_a_script_works_until_each_delay_since_its_start_and_not_for_their_sum() {
        let after = |ms| Dependency { plus: Duration::from_millis(ms), ..Dependency::on_end(1) };
        let served = served(vec![
            object(Kind::Document, 9_000, &[]),
            object(Kind::Script, 900, &[delivered(0, 500)]),
            object(Kind::Image, 100, &[after(90)]),
            object(Kind::Image, 100, &[after(60)]),
            object(Kind::Data, 100, &[after(70)]),
        ]);
        let script = body(&served, 1);
        let at = |text: &str| script.find(text).unwrap_or_else(|| panic!("{text}: {script}"));
        assert!(at("let s=performance.now()") < at("},70)"), "{script}");
        assert!(at("},70)") < at("while(performance.now()<s+60)"), "a timer is set first: {script}");
        assert!(
            at("s+60);{let o=new Image;o.src='/3'") < at("s+90);{let o=new Image;o.src='/2'"),
            "{script}"
        );
    }

    #[test]
    fn fonts_and_images_of_a_style_sheet_are_rules() {
        let served = served(vec![
            object(Kind::Document, 9_000, &[]),
            object(Kind::StyleSheet, 900, &[delivered(0, 500)]),
            object(Kind::Font, 100, &[Dependency::on_end(1)]),
            object(Kind::Image, 100, &[Dependency::on_end(1)]),
            object(Kind::StyleSheet, 100, &[Dependency::on_end(1)]),
        ]);
        let (sheet, document) = (body(&served, 1), body(&served, 0));
        assert!(sheet.starts_with("@import url(\"/4\");"), "{sheet}");
        assert!(sheet.contains("@font-face{font-family:f2;src:url(\"/2\")}") && sheet.contains(".i3{"));
        assert!(document.contains("font-family:f2") && document.contains("class=i3"), "{document}");
    }

    #[test]
    fn what_rendering_requests_is_a_rule_of_the_style_sheet_that_names_it() {
        let rendered = |ms| {
            let last = Dependency { plus: Duration::from_millis(ms), ..Dependency::on_end(3) };
            object(Kind::Font, 100, &[Dependency::on_end(2), Dependency::on_end(1), last])
        };
        let served = served(vec![
            object(Kind::Document, 9_000, &[]),
            object(Kind::StyleSheet, 900, &[delivered(0, 500)]),
            object(Kind::StyleSheet, 900, &[delivered(0, 600)]),
            object(Kind::Script, 900, &[delivered(0, 700)]),
            rendered(200),
            rendered(2_000),
        ]);
        assert!(body(&served, 2).contains("src:url(\"/4\")"), "{}", body(&served, 2));
        assert!((1..4).all(|index| index == 2 || !body(&served, index).contains("/4")));
        assert!(body(&served, 3).contains("new FontFace('f','url(/5)')"), "{}", body(&served, 3));
    }

    #[test]
    fn what_waits_for_two_is_loaded_by_the_last() {
        let served = served(vec![
            object(Kind::Document, 9_000, &[]),
            object(Kind::Script, 900, &[delivered(0, 500)]),
            object(Kind::Script, 900, &[delivered(0, 500)]),
            object(Kind::Image, 100, &[Dependency::on_end(1), Dependency::on_end(2)]),
        ]);
        for script in [body(&served, 1), body(&served, 2)] {
            assert!(script.contains("==2)") && script.contains(".src='/3'"), "{script}");
        }
    }

    #[test]
    fn paths_are_unique_and_without_meaning_in_markup() {
        let path = |path: &str| Object { path: Some(path.to_owned()), ..Object::sized(Bytes::new(10)) };
        let page =
            Page::of("page", vec![path("/"), path("/a"), path("/a"), path("/\"><script>"), path("/2")]);
        assert_eq!(recorded_paths(&page), ["/", "/a", "/2", "/3", "/4"]);
    }

    #[test]
    fn files_are_named_by_number_and_type_and_name_one_another() {
        let page = Page::of(
            "page",
            vec![
                object(Kind::Document, 9_000, &[]),
                object(Kind::Script, 900, &[delivered(0, 500)]),
                object(Kind::Font, 100, &[Dependency::on_end(1)]),
            ],
        );
        let served = serve_as_files(&page, |_| true).unwrap();
        let paths: Vec<&str> = served.objects.iter().map(|object| object.path.as_str()).collect();
        assert_eq!(paths, ["/0.html", "/1.js", "/2.woff2"]);
        assert!(body(&served, 0).contains("src=\"/1.js\"") && body(&served, 1).contains("/2.woff2"));
        assert_eq!(served.excess, 0);
    }

    #[test]
    fn a_document_too_small_for_its_names_grows_and_reports_it() {
        let mut objects = vec![object(Kind::Document, 60, &[])];
        objects.extend((0..9).map(|_| object(Kind::Image, 100, &[Dependency::on_end(0)])));
        let served = served(objects);
        assert_eq!(served.excess, served.objects[0].body.len() as u64 - 60);
        assert!(served.excess > 0);
    }
}
