//! `roundtrip content`: size and time of a page's content in other forms.

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
use crate::plan_flags;
use crate::show::program;

/// Makes every form of the page, loads each in the simulator, and prints the savings.
pub fn run(arguments: &Content) -> Result<(), Failure> {
    let Content { page, quality, scenario, output: OutputFlags { format, report }, advanced } = arguments;
    if quality.is_some() {
        Feature::ImageCodecs.require("--quality")?;
    }
    if scenario.keys.has(Key::Page) {
        return Err(Failure::Value(
            "--page: the page is the first argument here; leave the flag out".to_owned(),
        ));
    }
    let named = |name| Network::named(name).map_err(|unknown| Failure::Value(unknown.to_string()));
    let networks = vec![named("fast-internet")?, named("modem")?];
    let defaults =
        Defaults { networks, protocols: vec![Protocol::Http11Pipelined], runs: 1, ..Defaults::laboratory() };
    let plan = plan_flags::plan(scenario, advanced, &[], &defaults)?;
    if let Some(path) = report {
        file::check(path)?;
    }
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
    let lead = ["Each form was really made, and fetched in the simulator.".to_owned()];
    let codecs = if Feature::ImageCodecs.is_built() { ", libwebp, rav1e" } else { "" };
    let made = Provenance::fact(
        "encoders",
        format!("zlib-rs, brotli, zstd, oxipng{codecs}; MNG and JPEG of our own"),
    );
    let page = report::page(&title, &lead, &show::sections(&content, &replaced, &rows), &program().and(made));
    file::write(path, page.as_bytes())
}

/// The page with every form of its files, and a bar on stderr while they are made.
fn read(page: &str, seed: Seed, quality: Option<u8>) -> Result<content::Content, Failure> {
    let style = ProgressStyle::with_template("{bar:20} {pos} of {len} files").expect("the template is fixed");
    let bar = ProgressBar::new(0).with_style(style);
    let progress = |made: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(made as u64);
    };
    let read = input::read(page, seed, quality, &progress);
    bar.finish_and_clear();
    Ok(read?)
}
