//! Requests of the page, and replies.

use serde::Deserialize;

/// State between requests.
#[derive(Debug, Default)]
pub struct Session {
    /// The capture that was read last.
    #[cfg(feature = "diagnose")]
    captures: Vec<report::Capture>,
    /// Pages of dropped recordings.
    #[cfg(feature = "compare")]
    recorded: Vec<page::Page>,
}

/// A request: an object of JSON whose `op` is the variant.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reads a capture.
    #[cfg(feature = "diagnose")]
    Diagnose(crate::diagnosis::Reading),
    /// Shows one connection of the capture.
    #[cfg(feature = "diagnose")]
    Connection {
        /// Its index.
        flow: usize,
        /// Number that distinguishes its elements on the page.
        capture: u32,
    },
    /// Draws the plot of one connection, as a file.
    #[cfg(feature = "diagnose")]
    Plot {
        /// Its index.
        flow: usize,
    },
    /// Writes the capture in a format of the command line.
    #[cfg(feature = "diagnose")]
    Export {
        /// `html`, `json`, `csv`, `har` or `table`.
        format: String,
    },
    /// Reads the pages of a recording.
    #[cfg(feature = "compare")]
    Recording {
        /// The file's name.
        name: String,
        /// The file.
        file: u32,
    },
    /// Computes scenarios by formulas and simulator.
    #[cfg(feature = "compare")]
    Compare(crate::comparison::Experiment),
    /// Shows the first simulated run of a scenario.
    #[cfg(feature = "compare")]
    Run(crate::comparison::Experiment),
    /// Lists names of networks, pages, protocols and stacks.
    #[cfg(feature = "compare")]
    List,
}

impl Session {
    /// Handles a request.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn handle(&mut self, request: &[u8]) -> Result<String, String> {
        let request = serde_json::from_slice(request).map_err(|error| format!("unknown request: {error}"))?;
        match request {
            #[cfg(feature = "diagnose")]
            Request::Diagnose(reading) => {
                self.captures.clear();
                let capture = reading.read()?;
                let view = crate::diagnosis::view(&capture);
                self.captures.push(capture);
                Ok(view.to_string())
            }
            #[cfg(feature = "diagnose")]
            Request::Connection { flow, capture } => {
                crate::diagnosis::connection(&self.captures, flow, capture)
                    .ok_or_else(|| NOT_FOUND.to_owned())
            }
            #[cfg(feature = "diagnose")]
            Request::Plot { flow } => {
                crate::diagnosis::plot(&self.captures, flow).ok_or_else(|| NOT_FOUND.to_owned())
            }
            #[cfg(feature = "diagnose")]
            Request::Export { format } => crate::diagnosis::export(&self.captures, &format),
            #[cfg(feature = "compare")]
            Request::Recording { name, file } => {
                self.recorded = crate::comparison::recorded(&name, file)?;
                Ok(crate::comparison::summary(&self.recorded).to_string())
            }
            #[cfg(feature = "compare")]
            Request::Compare(experiment) => experiment.compare(&self.recorded).map(|value| value.to_string()),
            #[cfg(feature = "compare")]
            Request::Run(experiment) => experiment.run(&self.recorded).map(|value| value.to_string()),
            #[cfg(feature = "compare")]
            Request::List => Ok(crate::comparison::names().to_string()),
        }
    }
}

#[cfg(feature = "diagnose")]
const NOT_FOUND: &str = "no such connection, or it has no plot";
