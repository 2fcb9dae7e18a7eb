//! Output of the content study: tables, JSON, CSV, a page.
//!
//! Only sums are computed here.

use std::collections::{BTreeMap, BTreeSet};

use render::output::grid::{Column, Grid, wrap};
use render::output::{csv, number};
use render::report::html::escaped;
use render::report::table_of;
use render::terminal::Terminal;

use crate::css::Replacements;
use crate::gallery;
use crate::row::Row;
use crate::{Content, FileKind, ImageForms};

/// Renders tables: the steps over each network, then each image in its forms.
pub fn text(content: &Content, replaced: &Replacements, rows: &[Row], terminal: Terminal) -> String {
    let mut text = String::new();
    for group in groups(rows) {
        let title = format!("{} over {}, {}", group[0].page, group[0].network, group[0].protocol);
        text += &format!("{}\n{}\n", terminal.bold(&title), steps(group).render(terminal));
    }
    let images = images(content);
    if !images.rows.is_empty() {
        text += &format!("{}\n{}\n", terminal.bold("Images, in bytes"), images.render(terminal));
    }
    for note in notes(content, replaced, rows) {
        text += &(wrap("", &note, terminal.prose_width()) + "\n");
    }
    text.trim_end().to_owned() + "\n"
}

/// The steps over one network, in order.
fn groups(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|one, other| one.network == other.network && one.protocol == other.protocol)
        .filter(|group| !group.is_empty())
}

fn steps(rows: &[Row]) -> Grid {
    let columns = vec![
        Column::name(["", "form"]),
        Column::number(["", "objects"], 0),
        Column::number(["", "bytes"], 0),
        Column::number(["saved", "%"], 0),
        Column::number(["", "packets"], 1),
        Column::number(["elapsed", "ms"], 1),
        Column::number(["saved", "ms"], 2),
    ];
    let cells = |row: &Row| {
        let known = |value: Option<f64>, print: fn(f64) -> String| value.map(print).unwrap_or_default();
        vec![
            row.step.clone(),
            number::count(row.objects as f64),
            number::count(row.bytes as f64),
            number::tenths(row.saved_percent),
            known(row.packets, number::count),
            known(row.elapsed_ms, number::significant),
            known(row.saved_ms, number::significant),
        ]
    };
    Grid { columns, rows: rows.iter().map(cells).collect() }
}

/// Each image in every form that was made.
fn images(content: &Content) -> Grid {
    let columns = vec![
        Column::name(["", "image"]),
        Column::number(["", "frames"], 3),
        Column::number(["", "as it is"], 0),
        Column::number(["PNG,", "APNG"], 0),
        Column::number(["", "MNG"], 2),
        Column::number(["", "WebP"], 0),
        Column::number(["", "JPEG"], 1),
        Column::number(["WebP,", "lossy"], 1),
        Column::number(["", "AVIF"], 1),
    ];
    let mut rows = Vec::new();
    let mut sums = [0; 8];
    for file in &content.files {
        let FileKind::Picture(forms) = &file.kind else { continue };
        let ImageForms { picture, png, mng, webp, jpeg, webp_lossy, avif } = &**forms;
        let length = |form: &Option<Vec<u8>>| form.as_ref().map(Vec::len);
        let cells = [
            picture.as_ref().ok().map(|picture| picture.frames.len()),
            Some(file.bytes.len()),
            length(png),
            length(mng),
            length(webp),
            length(jpeg),
            length(webp_lossy),
            length(avif),
        ];
        sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += cell.unwrap_or(0));
        rows.push(line(&file.path, cells));
    }
    if rows.len() > 1 {
        rows.push(line("all", sums.map(|sum| (sum > 0).then_some(sum))));
    }
    Grid { columns, rows }
}

fn line(name: &str, cells: [Option<usize>; 8]) -> Vec<String> {
    let cells = cells.map(|cell| cell.map(|value| number::count(value as f64)).unwrap_or_default());
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// Files that were left out, with the reasons.
fn notes(content: &Content, replaced: &Replacements, rows: &[Row]) -> Vec<String> {
    let stored = content.files.iter().filter_map(|file| match &file.kind {
        FileKind::Picture(forms) => forms.picture.as_ref().err().map(|why| {
            let form = if forms.png.is_some() { "stays a PNG" } else { "stays as it is" };
            format!("{} {form}: {why}", file.path)
        }),
        FileKind::Html | FileKind::Text | FileKind::Other => None,
    });
    let sentences: BTreeSet<&String> = rows.iter().flat_map(|row| &row.notes).collect();
    let left_out = content.left_out.iter().cloned();
    std::iter::once(by_css(replaced))
        .chain(unread(content))
        .chain(stored)
        .chain(left_out)
        .chain(sentences.into_iter().cloned())
        .collect()
}

/// Images in formats that are not decoded here, which stay as they are: `24 images (24 webp)`.
fn unread(content: &Content) -> Option<String> {
    let mut formats: BTreeMap<String, usize> = BTreeMap::new();
    for file in content.files.iter().filter(|file| matches!(file.kind, FileKind::Other)) {
        let ending = file.path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        if let Some(ending) = ending.filter(|ending| UNREAD.contains(&ending.as_str())) {
            *formats.entry(ending).or_default() += 1;
        }
    }
    let formats: Vec<String> = formats.iter().map(|(ending, count)| format!("{count} .{ending}")).collect();
    (!formats.is_empty()).then(|| {
        format!("images that stay as they are: {}; only GIF, PNG and JPEG are converted", formats.join(", "))
    })
}

/// Extensions of images that are not decoded here.
const UNREAD: [&str; 8] = ["webp", "avif", "jxl", "heic", "bmp", "ico", "tif", "tiff"];

/// Images that CSS rules replace, which bytes and objects alone do not show.
fn by_css(replaced: &Replacements) -> String {
    let Replacements { documents, images, rules } = replaced;
    let words = images.values().filter(|look| !look.words.is_empty()).count();
    match images.len() {
        0 => "css replaces nothing here: no image is a spacer, or a line of text with alternative text"
            .to_owned(),
        count => {
            let some =
                |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            format!(
                "css replaces {}, {words} of them by words, with {} in {}",
                some(count, "image"),
                some(*rules, "rule"),
                some(documents.len(), "document")
            )
        }
    }
}

/// Rows as comma-separated values (RFC 4180).
pub fn csv(rows: &[Row]) -> String {
    let columns = [
        "page",
        "network",
        "protocol",
        "step",
        "objects",
        "bytes",
        "saved_bytes",
        "saved_percent",
        "packets",
        "elapsed_ms",
        "saved_ms",
    ];
    let known = |value: &Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let cells = |row: &Row| {
        let Row {
            page,
            network,
            protocol,
            step,
            objects,
            bytes,
            saved_bytes,
            saved_percent,
            packets,
            elapsed_ms,
            saved_ms,
            files: _,
            notes: _,
        } = row;
        [
            page.to_string(),
            network.to_string(),
            protocol.to_string(),
            step.to_string(),
            objects.to_string(),
            bytes.to_string(),
            saved_bytes.to_string(),
            saved_percent.to_string(),
            known(packets),
            known(elapsed_ms),
            known(saved_ms),
        ]
    };
    csv::table(columns, rows.iter().map(cells))
}

/// The tables as sections of a page.
pub fn sections(content: &Content, replaced: &Replacements, rows: &[Row]) -> String {
    let section = |title: String, table: String| {
        format!(
            "<section>\n<h2>{}</h2>\n<div class=\"scroll\">\n{table}</div>\n</section>\n",
            escaped(&title)
        )
    };
    let steps: String = groups(rows)
        .map(|group| {
            section(format!("Over {}, {}", group[0].network, group[0].protocol), table_of(&steps(group)))
        })
        .collect();
    let images = images(content);
    let images = match images.rows.is_empty() {
        true => String::new(),
        false => section("Images, in bytes".to_owned(), table_of(&images)),
    };
    steps + &gallery::section(content, replaced) + &images + &paragraphs(&notes(content, replaced, rows))
}

fn paragraphs(sentences: &[String]) -> String {
    sentences.iter().map(|sentences| format!("<p>{}</p>\n", escaped(sentences.trim()))).collect()
}
