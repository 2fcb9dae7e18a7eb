//! Images before and after, side by side in a page: each form that a browser can show.
//!
//! On a large page only the largest images, up to a number and a total size, so that the page stays small enough to send.

use render::output::number;
use render::report::html::escaped;

use crate::css::{ImageReplacement, Replacements};
use crate::{Content, File, FileKind, ImageForms};

/// A section with the page's images; nothing where there are none.
pub fn section(content: &Content, replaced: &Replacements) -> String {
    let mut images: Vec<(usize, &File, &ImageForms)> = Vec::new();
    for (index, file) in content.files.iter().enumerate() {
        if let FileKind::Picture(forms) = &file.kind
            && forms.picture.is_ok()
        {
            images.push((index, file, forms));
        }
    }
    let all = images.len();
    images.sort_by_key(|(index, file, _)| {
        (!replaced.images.contains_key(index), std::cmp::Reverse(file.bytes.len()), *index)
    });
    let mut weight = 0;
    let fits = |(_, file, forms): &(usize, &File, &ImageForms)| {
        weight += shown(file, forms).iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        weight <= MAX_BYTES
    };
    let rows: Vec<String> = images
        .into_iter()
        .take(MAX_IMAGES)
        .take_while(fits)
        .map(|(index, file, forms)| row(file, forms, replaced.images.get(&index)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let less = match all - rows.len() {
        0 => String::new(),
        left => format!("<p>The largest are shown; {left} more are in the table.</p>\n"),
    };
    format!("<section>\n<h2>Images before and after</h2>\n{}{less}</section>\n", rows.concat())
}

const MAX_IMAGES: usize = 24;
/// Maximum bytes of all images in all forms.
const MAX_BYTES: usize = 6 << 20;

/// Forms of an image that browsers can show: MNG is not among them.
fn shown<'a>(file: &'a File, forms: &'a ImageForms) -> Vec<(&'static str, &'a [u8])> {
    let ImageForms { picture: _, png, mng: _, webp, jpeg, webp_lossy, avif } = forms;
    let made = [("PNG", png), ("WebP", webp), ("JPEG", jpeg), ("WebP, lossy", webp_lossy), ("AVIF", avif)];
    let made = made.into_iter().filter_map(|(name, form)| form.as_deref().map(|form| (name, form)));
    std::iter::once(("as it is", file.bytes.as_slice())).chain(made).collect()
}

fn row(file: &File, forms: &ImageForms, look: Option<&ImageReplacement>) -> String {
    let before = file.bytes.len();
    let figures: String = shown(file, forms)
        .into_iter()
        .map(|(name, bytes)| {
            let size = size(bytes.len(), before);
            let alt = escaped(&format!("{}, {name}", file.path));
            figure(&format!("<img src=\"{}\" alt=\"{alt}\">", data(bytes)), name, &size)
        })
        .collect();
    let words = look.map(|ImageReplacement { declarations, words }| {
        let size = if words.is_empty() { "a box" } else { "words" };
        figure(&format!("<span style=\"{}\">{words}</span>", escaped(declarations)), "CSS", size)
    });
    format!(
        "<h3>{}</h3>\n<div class=\"forms\">\n{figures}{}</div>\n",
        escaped(&file.path),
        words.unwrap_or_default()
    )
}

fn figure(shown: &str, name: &str, size: &str) -> String {
    format!("<figure>{shown}<figcaption><b>{name}</b> {size}</figcaption></figure>\n")
}

fn size(bytes: usize, before: usize) -> String {
    let count = number::count(bytes as f64);
    match (bytes * 100 + before / 2).checked_div(before) {
        Some(percent) if bytes != before => format!("{count} ({percent}%)"),
        _ => format!("{count} bytes"),
    }
}

/// The file as a `data:` URL (RFC 2397).
fn data(bytes: &[u8]) -> String {
    let kind = match bytes {
        [b'G', b'I', b'F', ..] => "gif",
        [0x89, ..] => "png",
        [0xff, ..] => "jpeg",
        [b'R', b'I', b'F', b'F', ..] => "webp",
        _ => "avif",
    };
    format!("data:image/{kind};base64,{}", base64(bytes))
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits =
            (0..3).fold(0, |bits, index| bits << 8 | three.get(index).map_or(0, |byte| usize::from(*byte)));
        for index in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * index) & 63];
            text.push(if index > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make::{self, Source};

    #[test]
    fn base64_matches_the_rfcs_examples() {
        let coded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(coded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn an_image_stands_beside_its_forms_and_its_rule() {
        let spacer = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
        let html = b"<head></head><img src='\"s.gif'><img src=x.gif>";
        let sources = [("index.html", &html[..]), ("\"s.gif", spacer), ("x.gif", b"GIF8")];
        let sources = sources.map(|(path, bytes)| Source::of(path.to_owned(), bytes.to_vec()));
        let content = Content {
            name: "p".to_owned(),
            files: make::files(sources.to_vec(), None, &|_, _| ()),
            left_out: Vec::new(),
        };
        let page = section(&content, &Replacements::of(&content));
        for part in [
            "<h3>&quot;s.gif</h3>",
            "src=\"data:image/gif;base64,R0lGODlhAQABAIAA",
            "<b>as it is</b> 35 bytes",
            "src=\"data:image/png;base64,iVBOR",
            "<b>CSS</b> a box",
            "background:#ff0000",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        assert!(!page.contains("x.gif"), "what does not decode has no forms");
    }
}
