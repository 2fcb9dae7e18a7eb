//! Discovery edges: what each object of a recording waited for, and its think time after that.
//!
//! The first rule that applies decides; an edge always leads to an object that started before.
//!
//! 1. A redirect's target waits for the redirect, and a request for its preflight.
//! 2. The initiator, where it is recorded, otherwise the document or style sheet whose text names it: the document, or every script on
//!    the stack, and what such a script waits for ([`Awaited`]). What began long after its place in a document was not found there by
//!    the preload scanner: the parser stood there when a script made it. It waits for the script before that place; and, unless the
//!    place is that script's end, for the script or data that ended last before the start.
//! 3. The style sheet that the field `Referer` names.
//! 4. The document that `Referer` names, or the page's, if it was arriving.
//! 5. The document, script or data that ended last before the start; for images and fonts also style sheets. Other
//!    types start no requests.
//!
//! The moment of an edge is the end of the object, or the bytes of it that had arrived: receiving counts as even. Where the
//! initiator is an element of a document, whose place is recorded, they are the bytes before it, even if all had arrived: on
//! a slower network they have not. It also waits for the start of the scanner, some time after the document's first byte. The think
//! time is the start less that moment. It contains no queueing: that is a phase of the entry, after its start.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use wire::{Bytes, Duration};

use super::parser::{Awaited, without_fragment};
use super::timeline::{Item, SLACK};
use crate::html::address::Base;
use crate::{Dependency, Kind, Moment};

/// Numbers of objects by the rule that found what they waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Redirects and preflights.
    pub(super) redirects: usize,
    pub(super) initiators: usize,
    /// Objects that a document's or a style sheet's text names.
    pub(super) named: usize,
    pub(super) referers: usize,
    pub(super) inferred: usize,
    /// Initiators that are elements of a document at a recorded place.
    pub(super) elements: usize,
    /// Objects without a recorded start.
    pub(super) timeless: usize,
    /// Objects whose recorded initiator is not in the recording, or began later.
    pub(super) lost_initiators: usize,
}

/// Dependencies of every object; the first is the document, and the others are in order of their starts.
pub(super) fn dependencies(items: &[Item]) -> (Vec<Vec<Dependency>>, Evidence) {
    let mut discovery = Discovery::new(items);
    let of = |index| {
        // Local entries may start before the document, but the document waits for nothing.
        let after = if index > 0 { discovery.of(index) } else { Vec::new() };
        discovery.note(index);
        after
    };
    let all = (0..items.len()).map(of).collect();
    (all, discovery.evidence)
}

struct Discovery<'a> {
    items: &'a [Item],
    /// Objects by URL, the last one with it.
    by_url: BTreeMap<&'a str, usize>,
    /// Redirects by their target, and preflights by their own URL.
    awaited: BTreeMap<String, usize>,
    /// Objects that may start requests, by their end; those that have ended move to `ended`.
    arriving: BinaryHeap<Reverse<(Duration, usize)>>,
    /// The last line of each document at which an element is recorded.
    last_lines: BTreeMap<&'a str, u32>,
    awaited_by: Awaited<'a>,
    /// Shortest think time of an element of each document.
    scanning: BTreeMap<usize, Duration>,
    /// Time from the first byte of each document until its scanner starts.
    start_up: BTreeMap<usize, Duration>,
    /// Last ended document, script or data, and style sheet.
    ended: [Option<(Duration, usize)>; 2],
    evidence: Evidence,
}

impl<'a> Discovery<'a> {
    fn new(items: &'a [Item]) -> Self {
        let (by_url, awaited, arriving, scanning, start_up, evidence) = Default::default();
        let mut last_lines: BTreeMap<&'a str, u32> = BTreeMap::new();
        for clues in items.iter().map(|item| &item.entry.clues) {
            if let (Some(place), Some(url)) = (clues.place, clues.initiators.first()) {
                let last = last_lines.entry(without_fragment(url)).or_default();
                *last = place.line.max(*last);
            }
        }
        let (awaited_by, ended) = (Awaited::new(items), [None; 2]);
        Self { items, by_url, awaited, arriving, last_lines, awaited_by, scanning, start_up, ended, evidence }
    }

    /// Notes that an object has started.
    fn note(&mut self, index: usize) {
        let item = &self.items[index];
        if let Some(url) = item.entry.url.as_deref() {
            self.by_url.insert(without_fragment(url), index);
            if let Some(target) = item.entry.redirect.as_deref() {
                self.awaited.insert(resolved(url, target), index);
            }
            if item.entry.method == http1::message::Method::Options {
                self.awaited.insert(without_fragment(url).to_owned(), index);
            }
        }
        let is_redirect = item.entry.redirect.is_some();
        if class(item.kind).is_some() && !is_redirect {
            self.arriving.push(Reverse((item.end(), index)));
        }
    }

    /// Dependencies of an object.
    fn of(&mut self, index: usize) -> Vec<Dependency> {
        let item = &self.items[index];
        let Some(start) = item.start else {
            self.evidence.timeless += 1;
            return vec![Dependency::on_end(0)];
        };
        self.advance(start);
        let url = item.entry.url.as_deref().map(without_fragment);
        if let Some(before) = url.and_then(|url| self.awaited.remove(url))
            && let Some(edge) = self.edge(before, start)
        {
            self.evidence.redirects += 1;
            return vec![edge.dependency];
        }
        if let Some(edge) = self.element(index, start) {
            self.count_initiator(index);
            let dependencies = self.after_parser(index, edge, start);
            // One that waits for more than the document was not found there.
            let on = edge.dependency.on;
            self.evidence.elements += usize::from(dependencies.iter().all(|one| one.on == on));
            return dependencies;
        }
        let mut edges = self.initiators(index, start);
        if !edges.is_empty() {
            self.count_initiator(index);
            for on in edges.iter().map(|edge| edge.dependency.on).collect::<Vec<_>>() {
                self.add_awaited(&mut edges, on, start);
            }
            return all_of(edges, start);
        }
        self.evidence.lost_initiators += usize::from(!item.entry.clues.initiators.is_empty());
        let referer = item.entry.clues.referer.as_deref().map(without_fragment);
        let referer = referer.and_then(|url| self.by_url.get(url)).copied();
        let referer = referer.and_then(|on| self.edge(on, start));
        let is_style_sheet = |edge: &Edge| self.items[edge.dependency.on].kind == Kind::StyleSheet;
        if let Some(edge) = referer.filter(is_style_sheet) {
            self.evidence.referers += 1;
            return vec![edge.dependency];
        }
        self.evidence.inferred += 1;
        vec![self.inferred(item.kind, start, referer)]
    }

    fn count_initiator(&mut self, index: usize) {
        let Evidence { initiators, named, .. } = &mut self.evidence;
        *(if self.items[index].entry.clues.is_named { named } else { initiators }) += 1;
    }

    /// Moves what has ended by this time.
    fn advance(&mut self, now: Duration) {
        while let Some(Reverse((end, index))) =
            self.arriving.peek().copied().filter(|Reverse((end, _))| *end <= now + SLACK)
        {
            self.arriving.pop();
            if let Some(class) = class(self.items[index].kind) {
                self.ended[class] = self.ended[class].max(Some((end, index)));
            }
        }
    }

    /// The edge to the bytes of a document before the element that names the object. Frames are not looked for in advance.
    fn element(&self, index: usize, start: Duration) -> Option<Edge> {
        let Item { entry, kind, .. } = &self.items[index];
        let url = entry.clues.initiators.first().map(|url| without_fragment(url))?;
        let on = self.by_url.get(url).copied().filter(|on| *on != index)?;
        let document = &self.items[on];
        if document.kind != Kind::Document || *kind == Kind::Document || document.local.is_some() {
            return None;
        }
        let place = entry.clues.place?;
        let last = self.last_lines.get(url).copied().unwrap_or(0);
        let part = place.part(&document.entry.lines, last, document.entry.size?)?;
        let receiving = document.end().saturating_sub(document.first_byte());
        let moment = document.first_byte() + Duration::from_secs_f64(receiving.as_secs_f64() * part)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a size of at most 1 TiB"
        )]
        let bytes = (document.size() as f64 * part) as u64;
        let at = Moment::Delivered(Bytes::new(bytes.clamp(1, document.size())));
        let plus = start.saturating_sub(moment);
        let edge = Edge { dependency: Dependency { on, at, plus }, moment };
        (moment <= start + SLACK && document.start.is_some()).then_some(edge)
    }

    /// Dependencies of an object at its place in a document: those bytes, and where it began later than the scanner requests others,
    /// what the parser waited for.
    fn after_parser(&mut self, index: usize, element: Edge, start: Duration) -> Vec<Dependency> {
        let Dependency { on, plus, .. } = element.dependency;
        let scanning = self.scanning.entry(on).or_insert(plus);
        *scanning = plus.min(*scanning);
        if start <= self.items[on].end() + *scanning + LONGEST_SCAN {
            return self.scanned(element, start);
        }
        let mut edges = vec![element];
        let clues = &self.items[index].entry.clues;
        let document = clues.initiators.first().map(|url| without_fragment(url)).unwrap_or_default();
        let place = clues.place.filter(|_| self.items[index].kind != Kind::Document);
        let script = place
            .and_then(|place| Some((place, self.awaited_by.script_before(document, place, self.items)?)));
        if let Some((_, (_, script))) = script {
            self.add_ended(&mut edges, script, start);
            self.add_awaited(&mut edges, script, start);
        }
        if !script.is_some_and(|(place, (script, _))| place.is_end_of(script))
            && let Some((end, program)) = self.ended[0]
            && end > element.moment
        {
            self.add_ended(&mut edges, program, start);
        }
        all_of(edges, start)
    }

    /// Dependencies of an object that the preload scanner found: the scanner starts some time after the document's first byte, and
    /// on a slower network the bytes before the element arrive later than that. Where the first element came late, it starts after at
    /// most twice the think time.
    fn scanned(&mut self, Edge { dependency, moment }: Edge, start: Duration) -> Vec<Dependency> {
        let Dependency { on, plus, .. } = dependency;
        let first_byte = self.items[on].first_byte();
        let latest = plus + plus.min(moment.saturating_sub(first_byte));
        let start_up = *self.start_up.entry(on).or_insert(latest);
        if dependency.at == FIRST_BYTE || start_up == Duration::ZERO {
            return vec![dependency];
        }
        let plus = start.saturating_sub((first_byte + start_up).max(moment));
        let scanner = Dependency { at: FIRST_BYTE, plus: start_up + plus, ..dependency };
        vec![scanner, Dependency { plus, ..dependency }]
    }

    /// Adds what a script waited for before it ran, or rendering before it looked for what a style sheet names.
    fn add_awaited(&self, edges: &mut Vec<Edge>, on: usize, start: Duration) {
        let item = &self.items[on];
        let awaited = match item.kind {
            Kind::StyleSheet => self.awaited_by.before_rendering(item),
            _ => self.awaited_by.before_script(on, item),
        };
        for (_, before) in awaited {
            self.add_ended(edges, *before, start);
        }
    }

    /// Adds an edge to an object that had ended.
    fn add_ended(&self, edges: &mut Vec<Edge>, on: usize, start: Duration) {
        let edge = self.edge(on, start).filter(|edge| edge.dependency.at == Moment::Ended);
        if edges.iter().all(|edge| edge.dependency.on != on) {
            edges.extend(edge);
        }
    }

    fn initiators(&self, index: usize, start: Duration) -> Vec<Edge> {
        let urls = self.items[index].entry.clues.initiators.iter();
        let found = urls.filter_map(|url| self.by_url.get(without_fragment(url)).copied());
        let mut edges: Vec<Edge> = Vec::new();
        for on in found.filter(|on| *on != index) {
            if edges.iter().all(|edge| edge.dependency.on != on) {
                edges.extend(self.edge(on, start));
            }
        }
        edges
    }

    fn inferred(&self, kind: Kind, start: Duration, referer: Option<Edge>) -> Dependency {
        let document = referer.filter(|edge| self.items[edge.dependency.on].kind == Kind::Document);
        let document = document.or_else(|| self.edge(0, start));
        if let Some(edge) = document.filter(|edge| edge.dependency.at != Moment::Ended) {
            return edge.dependency;
        }
        let [program, style_sheet] = self.ended;
        let style_sheet = style_sheet.filter(|_| matches!(kind, Kind::Font | Kind::Image | Kind::StyleSheet));
        let last = program.max(style_sheet).and_then(|(_, on)| self.edge(on, start));
        let edges = [document, last].into_iter().flatten();
        let Some(edge) = edges.max_by_key(|edge| edge.moment) else {
            // Nothing had arrived: the browser's own request, at its time after the document's.
            let begun = self.items[0].begun();
            return Dependency { on: 0, at: Moment::Begun, plus: start.saturating_sub(begun) };
        };
        edge.dependency
    }

    /// The edge to an object at this time; `None` if nothing of it had arrived.
    fn edge(&self, on: usize, start: Duration) -> Option<Edge> {
        let item = &self.items[on];
        let (first_byte, end) = (item.first_byte(), item.end());
        let edge = |at, moment: Duration| {
            let plus = start.saturating_sub(moment);
            Some(Edge { dependency: Dependency { on, at, plus }, moment })
        };
        if end <= start + SLACK {
            return edge(Moment::Ended, end);
        }
        if item.local.is_some() || item.start.is_none() || first_byte > start + SLACK {
            return None;
        }
        let arrived =
            start.saturating_sub(first_byte).as_secs_f64() / end.saturating_sub(first_byte).as_secs_f64();
        // A share of at most 1 TiB.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the product is a size")]
        let bytes = (item.size() as f64 * arrived) as u64;
        let at = Moment::Delivered(Bytes::new(bytes.clamp(1, item.size())));
        Some(Edge { dependency: Dependency { on, at, plus: Duration::ZERO }, moment: start })
    }
}

const FIRST_BYTE: Moment = Moment::Delivered(Bytes::new(1));

/// Time within which the preload scanner requests the elements of a part of a document, after the first of them.
const LONGEST_SCAN: Duration = Duration::from_millis(20);

/// A dependency, and the recorded time of its moment.
#[derive(Clone, Copy, Debug)]
struct Edge {
    dependency: Dependency,
    moment: Duration,
}

/// Edges of which all must be met: the think time follows the last.
fn all_of(edges: Vec<Edge>, start: Duration) -> Vec<Dependency> {
    let last = edges.iter().map(|edge| edge.moment).max().unwrap_or_default();
    let mut plus = start.saturating_sub(last);
    edges
        .into_iter()
        .map(|Edge { dependency, moment }| {
            let plus = if moment == last { std::mem::take(&mut plus) } else { Duration::ZERO };
            Dependency { plus, ..dependency }
        })
        .collect()
}

/// Index in `ended`; `None` for types that start no requests.
const fn class(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Document | Kind::Script | Kind::Data => Some(0),
        Kind::StyleSheet => Some(1),
        Kind::Font | Kind::Image | Kind::Media | Kind::Other => None,
    }
}

/// The address that a text at `base` names, without its fragment.
pub(super) fn resolved(base: &str, target: &str) -> String {
    let target = without_fragment(target.trim());
    if target.starts_with("//") {
        let scheme = base.split(':').next().unwrap_or_default();
        return format!("{scheme}:{target}");
    }
    let has_scheme = target.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
    let (origin, path) = base.match_indices('/').nth(2).map_or((base, "/"), |(at, _)| base.split_at(at));
    let path = Base::new("", path).resolve(target.as_bytes()).filter(|_| !has_scheme);
    path.map_or_else(|| target.to_owned(), |path| format!("{origin}{path}"))
}

#[cfg(test)]
mod tests {
    use super::super::pages;
    use super::super::test_archive::{Recorded, archive};
    use crate::{Dependency, Moment, Page};
    use wire::{Bytes, Duration};

    fn page(entries: &[Recorded<'_>]) -> Page {
        let entries: Vec<String> = entries.iter().copied().map(Recorded::json).collect();
        pages("visit", archive(&entries).as_bytes()).unwrap().remove(0)
    }

    fn edge(on: usize, at: Moment, plus: u64) -> Dependency {
        Dependency { on, at, plus: Duration::from_millis(plus) }
    }

    /// The document arrives from 100 to 200 ms; the script from 350 to 450 ms; the style sheet from 400 to 500 ms.
    const DOCUMENT: &str = "https://h/";
    const SCRIPT: &str = "https://h/a.js";
    const STYLE_SHEET: &str = "https://h/a.css";

    fn after_three(last: Recorded<'_>) -> Vec<Dependency> {
        let all =
            [Recorded::at(0, DOCUMENT), Recorded::at(250, SCRIPT), Recorded::at(300, STYLE_SHEET), last];
        page(&all).objects[3].after.clone()
    }

    #[test]
    fn objects_are_discovered_while_the_document_arrives_or_after_what_ended_last() {
        let delivered = |bytes| Moment::Delivered(Bytes::new(bytes));
        let early = [
            Recorded::at(0, DOCUMENT),
            Recorded::at(130, "https://h/b.png"),
            Recorded::at(50, "https://x/f.ico"),
        ];
        assert_eq!(page(&early).objects[2].after, [edge(0, delivered(300), 0)]);
        assert_eq!(page(&early).objects[1].after, [edge(0, Moment::Begun, 50)], "nothing had arrived");
        let image = "https://h/b.png";
        assert_eq!(after_three(Recorded::at(440, image)), [edge(0, Moment::Ended, 240)], "the others arrive");
        assert_eq!(after_three(Recorded::at(460, image)), [edge(1, Moment::Ended, 10)]);
        assert_eq!(after_three(Recorded::at(520, image)), [edge(2, Moment::Ended, 20)]);
        assert_eq!(
            after_three(Recorded::at(520, "https://h/b.js")),
            [edge(1, Moment::Ended, 70)],
            "no style sheet"
        );
    }

    #[test]
    fn recorded_initiators_count_before_what_ended_last() {
        let stack = format!(
            r#""_initiator":{{"type":"script","stack":{{"callFrames":[{{"url":"{SCRIPT}"}}],"parent":{{"callFrames":[{{"url":"{DOCUMENT}"}}]}}}}}},"#
        );
        let image = Recorded { more: &stack, ..Recorded::at(520, "https://h/b.png") };
        assert_eq!(after_three(image), [edge(1, Moment::Ended, 70), edge(0, Moment::Ended, 0)]);
        let url = format!(r#""_initiator":"{DOCUMENT}#top","#);
        let image = Recorded { more: &url, ..image };
        assert_eq!(after_three(image), [edge(0, Moment::Ended, 320)]);
        let later = Recorded { more: r#""_initiator":"https://h/later.js","#, ..image };
        assert_eq!(after_three(later), [edge(2, Moment::Ended, 20)]);
    }

    #[test]
    fn objects_of_elements_wait_for_the_bytes_before_them_even_if_all_had_arrived() {
        let text = "a".repeat(400) + "\\n" + &"b".repeat(1_599);
        let content = format!(r#""content":{{"size":2000,"mimeType":"text/html","text":"{text}"}},"#);
        let at = |line, kind, url| {
            let more = format!(
                r#""_initiator":{{"type":"{kind}","url":"{DOCUMENT}","lineNumber":{line},"columnNumber":99}},"#
            );
            let element = Recorded { more: &more, ..Recorded::at(250, url) };
            let document = Recorded { response: &content, ..Recorded::at(0, DOCUMENT) };
            page(&[document, element]).objects[1].after.clone()
        };
        let delivered = |bytes, plus| edge(0, Moment::Delivered(Bytes::new(bytes)), plus);
        // A quarter of 2,000 decoded bytes, and of the 1,000 that arrive from 100 to 200 ms, had arrived when the scanner started.
        assert_eq!(at(1, "parser", "https://h/a.css"), [delivered(1, 150), delivered(250, 0)]);
        assert_eq!(at(1, "script", "https://h/a.css"), [edge(0, Moment::Ended, 50)]);
        // Without the text, this line is the last of all.
        assert_eq!(at(7, "parser", "https://h/a.css"), [delivered(1, 100 + 50), delivered(1_000, 50)]);
        assert_eq!(at(7, "parser", "https://h/frame.html"), [edge(0, Moment::Ended, 50)]);
    }

    /// The document's style sheet and script, which arrive until 450 and 500 ms, at bytes 100 and 201 of 1,000; and what else is recorded.
    fn beside_a_script(others: &[Recorded<'_>]) -> Vec<Vec<Dependency>> {
        let [style_sheet, script] =
            [("style", 100), ("script", 201)].map(|(kind, column)| element(kind, column));
        let mut all = vec![
            Recorded {
                response: r#""content":{"size":1000,"mimeType":"text/html"},"#,
                ..Recorded::at(0, DOCUMENT)
            },
            Recorded { more: &style_sheet, ..Recorded::at(250, STYLE_SHEET) },
            Recorded { more: &script, ..Recorded::at(300, SCRIPT) },
        ];
        all.extend(others);
        page(&all).objects.into_iter().skip(3).map(|object| object.after).collect()
    }

    /// Members of an entry that an element of the document has caused.
    fn element(kind: &str, column: u32) -> String {
        format!(
            r#""_priority":"{}","_initiator":{{"type":"parser","url":"{DOCUMENT}","lineNumber":0,"columnNumber":{column}}},"#,
            if kind == "style" { "VeryHigh" } else { "High" },
        )
    }

    #[test]
    fn what_a_script_makes_known_waits_also_for_the_style_sheets_before_it() {
        let by_script = format!(r#""_initiator":{{"type":"script","url":"{SCRIPT}"}},"#);
        let data = Recorded { more: &by_script, ..Recorded::at(520, "https://h/b.json") };
        assert_eq!(beside_a_script(&[data]), [[edge(2, Moment::Ended, 20), edge(1, Moment::Ended, 0)]]);
        let by_style_sheet = format!(r#""_initiator":{{"type":"parser","url":"{STYLE_SHEET}"}},"#);
        let font = Recorded { more: &by_style_sheet, ..Recorded::at(520, "https://h/b.woff2") };
        let found = [edge(1, Moment::Ended, 0), edge(2, Moment::Ended, 20)];
        assert_eq!(beside_a_script(&[font]), [found], "nothing is rendered before");
    }

    #[test]
    fn an_image_far_later_than_its_place_waits_for_what_the_parser_waited_for() {
        let place = |bytes| edge(0, Moment::Delivered(Bytes::new(bytes)), 0);
        let (at_script, at_end) = (element("image", 210), element("image", 1_000));
        let image = |more, start| [Recorded { more, ..Recorded::at(start, "https://h/b.png") }];
        let found = beside_a_script(&image(&at_script, 305));
        // The style sheet began 150 ms after the first byte.
        let scanned = [(1, 150 + 55), (210, 55)]
            .map(|(bytes, plus)| edge(0, Moment::Delivered(Bytes::new(bytes)), plus));
        assert_eq!(found, [scanned], "with the others");
        let of_script = [place(210), edge(2, Moment::Ended, 20), edge(1, Moment::Ended, 0)];
        assert_eq!(beside_a_script(&image(&at_script, 520)), [of_script], "where the script's element ends");
        let others = Recorded {
            more: &element("script", 500).replace("High", "Low"),
            ..Recorded::at(301, "https://h/b.js")
        };
        let found = beside_a_script(&[[others].as_slice(), &image(&at_end, 540)].concat());
        let last =
            [place(1_000), edge(2, Moment::Ended, 0), edge(1, Moment::Ended, 0), edge(3, Moment::Ended, 39)];
        assert_eq!(found[1], last, "the script that ended last");
    }

    #[test]
    fn targets_of_redirects_wait_for_them() {
        let redirect = Recorded { response: r#""redirectURL":"/b.html","#, ..Recorded::at(0, DOCUMENT) };
        let found =
            page(&[redirect, Recorded::at(210, "https://h/b.html"), Recorded::at(420, "https://h/c.png")]);
        assert_eq!(found.objects[1].after, [edge(0, Moment::Ended, 10)]);
        assert_eq!(found.objects[2].after, [edge(1, Moment::Ended, 10)]);
    }

    #[test]
    fn queueing_before_a_request_is_not_think_time() {
        let document = Recorded { more: r#""time":700,"#, ..Recorded::at(0, DOCUMENT) };
        let blocked = Recorded::at(210, "https://h/b.png").json().replace("\"blocked\":0", "\"blocked\":900");
        let text = archive(&[Recorded { more: "", ..document }.json(), blocked]);
        let page = pages("visit", text.as_bytes()).unwrap().remove(0);
        assert_eq!(page.objects[1].after, [edge(0, Moment::Ended, 10)]);
        assert_eq!(page.recorded.unwrap().last_end, Some(Duration::from_millis(210 + 900 + 200)));
    }
}
