//! Images replaced by CSS: spacers become boxes, bullets and arrows characters, images of text words
//! (`papers/w3c#content`).
//!
//! The document is actually rewritten: each such `<img>` becomes a `<span>`, and the rules go before the end of its
//! `<head>`, so that the saving is exact. An image with any other reference (a style sheet, a script, a link, `srcset`)
//! stays everywhere. Size, colours and alternative text identify an image of text or of a symbol (`words`); a person must
//! judge the new looks.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use page::html::positions::{self, TagPosition};

use crate::html;
use crate::picture::Picture;
use crate::{Content, File, FileKind};

/// Replacements in a page.
#[derive(Debug, Default)]
pub struct Replacements {
    /// Rewritten documents, by their index among the files.
    pub documents: BTreeMap<usize, Vec<u8>>,
    /// Images that are no longer needed, by their index.
    pub images: BTreeMap<usize, ImageReplacement>,
    /// Number of CSS rules in all documents together.
    pub rules: usize,
}

/// Replacement of an image: a box, or words or a character in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageReplacement {
    /// Declarations of the CSS rule.
    pub declarations: String,
    /// HTML, as the tag's `alt` had it; empty for a spacer.
    pub words: String,
}

/// Kind of replacement.
enum ReplacementKind {
    /// Box of one colour, which may be transparent.
    Box([u8; 4]),
    /// Words: their text, background colour and text colour.
    Words { text: String, ground: [u8; 4], ink: [u8; 4] },
    /// A character, as a reference, with the same colours.
    Symbol { character: &'static str, ground: [u8; 4], ink: [u8; 4] },
}

impl Replacements {
    /// Rewrites every document of the page. An image that is still needed by one of its tags stays.
    pub fn of(content: &Content) -> Self {
        let places: BTreeMap<&str, usize> =
            content.files.iter().enumerate().map(|(index, file)| (file.path.as_str(), index)).collect();
        let mut found: Vec<(usize, Range<usize>, usize, ImageReplacement)> = Vec::new();
        let mut needed = BTreeSet::new();
        for (document, file) in
            content.files.iter().enumerate().filter(|(_, file)| matches!(file.kind, FileKind::Html))
        {
            for tag in positions::tags(&file.bytes) {
                let Some(image) = image(file, &tag, &places) else { continue };
                match replacement_of(&content.files[image], &tag, &file.bytes) {
                    Some(look) => found.push((document, tag.whole, image, look)),
                    None => drop(needed.insert(image)),
                }
            }
        }
        for image in found.iter().map(|(_, _, image, _)| *image).collect::<BTreeSet<_>>() {
            let tags = found.iter().filter(|(_, _, of, _)| *of == image).count();
            if mentions(content, &content.files[image].path) > tags {
                needed.insert(image);
            }
        }
        found.retain(|(_, _, image, _)| !needed.contains(image));
        let images = found.iter().rev().map(|(_, _, image, look)| (*image, look.clone())).collect();
        let mut replaced = Self { images, ..Self::default() };
        for (index, file) in content.files.iter().enumerate() {
            let of_it = found.iter().filter(|(document, ..)| *document == index);
            let tags: Vec<(Range<usize>, &ImageReplacement)> =
                of_it.map(|(_, whole, _, look)| (whole.clone(), look)).collect();
            if !tags.is_empty() {
                let rules: BTreeSet<&str> = tags.iter().map(|(_, look)| look.declarations.as_str()).collect();
                replaced.rules += rules.len();
                replaced.documents.insert(index, rewritten(&file.bytes, tags));
            }
        }
        replaced
    }
}

/// Number of occurrences of a file's name in the page's text, by the last component of its path.
fn mentions(content: &Content, path: &str) -> usize {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let texts = content.files.iter().filter(|file| matches!(file.kind, FileKind::Html | FileKind::Text));
    let of_text = |text: &[u8]| {
        memchr::memmem::find_iter(text, name)
            .filter(|at| {
                let before = at.checked_sub(1).map(|before| text[before]);
                // The end of another name does not count.
                !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_.%".contains(&byte))
            })
            .count()
    };
    texts.map(|file| of_text(&file.bytes)).sum()
}

/// The image of the page that a tag shows.
fn image(document: &File, tag: &TagPosition, places: &BTreeMap<&str, usize>) -> Option<usize> {
    if !tag.is(&document.bytes, "img") {
        return None;
    }
    let source = tag.attribute(&document.bytes, "src")?;
    let source = source.split(['?', '#']).next().unwrap_or_default();
    let directory = document.path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut parts: Vec<&str> =
        if source.starts_with('/') { Vec::new() } else { directory.split('/').collect() };
    for part in source.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.retain(|part| !part.is_empty());
    places.get(parts.join("/").as_str()).copied()
}

/// Replacement of the tag's image; `None` if the image has to stay.
fn replacement_of(file: &File, tag: &TagPosition, html: &[u8]) -> Option<ImageReplacement> {
    let picture = file.picture()?;
    // An image map cannot become words.
    if tag.attribute(html, "usemap").is_some() {
        return None;
    }
    let side = |name: &str, own: u32| {
        tag.attribute(html, name)
            .and_then(|length| length.trim().parse().ok())
            .filter(|length| *length > 0)
            .unwrap_or(own)
    };
    let (width, height) = (side("width", picture.width), side("height", picture.height));
    let size = format!("display:inline-block;width:{width}px;height:{height}px");
    let colour = |[red, green, blue, alpha]: [u8; 4]| match alpha {
        255 => format!("#{red:02x}{green:02x}{blue:02x}"),
        _ => format!("#{red:02x}{green:02x}{blue:02x}{alpha:02x}"),
    };
    let background = |ground: [u8; 4]| match ground[3] {
        0 => String::new(),
        _ => format!(";background:{}", colour(ground)),
    };
    Some(match instead(picture, tag.attribute(html, "alt"))? {
        ReplacementKind::Box(ground) => {
            ImageReplacement { declarations: size + &background(ground), words: String::new() }
        }
        ReplacementKind::Symbol { character, ground, ink } => {
            let (ink, ground) = (colour(ink), background(ground));
            ImageReplacement {
                declarations: format!("{size};color:{ink}{ground};font:{height}px/1 sans-serif"),
                words: character.to_owned(),
            }
        }
        ReplacementKind::Words { text, ground, ink } => {
            let (ink, ground, letters) = (colour(ink), background(ground), height * 2 / 3);
            ImageReplacement {
                declarations: format!("{size};color:{ink}{ground};font:{letters}px/{height}px sans-serif"),
                words: text.replace('<', "&lt;").replace('>', "&gt;"),
            }
        }
    })
}

fn instead(picture: &Picture, alt: Option<String>) -> Option<ReplacementKind> {
    if picture.is_animation() {
        return None;
    }
    let colours = picture.colours();
    if let [colour] = colours.keys().collect::<Vec<_>>()[..] {
        return Some(ReplacementKind::Box(*colour));
    }
    let alt = alt?;
    match symbol(picture, &alt) {
        Some(character) => symbol_in_colours(&colours, character),
        None => words(picture, &colours, alt),
    }
}

/// The character of Unicode for a small image whose alternative text stands for a bullet or an arrow.
fn symbol(picture: &Picture, alt: &str) -> Option<&'static str> {
    let is_small = picture.width.max(picture.height) <= MAX_SYMBOL_SIDE;
    let (_, character) = SYMBOLS.into_iter().find(|(texts, _)| texts.contains(&alt.trim()))?;
    is_small.then_some(character)
}

/// Alternative texts of symbols, as pages without Unicode had them, and the characters as references.
const SYMBOLS: [(&[&str], &str); 4] = [
    (&["*", "o", "\u{b7}", "\u{2022}", "&middot;", "&#183;"], "&#8226;"),
    (&["->", "-->", "=>", "-&gt;", "--&gt;", "=&gt;"], "&#8594;"),
    (&["<-", "<--", "<=", "&lt;-", "&lt;--", "&lt;="], "&#8592;"),
    (&[">", ">>", "&gt;", "&gt;&gt;"], "&#187;"),
];
/// Maximum side of a symbol, in pixels.
const MAX_SYMBOL_SIDE: u32 = 32;

/// A symbol in the most frequent colour that is not transparent and not the background, the most frequent of all.
fn symbol_in_colours(colours: &BTreeMap<[u8; 4], usize>, character: &'static str) -> Option<ReplacementKind> {
    if colours.len() > MAX_SHADES {
        return None;
    }
    let (ground, ink) = ground_and_ink(colours)?;
    let is_plain = matches!(ground[3], 0 | 255) && ink[3] == 255;
    is_plain.then_some(ReplacementKind::Symbol { character, ground, ink })
}

/// The two most frequent colours.
fn ground_and_ink(colours: &BTreeMap<[u8; 4], usize>) -> Option<([u8; 4], [u8; 4])> {
    let mut by_count: Vec<_> = colours.iter().map(|(colour, count)| (*count, *colour)).collect();
    by_count.sort_by_key(|(count, colour)| (std::cmp::Reverse(*count), *colour));
    Some((by_count.first()?.1, by_count.get(1)?.1))
}

/// Image of text: one line with alternative text, in one text colour, on a background of one colour. The background
/// covers at least half of it; the only other colours are shades between the two.
fn words(picture: &Picture, colours: &BTreeMap<[u8; 4], usize>, alt: String) -> Option<ReplacementKind> {
    let letters = alt.chars().filter(|letter| letter.is_alphanumeric()).count();
    let is_line = (8..=MAX_LINE_CHARS).contains(&picture.height) && picture.width >= picture.height;
    if letters == 0 || alt.chars().count() > 60 || !is_line || colours.len() > MAX_SHADES {
        return None;
    }
    let pixels = (picture.width * picture.height) as usize;
    let (ground, ink) = ground_and_ink(colours)?;
    let is_plain = matches!(ground[3], 0 | 255) && ink[3] == 255;
    (is_plain && colours.get(&ground)? * 2 >= pixels).then_some(ReplacementKind::Words {
        text: alt,
        ground,
        ink,
    })
}

/// Maximum height of a line of letters, in pixels.
const MAX_LINE_CHARS: u32 = 60;
/// Maximum number of colours: background, text, and the shades that smooth edges.
const MAX_SHADES: usize = 16;

/// The document with its tags replaced and the rules in its head: one rule for each look, however often it is used.
fn rewritten(html: &[u8], tags: Vec<(Range<usize>, &ImageReplacement)>) -> Vec<u8> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut rules = String::from("<style>");
    let mut replacements = Vec::new();
    for (whole, ImageReplacement { declarations, words }) in tags {
        let next = format!("r{}", names.len());
        let name = names.entry(declarations).or_insert_with(|| {
            rules += &format!(".{next}{{{declarations}}}");
            next
        });
        replacements.push((whole, format!("<span class={name}>{words}</span>")));
    }
    rules += "</style>";
    let end_of_head = positions::tags(html).into_iter().find(|tag| tag.is(html, "head") && tag.is_end());
    let at = end_of_head.map_or(0, |tag| tag.whole.start);
    replacements.push((at..at, rules));
    // Rules come before a tag at the same position, if the document begins with one.
    replacements.sort_by_key(|(index, _)| (index.start, index.end));
    html::replaced(html, &replacements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make::{self, Source};

    fn gif(width: u16, height: u16, colours: &[u8], indices: Vec<u8>) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = gif::Encoder::new(&mut file, width, height, colours).unwrap();
        let frame = gif::Frame { width, height, buffer: indices.into(), ..Default::default() };
        encoder.write_frame(&frame).unwrap();
        drop(encoder);
        file
    }

    #[test]
    fn spacers_and_lines_of_text_are_replaced_and_other_images_stay() {
        let spacer = gif(1, 1, &[255, 0, 0, 0, 0, 0], vec![0]);
        let line =
            gif(40, 12, &[255, 204, 0, 255, 255, 255], (0..480).map(|n| u8::from(n % 3 == 0)).collect());
        let half = gif(40, 12, &[0, 0, 0, 255, 255, 255], (0..480).map(|n| u8::from(n % 3 == 0)).collect());
        let html = "<html><head></head><img src=a/s.gif width=9><IMG SRC='a/t.gif' ALT=\"solutions <b> &amp;\"><img src=a/n.gif>\
                    <img src=./a/s.gif width=9><img src=a/gone.gif></html>";
        let content = Content {
            name: String::new(),
            left_out: Vec::new(),
            files: make::files(
                [("index.html", html.into()), ("a/s.gif", spacer), ("a/t.gif", line), ("a/n.gif", half)]
                    .map(|(path, bytes)| Source::of(path.to_owned(), bytes))
                    .into(),
                None,
                &|_, _| (),
            ),
        };
        let Replacements { documents, images, rules } = Replacements::of(&content);
        let words: Vec<_> = images.iter().map(|(image, look)| (*image, look.words.as_str())).collect();
        assert_eq!((rules, words), (2, vec![(1, ""), (2, "solutions &lt;b&gt; &amp;")]));
        assert_eq!(
            std::str::from_utf8(&documents[&0]).unwrap(),
            "<html><head><style>.r0{display:inline-block;width:9px;height:1px;background:#ff0000}\
             .r1{display:inline-block;width:40px;height:12px;color:#ffffff;background:#ffcc00;font:8px/12px sans-serif}</style>\
             </head><span class=r0></span><span class=r1>solutions &lt;b&gt; &amp;</span><img src=a/n.gif>\
             <span class=r0></span><img src=a/gone.gif></html>"
        );
    }

    #[test]
    fn bullets_and_arrows_become_characters() {
        let sign = || gif(6, 6, &[255, 255, 255, 0, 0, 0], (0..36).map(|n| u8::from(n % 3 == 0)).collect());
        let large =
            gif(40, 40, &[255, 255, 255, 0, 0, 0], (0..1_600).map(|n| u8::from(n % 3 == 0)).collect());
        let html = "<img src=a.gif alt='*'><img src=b.gif alt='-&gt;'><img src=c.gif alt='*'><img src=d.gif alt='~'>";
        let sources = [
            ("index.html", html.into()),
            ("a.gif", sign()),
            ("b.gif", sign()),
            ("c.gif", large),
            ("d.gif", sign()),
        ];
        let sources = sources.map(|(path, bytes)| Source::of(path.to_owned(), bytes)).to_vec();
        let content = Content {
            name: String::new(),
            left_out: Vec::new(),
            files: make::files(sources, None, &|_, _| ()),
        };
        let images = Replacements::of(&content).images;
        let words: Vec<_> = images.iter().map(|(image, look)| (*image, look.words.as_str())).collect();
        assert_eq!(words, [(1, "&#8226;"), (2, "&#8594;")]);
    }

    #[test]
    fn an_image_that_a_style_sheet_or_an_address_names_as_well_stays() {
        let spacer = || gif(1, 1, &[255, 0, 0, 0, 0, 0], vec![0]);
        let html = "<img src=a.gif><img src=b.gif><img src=http://h/b.gif><img src=c.gif><p>c.gif or cc.gif";
        let files = [
            ("index.html", html.into()),
            ("x.css", b"p{background:url(a.gif)}q{background:url(dd.gif)}".to_vec()),
            ("a.gif", spacer()),
            ("b.gif", spacer()),
            ("c.gif", spacer()),
            ("d.gif", spacer()),
        ];
        let page = |html: &str| {
            let mut sources = files.clone().map(|(path, bytes)| Source::of(path.to_owned(), bytes)).to_vec();
            sources[0].bytes = html.as_bytes().to_vec();
            Content {
                name: String::new(),
                left_out: Vec::new(),
                files: make::files(sources, None, &|_, _| ()),
            }
        };
        assert_eq!(Replacements::of(&page(html)).images.len(), 0);
        assert_eq!(Replacements::of(&page("<img src=d.gif>")).images.len(), 1);
    }

    #[test]
    fn regress_a_document_may_begin_with_an_image() {
        let sources = [("index.html", b"<img src=s.gif>".to_vec()), ("s.gif", gif(1, 1, &[0; 6], vec![0]))];
        let sources = sources.map(|(path, bytes)| Source::of(path.to_owned(), bytes)).to_vec();
        let content = Content {
            name: String::new(),
            left_out: Vec::new(),
            files: make::files(sources, None, &|_, _| ()),
        };
        let rewritten = &Replacements::of(&content).documents[&0];
        assert!(rewritten.starts_with(b"<style>") && rewritten.ends_with(b"</style><span class=r0></span>"));
    }
}
