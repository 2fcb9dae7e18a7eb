//! Documents: tags at the bytes that made their objects known, with comments between them.

use page::{Dependency, Kind, Moment};

use super::{Builder, Edge, OWN_WORK, TooManyDependencies, padded};

/// A piece of markup that ends at this byte of the document, or later.
struct Piece {
    end: usize,
    text: String,
    /// Whether it ends the document's head.
    is_of_body: bool,
}

const HEAD: &str = "<!doctype html>";
/// Icon of a page that has none: a browser would request one.
const NO_ICON: &str = "<link rel=icon href=data:,>";

impl Builder<'_> {
    /// A document of this size, unless its tags need more.
    pub(super) fn document(&mut self, index: usize, size: usize) -> Result<Vec<u8>, TooManyDependencies> {
        let mut head = HEAD.to_owned();
        let has_icon = self.paths.iter().any(|path| path.contains("favicon.ico"));
        if index == 0 && !has_icon {
            head += NO_ICON;
        }
        let (mut pieces, mut at_end) = (Vec::new(), Vec::new());
        for edge in self.edges[index].clone() {
            match edge.dependency.at {
                Moment::Begun => pieces.push(self.piece(&edge, 0, index)?),
                Moment::Delivered(bytes) => {
                    let end = usize::try_from(bytes.get()).unwrap_or(usize::MAX).min(size);
                    pieces.push(self.piece(&edge, end, index)?);
                }
                Moment::Ended if self.is_tag(&edge) => pieces.push(self.piece(&edge, size, index)?),
                Moment::Ended => at_end.push(edge),
            }
        }
        let at_end = self.play(at_end, index)?;
        pieces.extend(self.hints(index, size));
        if !at_end.is_empty() {
            // Before style sheets and scripts, which hold up code further down.
            let has_ended = "performance.getEntriesByType('navigation')[0].responseEnd";
            head += &format!(
                "<script>!function p(){{{has_ended}?(()=>{{{at_end}}})():setTimeout(p,4)}}()</script>"
            );
        }
        pieces.sort_by_key(|piece| piece.end);
        let users = self.users_of_rules(index);
        if !users.is_empty() {
            let first_of_body = pieces.iter().position(|piece| piece.is_of_body).unwrap_or(pieces.len());
            let before = first_of_body.checked_sub(1).and_then(|before| pieces.get(before));
            let end = before.map_or(0, |piece| piece.end);
            pieces.insert(first_of_body, Piece { end, text: users, is_of_body: true });
        }
        let text = laid_out(head, &pieces, size);
        self.count(&text)?;
        Ok(padded(text, size, "<!--", "-->"))
    }

    /// Elements for the resource hints of a document.
    fn hints(&self, document: usize, size: usize) -> Vec<Piece> {
        let hosts = self.page.hosts.iter().enumerate();
        let hints = hosts.flat_map(|(index, host)| host.hints.all().map(move |hint| (index, hint)));
        let of_document = hints.filter(|(_, (after, _))| after.on == document);
        let piece = |(host, (after, opens)): (usize, (Dependency, bool))| {
            let relation = if opens { "preconnect" } else { "dns-prefetch" };
            let mut own = self.page.objects.iter().filter(|object| object.host == host);
            // Anonymous requests have a connection of their own.
            let crossorigin = if own.all(|object| object.is_anonymous) { " crossorigin" } else { "" };
            let url = format!("{}://{}", self.schemes[host], self.page.hosts[host].name);
            let end = match after.at {
                Moment::Begun => 0,
                Moment::Delivered(bytes) => usize::try_from(bytes.get()).unwrap_or(usize::MAX).min(size),
                Moment::Ended => size,
            };
            Piece {
                end,
                text: format!("<link rel={relation} href=\"{url}\"{crossorigin}>"),
                is_of_body: false,
            }
        };
        of_document.map(piece).collect()
    }

    /// Whether an object is named by a tag, without code.
    fn is_tag(&self, edge: &Edge) -> bool {
        let has_tag = self.kind(edge.to) != Kind::Data;
        let is_own_work = edge.dependency.plus < OWN_WORK || self.page.objects[edge.to].counts_for_load;
        has_tag && is_own_work && self.waits_for(edge.to) == 1
    }

    /// Markup that loads an object.
    fn piece(&mut self, edge: &Edge, end: usize, document: usize) -> Result<Piece, TooManyDependencies> {
        if !self.is_tag(edge) {
            let text = format!("<script>{}</script>", self.play(vec![*edge], document)?);
            return Ok(Piece { end, text, is_of_body: false });
        }
        let (kind, url) = (self.kind(edge.to), self.reference(edge.to, document));
        let is_blocking = self.page.objects[edge.to].is_render_blocking;
        let then = match kind {
            Kind::Script | Kind::Document => String::new(),
            _ => self.reactions(edge.to, document)?,
        };
        // It blocks nothing until it has arrived, and then it applies.
        let is_late = kind == Kind::StyleSheet && !is_blocking;
        let then = if is_late { format!("this.media='all';{then}") } else { then };
        let on_end = match then.is_empty() {
            true => String::new(),
            false => format!(" onload=\"{}\" onerror=\"this.onload()\"", then.replace('&', "&amp;")),
        };
        let text = match (kind, is_blocking) {
            (Kind::StyleSheet, true) => format!("<link rel=stylesheet href=\"{url}\"{on_end}>"),
            (Kind::StyleSheet, false) => format!("<link rel=stylesheet media=print href=\"{url}\"{on_end}>"),
            (Kind::Script, true) => format!("<script src=\"{url}\"></script>"),
            (Kind::Script, false) => format!("<script async src=\"{url}\"></script>"),
            (Kind::Font, _) => format!("<link rel=preload as=font crossorigin href=\"{url}\"{on_end}>"),
            (Kind::Document, _) => format!("<iframe src=\"{url}\"></iframe>"),
            (Kind::Image | Kind::Media | Kind::Data | Kind::Other, _) => {
                format!("<img src=\"{url}\"{on_end}>")
            }
        };
        self.count(&text)?;
        Ok(Piece { end, text, is_of_body: matches!(kind, Kind::Image | Kind::Document) })
    }

    /// Elements that use the fonts and images of the style sheets that a document leads to.
    fn users_of_rules(&self, document: usize) -> String {
        let (mut sheets, mut next) = (Vec::new(), vec![document]);
        let mut is_seen = vec![false; self.edges.len()];
        while let Some(index) = next.pop() {
            if std::mem::replace(&mut is_seen[index], true) {
                continue;
            }
            if self.kind(index) == Kind::StyleSheet {
                sheets.push(index);
            }
            let inside = self.edges[index].iter().filter(|edge| self.kind(edge.to) != Kind::Document);
            next.extend(inside.map(|edge| edge.to));
        }
        sheets.sort_unstable();
        let rules = sheets.iter().flat_map(|sheet| &self.edges[*sheet]).filter(|edge| self.is_rule(edge));
        let user = |edge: &Edge| match self.kind(edge.to) {
            Kind::Font => format!("<b style=font-family:f{}>.</b>", edge.to),
            Kind::Image => format!("<b class=i{}>.</b>", edge.to),
            _imported => String::new(),
        };
        rules.map(user).collect()
    }
}

/// The pieces, each at its byte if those before it leave space, and no later than the size allows.
fn laid_out(head: String, pieces: &[Piece], size: usize) -> String {
    const COMMENT: usize = "<!---->".len();
    let mut remaining: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    let mut text = head;
    for Piece { end, text: tag, is_of_body: _ } in pieces {
        let start = end.saturating_sub(tag.len()).min(size.saturating_sub(remaining));
        if let Some(letters) = start.checked_sub(text.len() + COMMENT) {
            text += &format!("<!--{}-->", ".".repeat(letters));
        }
        text += tag;
        remaining -= tag.len();
    }
    text
}
