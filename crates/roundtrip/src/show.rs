//! Output of results: printed in the requested format, and written to a page.

use std::path::Path;

use lab::report::Report;
use lab::setting::Setting;
use lab::table::{self, Layout};
use lab::{Outcome, row};
use render::provenance::Provenance;

use crate::cli::flags::{Format, OutputFlags};
use crate::failure::Failure;
use crate::file;

/// Results of a verb.
#[derive(Debug)]
pub struct Results {
    /// Rows of each engine for each scenario.
    pub outcomes: Vec<Outcome>,
    /// Settings that are columns of the rows.
    pub settings: Vec<Setting>,
    /// Layout of the tables.
    pub layout: Layout,
    /// Provenance of the results.
    pub provenance: Provenance,
}

impl Results {
    /// Prints the results, then writes the page if requested; a failed page does not lose the printed results.
    pub fn show(self, flags: &OutputFlags) -> Result<(), Failure> {
        let OutputFlags { format, report } = flags;
        crate::output::to_stdout(&self.text(*format))?;
        if let Some(path) = report {
            let page = self.page();
            file::write(path, page.as_bytes())?;
        }
        Ok(())
    }

    /// Writes a line for each stall to a file, if one is given.
    pub fn write_stalls(&self, path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        file::write_with(path, |out| {
            out.write_all(row::stalls_heading(&self.settings).as_bytes())?;
            let mut rows = self.outcomes.iter().enumerate();
            rows.try_for_each(|(index, outcome)| {
                out.write_all(row::stalls_lines(index + 1, outcome, &self.settings).as_bytes())
            })
        })
    }

    fn text(&self, format: Format) -> String {
        let Self { outcomes, settings, layout, provenance: _ } = self;
        match format {
            Format::Table => table::render(outcomes, *layout, crate::terminal::of_stdout()),
            Format::Json => row::json(outcomes, settings),
            Format::Csv => row::csv(outcomes, settings),
        }
    }

    fn page(self) -> String {
        let Self { outcomes, settings: _, layout, provenance } = self;
        Report { outcomes: &outcomes, layout, provenance: program().and(provenance) }.page()
    }
}

/// Provenance of a page: the program's version and its command line.
pub fn program() -> Provenance {
    let program = Provenance::fact("program", format!("roundtrip {}", env!("CARGO_PKG_VERSION")));
    let typed = std::env::args_os().map(|typed| typed.to_string_lossy().into_owned());
    program.and(Provenance::fact("command", command_line(typed)))
}

/// Returns the command line, quoted for a shell.
fn command_line(arguments: impl Iterator<Item = String>) -> String {
    let quoted = arguments.skip(1).map(|argument| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./+=%,:".contains(letter);
        match !argument.is_empty() && argument.chars().all(plain) {
            true => argument,
            false => format!("'{}'", argument.replace('\'', "'\\''")),
        }
    });
    std::iter::once("roundtrip".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn the_command_line_can_be_typed_again() {
        let typed =
            ["/usr/bin/roundtrip", "predict", "--page", "6651+3883", "it's here.toml"].map(str::to_owned);
        assert_eq!(
            command_line(typed.into_iter()),
            "roundtrip predict --page 6651+3883 'it'\\''s here.toml'"
        );
    }
}
