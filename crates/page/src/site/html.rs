//! A home page of 1997, of an exact size: tables, links, images among words.
//!
//! Synthetic: the words are random, and their number is chosen so that deflate finds as much redundancy as
//! in the page of `papers/w3c#microscape`. Tags are in lower case, as the note advises.

use wire::{Random, Seed};

/// An image as the document references it.
pub(super) struct Image<'a> {
    pub(super) path: &'a str,
    pub(super) width: u16,
    pub(super) height: u16,
    /// Alternative text, with entities; `None` for any word.
    pub(super) alt: Option<&'static str>,
}

/// A document of `bytes` that references these images in order, spread over the first nine tenths of it.
pub(super) fn document(bytes: u64, images: &[Image<'_>], seed: Seed) -> String {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut prose = Prose { words: WORDS.split(' ').collect(), random: seed.stream("document", 0) };
    let mut page = HEAD.to_owned();
    for (number, image) in images.iter().enumerate() {
        let end = bytes * 9 / 10 * (number + 1) / images.len();
        page += &item(image, &mut prose);
        while page.len() + LINK < end {
            page += &link(&mut prose);
        }
        page += "</font></td></tr>\n";
    }
    page += "</table>\n<p>";
    while page.len() + FOOT.len() < bytes {
        page += prose.word();
        page += " ";
    }
    page.truncate(bytes.saturating_sub(FOOT.len()));
    page + FOOT
}

const HEAD: &str = "<!doctype html public \"-//w3c//dtd html 3.2//en\">\n<html>\n<head>\n<title>Welcome to \
                    Microscape</title>\n</head>\n<body bgcolor=\"#ffffff\" text=\"#000000\" link=\"#0000ff\">\n<table \
                    border=\"0\" cellspacing=\"0\" cellpadding=\"2\" width=\"600\">\n";
const FOOT: &str = "</p>\n</body>\n</html>\n";

/// Approximate length of a link, in bytes.
const LINK: usize = 100;

/// A row with an image and a heading; links follow in it.
fn item(image: &Image<'_>, prose: &mut Prose) -> String {
    let Image { path, width, height, alt } = image;
    let (word, heading) = (prose.word(), prose.words(3));
    let alt = alt.unwrap_or(word);
    format!(
        "<tr valign=\"top\"><td align=\"left\"><img src=\"{path}\" width=\"{width}\" height=\"{height}\" border=\"0\" \
         alt=\"{alt}\"></td>\n<td><font face=\"arial, helvetica\" size=\"2\"><b>{heading}</b><br>\n"
    )
}

fn link(prose: &mut Prose) -> String {
    let (directory, file, text) = (prose.word(), prose.word(), prose.words(3));
    let (number, sentence) = (prose.random.up_to(999), prose.words(6));
    format!("<a href=\"/{directory}/{file}{number}.htm\">{text}</a> {sentence}.<br>\n")
}

/// Random words.
struct Prose {
    words: Vec<&'static str>,
    random: Random,
}

impl Prose {
    /// A word: the lower of two samples, so that some words are more frequent than others, as in any
    /// language.
    fn word(&mut self) -> &'static str {
        let max = self.words.len().saturating_sub(1) as u64;
        let index = self.random.up_to(max).min(self.random.up_to(max));
        usize::try_from(index).ok().and_then(|index| self.words.get(index)).copied().unwrap_or("the")
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }
}

/// Frequent words first.
const WORDS: &str = "\
    the and of to for in a your with on new free get now from is you our web site page more \
    about all software download internet products support news find search here user online \
    server business home version information network windows developer tools this that what \
    how can are by or at be office browser mail click best first see use learn try buy store \
    order today week month release beta preview technology component script active dynamic \
    channel desktop system company industry partner customer service program training event \
    press guide library document feature article review award offer special price member join \
    register subscribe contact help question answer problem solution update upgrade patch \
    security privacy certificate commerce intranet enterprise world country language english \
    german french japanese edition magazine game music video sound picture gallery sport \
    travel weather finance stock market report money book author reader school student teacher \
    education science computer machine memory speed power quality design style colour";
