//! `roundtrip get`: fetches over DHTTP, or over plain HTTP from servers without DHTTP.
//!
//! Servers known to speak DHTTP are stored in a file of the user's cache directory.

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use dhttp::client::{Event, Note, Observer, ServersFile};
use dhttp::{Client, ClientConfig, Url};
use indicatif::{ProgressBar, ProgressStyle};
use quantity::names::Quoted;

use crate::cli::dhttp::{Get, Profile};
use crate::failure::Failure;
use crate::file;
use crate::serve::settings::named_extensions;
use crate::serve::{known_servers, networks};

/// Prints an event of the client. A closed standard error is ignored.
pub fn show(note: &Note) {
    let _ = writeln!(io::stderr(), "{note}");
}

/// Fetches each URL; returns 1 if a status is 400 or above.
pub fn run(flags: &Get) -> Result<ExitCode, Failure> {
    let Get { urls, output, verbose, ports, profile, caches, no_race, with } = flags;
    if output.is_some() && urls.len() > 1 {
        return Err(Failure::Value(
            "--output: one file cannot hold several responses; give one URL".to_owned(),
        ));
    }
    let urls: Vec<Url> = urls
        .iter()
        .map(|url| url.parse())
        .collect::<Result<_, dhttp::UrlError>>()
        .map_err(|error| Failure::Value(error.to_string()))?;
    let config = match profile {
        Profile::Internet => ClientConfig::internet(),
        Profile::Paper => ClientConfig::paper(),
    };
    let responders = caches.as_deref().map(networks::caches).transpose()?.unwrap_or(config.dhttp.responders);
    let mut dhttp = dhttp_proto::ClientConfig { responders, ..config.dhttp };
    for (extension, is_on) in named_extensions(with, &[])? {
        dhttp = dhttp.with(extension, is_on);
    }
    let ports = ports.as_deref().map(port_range).transpose()?;
    let config = ClientConfig { dhttp, ports, races: config.races && !no_race, ..config };
    let observer: Option<Observer> = verbose.then(|| Arc::new(show) as Observer);
    let known = known_servers::load(ServersFile::Programs);
    let client = Client::start(config, known.clone(), observer).map_err(|error| {
        Failure::Network(format!("cannot listen for servers: {error}; try other --ports"))
    })?;
    let mut has_succeeded = true;
    for url in &urls {
        has_succeeded &= fetch(&client, url, output.as_deref(), *verbose)?;
    }
    ServersFile::Programs.save(&known, &client.known());
    Ok(if has_succeeded { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Maximum number of redirections to follow.
const MAX_REDIRECTIONS: usize = 10;

fn fetch(client: &Client, url: &Url, output: Option<&Path>, verbose: bool) -> Result<bool, Failure> {
    let network = |reason: String| Failure::Network(format!("{}: {reason}", display_url(url)));
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTIONS {
        let mut exchange = client.get(&url).map_err(|error| network(error.to_string()))?;
        let (via, head) = match exchange.next() {
            Some(Event::Head(via, head)) => (via, head),
            Some(Event::Failed(reason)) => return Err(network(reason)),
            Some(Event::Body(_) | Event::End) | None => {
                return Err(network("no response".to_owned()));
            }
        };
        if verbose {
            eprintln!("* {} by {}", head.status, via.name());
        }
        let location = head.fields.get("Location").and_then(|value| std::str::from_utf8(value).ok());
        if let (301 | 302 | 307 | 308, Some(location)) = (head.status, location) {
            let next = url.join(location).map_err(|error| network(error.to_string()))?;
            // A redirection within a server reached over DHTTP is followed over DHTTP.
            let is_same_server = next.authority() == url.authority();
            url = Url { is_dhttp: next.is_dhttp || (is_same_server && url.is_dhttp), ..next };
            continue;
        }
        let length = head.fields.get("Content-Length").and_then(|value| std::str::from_utf8(value).ok());
        let length = length.and_then(|length| length.parse().ok());
        save(&mut exchange, output, length, &network)?;
        return Ok(head.status < 400);
    }
    Err(network(format!("more than {MAX_REDIRECTIONS} redirects")))
}

/// Writes a body as it arrives.
fn save(
    exchange: &mut dhttp::client::Exchange,
    output: Option<&Path>,
    length: Option<u64>,
    network: &dyn Fn(String) -> Failure,
) -> Result<(), Failure> {
    let Some(path) = output else {
        let mut out = io::stdout().lock();
        let failure = copy(exchange, &mut out, &ProgressBar::hidden()).map_err(Failure::Stdout)?;
        return failure.map_or(Ok(()), |reason| Err(network(reason)));
    };
    let bar = bar(length);
    let mut failure = None;
    // An incomplete response leaves the previous file untouched.
    let written = file::write_with(path, |out| {
        failure = copy(exchange, out, &bar)?;
        failure.as_ref().map_or(Ok(()), |_| Err(io::ErrorKind::UnexpectedEof.into()))
    });
    bar.finish_and_clear();
    failure.map_or(written, |reason| Err(network(reason)))
}

/// Copies a body; returns the error if it is incomplete.
fn copy(
    exchange: &mut dhttp::client::Exchange,
    out: &mut dyn Write,
    bar: &ProgressBar,
) -> io::Result<Option<String>> {
    while let Some(event) = exchange.next() {
        match event {
            Event::Body(part) => {
                out.write_all(&part)?;
                bar.inc(part.len() as u64);
            }
            Event::Failed(reason) => return Ok(Some(reason)),
            Event::Head(..) | Event::End => {}
        }
    }
    out.flush()?;
    Ok(None)
}

fn bar(length: Option<u64>) -> ProgressBar {
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    let style = "{bar:20} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
    bar.with_style(ProgressStyle::with_template(style).expect("the template is fixed"))
}

fn display_url(url: &Url) -> String {
    format!("{}{}", url.authority(), url.target)
}

/// Parses the ports that servers connect to.
pub fn port_range(text: &str) -> Result<RangeInclusive<u16>, Failure> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port >= 1_024);
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (_, _) => Err(Failure::Value(format!(
            "--ports: {} is not a range of ports; give two from 1024 to 65535, such as 40000-40009",
            Quoted(text)
        ))),
    }
}
