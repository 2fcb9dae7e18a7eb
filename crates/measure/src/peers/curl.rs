//! curl as the client of a whole page over TLS: all objects of the page, requested from the start, by the protocol of the scenario.
//!
//! It does not read what it receives, so the page's graph is not played. Its own report of each response is checked; times come
//! from the packets ([`super::client::fetched`]).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use linux::clock::Clock;

use super::process::{Process, RunDirectory};
use super::{ClientProgram, InstalledProgram, Visit};
use crate::Error;

/// Fetches the page in the calling thread's network namespace.
///
/// # Errors
/// curl fails, refuses a certificate, speaks another protocol, or does not end.
pub(crate) fn visit(installed: &InstalledProgram, page: &Visit, clock: Clock) -> Result<(), Error> {
    let failed = |what: String| Error::Run { number: 1, what: format!("curl: {what}") };
    let directory = RunDirectory::new()?;
    let mut command = Command::new(&installed.path);
    // Neither the user's configuration nor a proxy.
    command.args(["--disable", "--config"]).arg(directory.write("curl", configuration(page).as_bytes())?);
    if let Some(trusted) = &page.trusted {
        command.arg("--cacert").arg(directory.write("authority.pem", trusted.pem.as_bytes())?);
    }
    let mut process = Process::start(ClientProgram::Curl.name(), command, &directory)?;
    process.wait_until(page.deadline, clock, |process| Ok(process.exit_status()?.is_some()))?;
    match process.exit_status()? {
        Some(status) if status.success() => check(page, &process.output()).map_err(failed),
        Some(status) => Err(failed(format!("it failed ({status}): {}", process.last_output_line()))),
        None => Err(failed(format!("it did not exit within {}", page.deadline))),
    }
}

/// curl's configuration file: options, and a line for each URL.
fn configuration(page: &Visit) -> String {
    let mut text = "silent\nno-progress-meter\nshow-error\nfail\nnoproxy = \"*\"\n".to_owned();
    // Brackets of a path are no ranges, and its dots are the page's.
    text += "globoff\npath-as-is\n";
    text += &format!("write-out = \"{MARK}%{{http_version}} %{{url_effective}}\\n\"\n");
    text += if page.protocol == "h2" { "http2\n" } else { "http1.1\n" };
    if page.parallel > 1 {
        text += &format!("parallel\nparallel-max = {}\n", page.parallel);
        // Otherwise a request waits to learn whether the first connection can be shared.
        text += if page.protocol == "h2" { "" } else { "parallel-immediate\n" };
    }
    for (name, address) in &page.addresses {
        let ports = page.urls.iter().filter_map(|url| port_at(url, name));
        for port in ports.collect::<BTreeSet<_>>() {
            text += &format!("resolve = \"{name}:{port}:{address}\"\n");
        }
    }
    text + &page
        .urls
        .iter()
        .map(|url| format!("url = \"{url}\"\noutput = \"/dev/null\"\n"))
        .collect::<String>()
}

/// Beginning of a line of curl's report, among what else it prints.
const MARK: &str = "response HTTP/";

/// The port of a URL, if its host has this name.
fn port_at<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (host, port) =
        authority.split_once(':').unwrap_or((authority, if scheme == "https" { "443" } else { "80" }));
    (host == name).then_some(port)
}

/// Checks what curl reports of each response: every URL once, by the protocol.
fn check(page: &Visit, output: &str) -> Result<(), String> {
    let wanted = if page.protocol == "h2" { "2" } else { "1.1" };
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let reported = output.lines().filter_map(|line| line.strip_prefix(MARK)?.split_once(' '));
    for (version, url) in reported {
        if version != wanted {
            return Err(format!("{url} came by HTTP/{version} instead of HTTP/{wanted}"));
        }
        *seen.entry(url).or_default() += 1;
    }
    match page.urls.iter().find(|url| seen.get(url.as_str()) != Some(&1)) {
        Some(url) => Err(format!("it reports {} responses of {url}", seen.get(url.as_str()).unwrap_or(&0))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Duration;

    fn page(protocol: &'static str) -> Visit {
        let urls = ["https://a.example/0.html", "https://b.example:8443/1.css"].map(str::to_owned).to_vec();
        let address = |name: &str| (name.to_owned(), "10.0.0.2".parse().unwrap());
        Visit {
            urls,
            addresses: vec![address("a.example"), address("b.example")],
            trusted: None,
            deadline: Duration::from_secs(1),
            protocol,
            is_quic: false,
            parallel: 6,
            has_trace: false,
        }
    }

    #[test]
    fn each_host_is_resolved_at_its_ports_and_connections_are_shared_by_http2_only() {
        let text = configuration(&page("h2"));
        assert!(text.contains("resolve = \"a.example:443:10.0.0.2\"\n"), "{text}");
        assert!(text.contains("resolve = \"b.example:8443:10.0.0.2\"\n"), "{text}");
        assert!(text.contains("\ngloboff\n"), "a path with brackets is one URL: {text}");
        assert!(text.contains("\nhttp2\n") && !text.contains("parallel-immediate"), "{text}");
        let text = configuration(&page("http/1.1"));
        assert!(
            text.contains("\nhttp1.1\n") && text.contains("parallel-max = 6\nparallel-immediate"),
            "{text}"
        );
    }

    #[test]
    fn another_protocol_or_a_missing_response_is_named() {
        let both = "DL% UL%\nresponse HTTP/2 https://a.example/0.html\nresponse HTTP/2 https://b.example:8443/1.css\n";
        assert_eq!(check(&page("h2"), both), Ok(()));
        assert!(check(&page("http/1.1"), both).unwrap_err().contains("by HTTP/2 instead of HTTP/1.1"));
        let one = check(&page("h2"), "response HTTP/2 https://a.example/0.html\n").unwrap_err();
        assert_eq!(one, "it reports 0 responses of https://b.example:8443/1.css");
    }
}
