//! Discovery of the objects that a document embeds, while its bytes arrive: HTML in, in pieces cut anywhere,
//! references out.
//!
//! Not an HTML parser: it builds no tree and runs no script, and so discovers only what the markup itself
//! references. Tokens are those of the HTML standard (section 13.2.5), except for parts that do not affect a
//! reference. Its memory is bounded, whatever the input: a tag, a value or a comment without an end.
//!
//! | module | contents |
//! | --- | --- |
//! | `tokens` | tokens: tags, attributes, comments and raw text |
//! | `entity` | `&amp;` in a value: character references |
//! | [`address`] | resolution of references relative to their document |
//! | [`positions`] | positions of tags, for programs that rewrite a document |

pub mod address;
mod entity;
pub mod positions;
mod tokens;

use address::Base;
use tokens::{Tag, Tokens};

/// Discovery in one document.
#[derive(Debug)]
pub struct Discovery {
    tokens: Tokens,
    base: Base,
    /// Whether there was a `base`; only the first one counts.
    is_based: bool,
}

impl Discovery {
    /// Discovery in the document with this path on this host.
    pub fn new(host: &str, path: &str) -> Self {
        Self { tokens: Tokens::default(), base: Base::new(host, path), is_based: false }
    }

    /// Parses the next bytes of the document. Passes the path, with query, of each embedded object on the
    /// same host to `visit`, in order, as often as it is referenced. A tag counts when it ends.
    pub fn take(&mut self, bytes: &[u8], mut visit: impl FnMut(String)) {
        let Self { tokens, base, is_based } = self;
        tokens.take(bytes, |tag| {
            if let Some(reference) = tag.base() {
                if !std::mem::replace(is_based, true) {
                    base.rebase(&reference);
                }
                return;
            }
            tag.embedded().filter_map(|reference| base.resolve(&reference)).for_each(&mut visit);
        });
    }
}

/// Elements and their attributes that a browser fetches automatically. Not included are alternatives
/// (`srcset`) and references that need a user's action (`a`, `area`, a video without autoplay).
const EMBEDDING: [(&[u8], &[u8]); 21] = [
    (b"audio", b"src"),
    (b"bgsound", b"src"),
    (b"body", b"background"),
    (b"embed", b"src"),
    (b"frame", b"src"),
    (b"iframe", b"src"),
    (b"image", b"xlink:href"),
    (b"img", b"src"),
    (b"input", b"src"),
    (b"link", b"href"),
    (b"object", b"data"),
    (b"script", b"src"),
    (b"table", b"background"),
    (b"tbody", b"background"),
    (b"td", b"background"),
    (b"tfoot", b"background"),
    (b"th", b"background"),
    (b"thead", b"background"),
    (b"tr", b"background"),
    (b"track", b"src"),
    (b"video", b"poster"),
];

/// Types of a `link` that are fetched.
const FETCHED: [&[u8]; 3] = [b"stylesheet", b"icon", b"preload"];

impl Tag {
    fn base(&self) -> Option<Vec<u8>> {
        if self.name() == b"base" { self.value(b"href") } else { None }
    }

    /// References of this tag; an empty one is skipped.
    fn embedded(&self) -> impl Iterator<Item = Vec<u8>> {
        let is_fetched = match self.name() {
            b"link" => self.value(b"rel").is_some_and(|rel| {
                rel.split(u8::is_ascii_whitespace)
                    .any(|word| FETCHED.iter().any(|fetched| fetched.eq_ignore_ascii_case(word)))
            }),
            b"input" => self.value(b"type").is_some_and(|kind| kind.eq_ignore_ascii_case(b"image")),
            _ => true,
        };
        let attributes = EMBEDDING.iter().filter(move |(element, _)| is_fetched && *element == self.name());
        attributes.filter_map(|(_, attribute)| self.value(attribute))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths_of(html: &[u8], cut: usize) -> Vec<String> {
        let mut discovery = Discovery::new("h.test", "/dir/index.html");
        let mut all = Vec::new();
        html.chunks(cut.max(1)).for_each(|piece| discovery.take(piece, |path| all.push(path)));
        all
    }

    fn at_every_cut(html: &str) -> Vec<String> {
        let whole = paths_of(html.as_bytes(), html.len());
        for cut in 1..html.len() {
            assert_eq!(paths_of(html.as_bytes(), cut), whole, "cut {cut}: {html}");
        }
        whole
    }

    #[test]
    fn discovers_everything_a_browser_fetches_in_order() {
        let html = "<!DOCTYPE html><HTML><link rel=stylesheet href=s.css><link rel=next href=2.html>\
                    <script src='/j.js'></script><body background=\"bg.gif\"><IMG alt=x SRC = a.gif >\
                    <input type=text src=no.gif><input type=IMAGE src=b.gif><a href=away.html>x</a>\
                    <img src=a.gif/><frame src=../up.html>";
        let paths =
            ["/dir/s.css", "/j.js", "/dir/bg.gif", "/dir/a.gif", "/dir/b.gif", "/dir/a.gif/", "/up.html"];
        assert_eq!(at_every_cut(html), paths);
    }

    #[test]
    fn text_resembling_a_tag_references_nothing() {
        for html in [
            "<!-- <img src=a.gif> -->",
            "<!-- > <img src=a.gif> ->",
            "<script>document.write('<img src=a.gif>')</script>",
            "<style><img src=a.gif></style x",
            "<title><img src=a.gif></title>",
            "<textarea></textare><img src=a.gif>",
            "</img src=a.gif>",
            "<p title='<img src=a.gif>'>",
            "< img src=a.gif>",
            "<img\0src=a.gif>",
            "<img src=a.gif",
            "<img src=\"a.gif>",
            "<imgsrc=a.gif>",
            "<img src>",
            "<img src=''>",
            "<img src='#top'>",
            "<img src=http://other.test/a.gif>",
            "<img src=data:image/gif;base64,R0lG>",
        ] {
            assert_eq!(at_every_cut(html), Vec::<String>::new(), "{html}");
        }
        let samples =
            ["<!><img src=a.gif>", "<!---><img src=a.gif>", "<?x><img src=a.gif>", "</><img src=a.gif>"];
        for html in samples {
            assert_eq!(at_every_cut(html), ["/dir/a.gif"], "{html}");
        }
        assert_eq!(at_every_cut("<script>if(a<b)'</scrip>'</SCRIPT ><img src=a.gif>"), ["/dir/a.gif"]);
        assert_eq!(at_every_cut("<!-- -- --!> --><img src=a.gif>"), ["/dir/a.gif"]);
    }

    #[test]
    fn attribute_values_are_parsed_as_in_browsers() {
        for (tag, path) in [
            ("<img src='a b.gif'>", "/dir/a%20b.gif"),
            ("<img src=' a.gif\n'>", "/dir/a.gif"),
            ("<img src=a?x=1&amp;y=2>", "/dir/a?x=1&y=2"),
            ("<img src=a?x=1&#38;y=&#x32;>", "/dir/a?x=1&y=2"),
            ("<img src=a?x=1&copy=2&lt=3>", "/dir/a?x=1&copy=2&lt=3"),
            ("<img src=\u{e9}.gif>", "/dir/%C3%A9.gif"),
            ("<img src=a.gif src=b.gif>", "/dir/a.gif"),
            ("<img/src='a.gif'alt=x>", "/dir/a.gif"),
            ("<img =src src=a.gif>", "/dir/a.gif"),
        ] {
            assert_eq!(at_every_cut(tag), [path], "{tag}");
        }
    }

    #[test]
    fn first_base_applies_to_later_references() {
        let html = "<img src=a.gif><base target=x><base href=/b/><base href=/c/><img src=a.gif>";
        assert_eq!(at_every_cut(html), ["/dir/a.gif", "/b/a.gif"]);
        assert_eq!(at_every_cut("<base href=http://H.test:80/x/y><img src=z>"), ["/x/z"]);
        assert_eq!(at_every_cut("<base href=//other.test/x/><img src=z>").len(), 0);
        assert_eq!(at_every_cut("<base href=//other.test/><img src=http://h.test/z>"), ["/z"]);
    }

    #[test]
    fn memory_is_bounded_for_unterminated_input() {
        for opening in ["<", "<img ", "<img src=", "<img src=\"", "<img x", "<!--", "<script>", "</", "<!"] {
            let mut discovery = Discovery::new("h.test", "/");
            discovery.take(opening.as_bytes(), |_| {});
            for filling in [&b"x"[..], b" a=b", b"<"] {
                for _ in 0..100 {
                    discovery.take(&filling.repeat(1_000), |path| assert!(path.len() < 8_192));
                }
            }
            assert!(discovery.tokens.retained() <= 3 * 8_192, "{opening}: {}", discovery.tokens.retained());
        }
        let long = format!("<img src={}><img src=a.gif>", "x".repeat(10_000));
        assert_eq!(paths_of(long.as_bytes(), 7), ["/dir/a.gif"]);
    }

    proptest! {
        #[test]
        fn discovery_is_the_same_at_every_split(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30),
            cut in 1_usize..9,
        ) {
            let html = pieces.concat();
            let whole = paths_of(html.as_bytes(), html.len());
            prop_assert!(whole.iter().all(|path| path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic())));
            prop_assert_eq!(paths_of(html.as_bytes(), cut), whole);
        }
    }

    const PIECES: &[&str] = &[
        "<",
        ">",
        "/",
        "=",
        "\"",
        "'",
        " ",
        "\n",
        "!",
        "-",
        "--",
        "?",
        "&",
        "&amp;",
        "&#",
        "#",
        "x",
        "img",
        "src",
        "a.gif",
        "script",
        "style",
        "link",
        "rel=icon ",
        "href",
        "base",
        "//",
        "..",
        "http:",
        "h.test",
        "\u{e9}",
        "<img src=",
        "</script",
        "<!--",
        "-->",
        "title",
    ];
}
