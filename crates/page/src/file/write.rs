//! The writer of pages in TOML. Values that are the defaults are left out.

use std::fmt::Write;

use http1::message::Method;
use wire::{Bytes, Duration};

use crate::{Dependency, Host, Kind, Moment, Object, OfferedProtocols, Page, Priority, RecordedTimes};

/// The page in TOML. Contents and notes are not part of it.
pub fn write(page: &Page) -> String {
    let Page { name, hosts, objects, contents: _, notes: _, recorded } = page;
    let mut text = format!("name = {}\n", quoted(name));
    if let Some(RecordedTimes { content_loaded, load, last_end, before_load, client_time }) = recorded {
        text += "\n[recorded]\n";
        let times = [
            ("content-loaded", content_loaded),
            ("load", load),
            ("last-end", last_end),
            ("before-load", before_load),
            ("client-time", client_time),
        ];
        times.iter().for_each(|(key, time)| text += &line(key, time.map(duration)));
    }
    hosts.iter().for_each(|host| text += &host_table(host));
    for (index, object) in objects.iter().enumerate() {
        text += &object_table(index, object, hosts);
    }
    text
}

fn host_table(host: &Host) -> String {
    let Host { name, address_group, extra_rtt, lookup, processing, protocols, .. } = host;
    let Host { certificate_chain, software, hints, .. } = host;
    let known = |time: &Duration| (*time > Duration::ZERO).then(|| duration(*time));
    let keys = [
        line("name", Some(quoted(name))),
        line("address-group", address_group.map(|group| group.to_string())),
        line("extra-rtt", known(extra_rtt)),
        line("dns", known(lookup)),
        line("server-time", known(processing)),
        line("protocols", protocol_names(*protocols)),
        line("certificate-chain", certificate_chain.map(size)),
        line("software", software.as_deref().map(quoted)),
        line("preconnect", hints.preconnect.map(|after| quoted(&after.to_string()))),
        line("dns-prefetch", hints.dns_prefetch.map(|after| quoted(&after.to_string()))),
    ];
    format!("\n[[host]]\n{}", keys.concat())
}

/// Names of the protocols; `None` for all of them.
fn protocol_names(protocols: OfferedProtocols) -> Option<String> {
    let OfferedProtocols { tls, http2, http3 } = protocols;
    if protocols == OfferedProtocols::ALL {
        return None;
    }
    let first = if tls { "http/1.1" } else { "http" };
    let names = [Some(first), (tls && http2).then_some("h2"), (tls && http3).then_some("h3")];
    let names: Vec<String> = names.into_iter().flatten().map(quoted).collect();
    Some(format!("[{}]", names.join(", ")))
}

fn object_table(index: usize, object: &Object, hosts: &[Host]) -> String {
    let Object {
        host,
        path,
        method,
        kind,
        priority,
        request_head,
        response_head,
        size: body,
        deflated,
        request_body,
        processing,
        local,
        is_render_blocking,
        is_anonymous,
        counts_for_load,
        after,
    } = object;
    let host = hosts.get(*host).filter(|_| *host > 0).map(|host| quoted(&host.name));
    let keys = [
        line("host", host),
        line("path", path.as_deref().map(quoted)),
        line("method", (*method != Method::Get).then(|| quoted(method.name()))),
        line("type", (*kind != Kind::default()).then(|| quoted(kind.name()))),
        line("priority", (*priority != Priority::default()).then(|| quoted(priority.name()))),
        line("size", Some(size(*body))),
        line("deflated", deflated.map(size)),
        line("request-headers", request_head.map(size)),
        line("response-headers", response_head.map(size)),
        line("request-body", (*request_body > Bytes::ZERO).then(|| size(*request_body))),
        line("server-time", processing.map(duration)),
        line("local", local.map(duration)),
        line("render-blocking", is_render_blocking.then(|| "true".to_owned())),
        line("anonymous", is_anonymous.then(|| "true".to_owned())),
        line("load", (!counts_for_load).then(|| "false".to_owned())),
        line("after", dependencies(index, after)),
    ];
    format!("\n[[object]] # {}\n{}", index + 1, keys.concat())
}

/// The list of dependencies; `None` for the default: the document's end, or nothing for the document.
fn dependencies(index: usize, after: &[Dependency]) -> Option<String> {
    let is_default = match index {
        0 => after.is_empty(),
        _ => after == [Dependency::on_end(0)],
    };
    let texts: Vec<String> = after.iter().map(|dependency| quoted(&dependency.to_string())).collect();
    (!is_default).then(|| format!("[{}]", texts.join(", ")))
}

impl std::fmt::Display for Dependency {
    /// In the notation of files, with the object's number from 1: `3 at 2000 bytes + 30ms`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { on, at, plus } = self;
        write!(f, "{}", on + 1)?;
        match at {
            Moment::Begun => f.write_str(" begun")?,
            Moment::Delivered(bytes) => write!(f, " at {} bytes", bytes.get())?,
            Moment::Ended => {}
        }
        if *plus > Duration::ZERO { write!(f, " + {plus}") } else { Ok(()) }
    }
}

fn line(key: &str, value: Option<String>) -> String {
    let mut text = String::new();
    if let Some(value) = value {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{key} = {value}");
    }
    text
}

fn duration(time: Duration) -> String {
    quoted(&time.to_string())
}

fn size(bytes: Bytes) -> String {
    bytes.get().to_string()
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
