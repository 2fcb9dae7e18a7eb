//! Third-party clients, each run for one page. The duration comes from the packets: from the first SYN to the
//! last byte of a response, both at the client.
//!
//! The number of connections that a browser opens, and its further requests, are its own decision.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;

use http1::site::Site;
use linux::clock::Clock;
use scenario::{Client, Connection, Protocol, Visit};
use testbed::emulator::{Capture, Observation, PacketDirection};
use wire::packet::{Flags, Packet, Transport};
use wire::{Bytes, Duration};

use super::process::{Process, RunDirectory};
use super::server::DOCUMENT;
use super::{ClientProgram, InstalledProgram, ServerProgram};
use crate::Error;
use crate::driver::client::FetchedPage;

impl ClientProgram {
    /// Finds the program, and checks that it supports the scenario.
    pub(crate) fn find_program(
        self,
        protocol: Protocol,
        visit: Visit,
        client: &Client,
    ) -> Result<InstalledProgram, Error> {
        let unsuited = |part: String| Error::Unsuited {
            part: format!("{part} with {self}"),
            remedy: "use our own client".to_owned(),
        };
        let Client { request: _, requests: _, parallel, connection } = client;
        let speaks = match (self, protocol) {
            (Self::Curl | Self::Wget, Protocol::Http10 | Protocol::Http11) => true,
            (Self::Curl, Protocol::Http11Parallel | Protocol::Http2) => true,
            (
                Self::Chromium,
                Protocol::Http11 | Protocol::Http11Parallel | Protocol::Http2 | Protocol::Http3,
            ) => true,
            (Self::Ours, _) => true,
            (Self::Curl | Self::Wget | Self::Chromium, _) => false,
        };
        if !speaks {
            return Err(unsuited(protocol.name().to_owned()));
        }
        if visit == Visit::Revalidate && self != Self::Chromium {
            return Err(unsuited("a repeated visit".to_owned()));
        }
        let is_browser_default =
            self == Self::Chromium && *parallel == Protocol::Http11Parallel.connections();
        if *parallel > 1 && self != Self::Curl && self != Self::Ours && !is_browser_default {
            return Err(unsuited(format!("{parallel} concurrent connections")));
        }
        match connection {
            Connection::Cold => self.names().find(),
            Connection::Warm => Err(unsuited("a connection that is open already".to_owned())),
        }
    }
}

/// Fetches the page, in the calling thread's network namespace; its cache is in `directory`.
pub(crate) fn fetch(
    program: ClientProgram,
    installed: &InstalledProgram,
    page: &Page,
    directory: &RunDirectory,
    clock: Clock,
) -> Result<(), Error> {
    let command = command(program, installed, page, directory)?;
    let mut process = Process::start(program.name(), command, directory)?;
    process.wait_until(page.deadline, clock, |process| Ok(process.exit_status()?.is_some()))?;
    let failed = |message: String| Err(Error::Run { number: 1, what: message });
    match process.exit_status()? {
        Some(status) if status.success() => Ok(()),
        Some(status) => failed(format!("{program} failed ({status}): {}", process.last_output_line())),
        None => failed(format!("{program} did not exit within {}", page.deadline)),
    }
}

/// Page to fetch, and how.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) server: SocketAddr,
    pub(crate) served_by: ServerProgram,
    /// Paths of all objects, the document's first.
    pub(crate) paths: Vec<String>,
    pub(crate) protocol: Protocol,
    pub(crate) parallel: u16,
    pub(crate) deadline: Duration,
}

fn command(
    program: ClientProgram,
    installed: &InstalledProgram,
    page: &Page,
    directory: &RunDirectory,
) -> Result<Command, Error> {
    let mut command = Command::new(&installed.path);
    let urls = || page.paths.iter().map(|path| format!("http://{}{path}", page.server));
    let is_http10 = page.protocol == Protocol::Http10;
    match program {
        ClientProgram::Ours => {}
        ClientProgram::Curl => {
            let list: String =
                urls().map(|url| format!("url = \"{url}\"\noutput = \"/dev/null\"\n")).collect();
            let file = directory.write("urls", list.as_bytes())?;
            command.args(["--silent", "--show-error", "--fail", "--disable", "--noproxy", "*"]);
            command.arg(if is_http10 { "--http1.0" } else { "--http1.1" });
            if page.parallel > 1 {
                command.args([
                    "--parallel",
                    "--parallel-immediate",
                    "--parallel-max",
                    &page.parallel.to_string(),
                ]);
            }
            command.arg("--config").arg(file);
        }
        ClientProgram::Wget => {
            let list: String = urls().map(|url| url + "\n").collect();
            let file = directory.write("urls", list.as_bytes())?;
            command.args([
                "--no-config",
                "--no-proxy",
                "--no-hsts",
                "--no-verbose",
                "--output-document=/dev/null",
            ]);
            if is_http10 {
                command.arg("--no-http-keep-alive");
            }
            command.arg("-i").arg(file);
        }
        ClientProgram::Chromium => {
            command.args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--no-proxy-server",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-default-apps",
                "--disable-extensions",
                "--disable-sync",
                "--dump-dom",
            ]);
            command.arg(format!("--user-data-dir={}", directory.path().display()));
            let document = match page.paths.first().map_or("/", String::as_str) {
                // Python and Caddy derive a file's type from its name.
                "/0" if page.served_by != ServerProgram::Ours => &format!("/{DOCUMENT}"),
                document => document,
            };
            command.arg(format!("http://{}{document}", page.server));
        }
    }
    Ok(command)
}

/// A page fetched by a third-party client, from its packets.
pub(crate) fn fetched(capture: &Capture) -> FetchedPage {
    let (mut fetched, mut opened) = (FetchedPage::default(), BTreeSet::new());
    // What follows a client's FIN is no response: TLS and HTTP/2 have closing messages of their own.
    let mut closed = BTreeSet::new();
    for (time, direction, observation, bytes) in capture.iter() {
        let Ok(packet) = Packet::read(bytes) else { continue };
        let Some((source, destination)) = packet.sockets() else { continue };
        let (is_opening, is_end, payload) = match packet.transport {
            Transport::Tcp(segment) => {
                let has = |flag| segment.flags.contains(flag);
                (has(Flags::SYN), has(Flags::FIN), segment.payload_length)
            }
            // QUIC: names are resolved without DNS.
            Transport::Udp(datagram) => (true, false, datagram.payload_length),
            _ => continue,
        };
        match (direction, observation) {
            (PacketDirection::Up, Observation::Sent) if is_opening => {
                fetched.began.get_or_insert(time);
                opened.insert((source, destination));
            }
            (PacketDirection::Up, Observation::Sent) if is_end => {
                closed.insert((source, destination));
            }
            (PacketDirection::Down, Observation::Delivered)
                if payload > Bytes::ZERO && !closed.contains(&(destination, source)) =>
            {
                fetched.ended = Some(time)
            }
            (_, _) => {}
        }
    }
    fetched.connections = opened.len() as u64;
    fetched
}

/// A document of this size that references all the others; `None` if it is too small for that.
pub(crate) fn document(size: usize, objects: usize) -> Option<Vec<u8>> {
    let images: String = (1..objects).map(|index| format!("<img src={}>", Site::path(index))).collect();
    // Without an icon, which a browser would request.
    let (head, tail) = ("<!doctype html><link rel=icon href=data:,><title>page</title>", "<!---->");
    let padding = size.checked_sub(head.len() + images.len() + tail.len())?;
    Some(format!("{head}{images}<!--{}-->", ".".repeat(padding)).into_bytes())
}

/// A one-pixel image of this many bytes: a browser aborts an invalid one before all of it has arrived. `None`
/// if the size is too small (GIF89a, sections 17 to 27).
pub(crate) fn image(size: usize) -> Option<Vec<u8>> {
    const HEAD: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0";
    const DOT: &[u8] = b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let padding = size.checked_sub(HEAD.len() + DOT.len())?;
    let mut image = HEAD.to_vec();
    // A comment fills the rest: two bytes, blocks of up to 255 with their lengths before them, and an end.
    let mut comment_bytes = match padding {
        0 => 0,
        1..5 => return None,
        more => {
            image.extend(b"!\xfe");
            more - 3
        }
    };
    while comment_bytes > 0 {
        // The last block must not consist of a length only.
        let block = if comment_bytes == 257 { 100 } else { comment_bytes.min(256) };
        image.push(u8::try_from(block - 1).ok()?);
        image.resize(image.len() + block - 1, b'.');
        comment_bytes -= block;
    }
    if padding > 0 {
        image.push(0);
    }
    image.extend(DOT);
    Some(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_its_size_and_its_blocks_end_where_the_file_ends() {
        for size in (39..1_100).chain([40_960]) {
            let Some(image) = image(size) else { continue };
            assert_eq!(image.len(), size);
            let mut time = 19;
            if image[time] == b'!' {
                time += 2;
                while image[time] != 0 {
                    time += 1 + usize::from(image[time]);
                }
                time += 1;
            }
            assert_eq!((image[time], size - time), (b',', 16), "{size}");
        }
        assert_eq!(image(10), None);
    }

    #[test]
    fn a_document_has_its_size_and_names_the_others_or_is_too_small() {
        let document = String::from_utf8(document(200, 3).unwrap()).unwrap();
        assert_eq!(document.len(), 200);
        assert!(document.contains("<img src=/1><img src=/2>") && !document.contains("/3"));
        assert_eq!(super::document(60, 3), None);
    }
}
