//! `roundtrip content`: size and load time of a page's content in other formats.

use content::css::Replacements;
use content::step::Step;
use content::{input, row, show};
use indicatif::{ProgressBar, ProgressStyle};
use render::provenance::Provenance;
use render::report;
use scenario::spec::{Defaults, Key};
use scenario::{Network, Protocol};
use wire::Seed;

use crate::cli::Content;
use crate::cli::flags::{Format, OutputFlags};
use crate::failure::Failure;
use crate::feature::Feature;
use crate::file;
use crate::page_source;
use crate::plan_flags;
use crate::show::program;

/// Encodes the page in every format, simulates loading each, and prints the savings.
pub fn run(arguments: &Content) -> Result<(), Failure> {
    let Content { page, quality, scenario, output: OutputFlags { format, report }, advanced } = arguments;
    if quality.is_some() {
        Feature::ImageCodecs.require("--quality").map_err(Failure::Value)?;
    }
    if scenario.keys.has(Key::Page) {
        return Err(Failure::Value(
            "--page: the page is the first argument here; leave the flag out".to_owned(),
        ));
    }
    if page_source::has_changes(&scenario.what_if) {
        return Err(Failure::Value("changes of a page are not for its content; use simulate".to_owned()));
    }
    let named = |name| Network::named(name).map_err(|unknown| Failure::Value(unknown.to_string()));
    let networks = vec![named("fast-internet")?, named("modem")?];
    let defaults =
        Defaults { networks, protocols: vec![Protocol::Http11Pipelined], runs: 1, ..Defaults::laboratory() };
    let plan = plan_flags::plan(scenario, advanced, &[], &defaults)?;
    file::check(report)?;
    let seed = plan.scenarios.first().map_or(defaults.seed, |scenario| scenario.seed);
    let content = read(page, seed, *quality)?;
    let replaced = Replacements::of(&content);
    let mut rows = row::rows(&content, &replaced, &plan.scenarios, quality.is_some())?;
    if !content::HAS_IMAGE_CODECS {
        for row in rows.iter_mut().filter(|row| row.step == Step::AllOfNow.name()) {
            row.notes.push(Feature::ImageCodecs.missing("all-of-today is without WebP"));
        }
    }
    crate::output::to_stdout(&match format {
        Format::Table => show::text(&content, &replaced, &rows, crate::terminal::of_stdout()),
        Format::Json => render::output::json(&rows),
        Format::Csv => show::csv(&rows),
    })?;
    let Some(path) = report else { return Ok(()) };
    let title = format!("The content of {}", content.name);
    let lead = ["Each format was encoded, and its page load simulated.".to_owned()];
    let codecs = if Feature::ImageCodecs.is_built() { ", libwebp, rav1e" } else { "" };
    let encoders = Provenance::fact(
        "encoders",
        format!("zlib-rs, brotli, zstd, oxipng{codecs}; own encoders for MNG and JPEG"),
    );
    let page =
        report::page(&title, &lead, &show::sections(&content, &replaced, &rows), &program().and(encoders));
    file::write(path, page.as_bytes())
}

/// Reads the page and encodes its files in every format, with a progress bar on stderr.
fn read(page: &str, seed: Seed, quality: Option<u8>) -> Result<content::Content, Failure> {
    let style = ProgressStyle::with_template("{bar:20} {pos} of {len} files").expect("the template is fixed");
    let bar = ProgressBar::new(0).with_style(style);
    let progress = |done: usize, count: usize| {
        bar.set_length(count as u64);
        bar.set_position(done as u64);
    };
    let read = input::read(page, seed, quality, &progress);
    bar.finish_and_clear();
    Ok(read?)
}
