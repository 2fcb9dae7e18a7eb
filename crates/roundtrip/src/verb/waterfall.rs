//! `--waterfall`: the first run of each scenario, as one SVG or as a page in HTML.

use std::path::Path;

use lab::waterfall::RunWaterfall;
use render::provenance::Provenance;
use render::report;

use crate::failure::{Failure, shown};
use crate::{file, show};

/// WaterfallForm of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaterfallForm {
    /// One run.
    Svg,
    /// Any number of runs.
    Html,
}

impl WaterfallForm {
    /// Returns the form by the file name extension, for so many scenarios.
    ///
    /// # Errors
    /// Another extension; or an SVG of several scenarios.
    pub fn of(path: &Path, scenarios: usize) -> Result<Self, Failure> {
        let refused = |reason: &str| Err(Failure::Value(format!("--waterfall {}: {reason}", shown(path))));
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("html" | "htm") => Ok(Self::Html),
            None | Some("svg") if scenarios > 1 => {
                refused("SVG shows one run; give FILE.html, or name one network, page, protocol and stack")
            }
            None | Some("svg") => Ok(Self::Svg),
            Some(_) => refused("not a format of waterfalls; give FILE.svg or FILE.html"),
        }
    }
}

/// Writes the waterfalls.
pub fn write(
    path: &Path,
    form: WaterfallForm,
    waterfalls: &[RunWaterfall],
    provenance: Provenance,
) -> Result<(), Failure> {
    let text = match (form, waterfalls) {
        (_, []) => {
            let reason = "no run has a waterfall; simulate one page, over HTTP connections";
            return Err(Failure::Value(format!("--waterfall {}: {reason}", shown(path))));
        }
        (WaterfallForm::Svg, [first, ..]) => first.svg(),
        (WaterfallForm::Html, all) => {
            let sections: String =
                all.iter().map(|waterfall| format!("<section>\n{}</section>\n", waterfall.html())).collect();
            let lead: Vec<String> = match all {
                [one] => vec![one.sentence()],
                _ => Vec::new(),
            };
            report::page("Waterfall", &lead, &sections, &show::program().and(provenance))
        }
    };
    file::write(path, text.as_bytes())
}
