//! A page in TOML, for people to write and change: [`write()`] and [`read`].
//!
//! ```
//! use roundtrip_page::file;
//!
//! let page = file::read(
//!     "shop",
//!     r#"
//!     [[host]]
//!     name = "www.example.com"
//!
//!     [[host]]
//!     name = "cdn.example.com"
//!     extra-rtt = "20ms"
//!     server-time = "5ms"
//!
//!     [[object]]
//!     type = "document"
//!     size = 12000
//!
//!     [[object]]
//!     id = "app"
//!     host = "cdn.example.com"
//!     type = "script"
//!     size = 80000
//!     after = ["1 at 2000 bytes"]
//!
//!     [[object]]
//!     size = 3000
//!     after = ["app + 30ms"]
//!     "#,
//! )?;
//! assert_eq!(page.objects[2].after[0].on, 1);
//! assert_eq!(file::read("shop", &file::write(&page)), Ok(page));
//! # Ok::<(), file::FileError>(())
//! ```
//!
//! Objects are named by their `id`, or by their number from 1. `after` lists what an object waits for, all of it:
//! `"app"` (its end), `"app begun"`, `"app at 2000 bytes"`, each with a delay as `+ 30ms`. Without `after`, an object
//! waits for the document's end; `after = []` waits for nothing.

mod write;

use std::collections::BTreeMap;
use std::ops::Range;

use http1::message::Method;
use http1::message::field::is_token;
use serde::Deserialize;
use toml::Spanned;
use wire::{Bytes, Duration};

use crate::{
    Dependency, Hints, Host, Kind, Moment, Object, OfferedProtocols, Page, PageError, Priority, RecordedTimes,
};

pub use write::write;

/// Maximum size of a file: 10,000 objects with long paths.
pub const MAX_BYTES: u64 = 16 << 20;

/// Reason why a text is not a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct FileError {
    /// Line, from 1; `None` for the whole page.
    pub line: Option<usize>,
    /// The invalid part, and a remedy.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    name: Option<String>,
    recorded: Option<Times>,
    #[serde(default, rename = "host")]
    hosts: Vec<Spanned<HostTable>>,
    #[serde(rename = "object")]
    objects: Vec<Spanned<ObjectTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Times {
    content_loaded: Option<Quantity>,
    load: Option<Quantity>,
    last_end: Option<Quantity>,
    before_load: Option<Quantity>,
    client_time: Option<Quantity>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HostTable {
    name: String,
    address_group: Option<u32>,
    extra_rtt: Option<Quantity>,
    dns: Option<Quantity>,
    server_time: Option<Quantity>,
    protocols: Option<Vec<String>>,
    certificate_chain: Option<u64>,
    software: Option<String>,
    preconnect: Option<String>,
    dns_prefetch: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ObjectTable {
    id: Option<String>,
    host: Option<String>,
    path: Option<String>,
    method: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    priority: Option<String>,
    size: u64,
    deflated: Option<u64>,
    request_headers: Option<u64>,
    response_headers: Option<u64>,
    request_body: Option<u64>,
    server_time: Option<Quantity>,
    local: Option<Quantity>,
    render_blocking: Option<bool>,
    anonymous: Option<bool>,
    load: Option<bool>,
    after: Option<Vec<String>>,
}

/// A duration with its unit, as text.
#[derive(Deserialize)]
#[serde(transparent)]
struct Quantity(String);

impl Quantity {
    fn parse(&self) -> Result<Duration, String> {
        quantity::duration(&self.0).map_err(|error| error.to_string())
    }
}

/// Reads a page. A page without a name of its own has this one; a page without hosts has one.
///
/// # Errors
/// [`FileError`], with the line: a syntax error, an unknown key, an invalid value, or an unknown host or object.
pub fn read(name: &str, text: &str) -> Result<Page, FileError> {
    if text.len() as u64 > MAX_BYTES {
        return Err(FileError {
            line: None,
            problem: format!("larger than {MAX_BYTES} bytes; split the page"),
        });
    }
    let line = |span: Range<usize>| text.get(..span.start).map(|before| before.matches('\n').count() + 1);
    let file: File = toml::from_str(text).map_err(|error| FileError {
        line: error.span().and_then(line),
        problem: format!("{}; see the form in docs/page.md", error.message().replace(char::is_control, " ")),
    })?;
    let File { name: own_name, recorded, hosts, objects } = file;
    let whole = |problem| FileError { line: None, problem };
    let ids: BTreeMap<String, usize> = objects
        .iter()
        .enumerate()
        .filter_map(|(index, table)| Some((table.get_ref().id.clone()?, index)))
        .collect();
    let count = objects.len();
    let host = |table| at(table, line, |table| host(table, |text| dependency(text, &ids, count)));
    let hosts = match hosts.is_empty() {
        true => vec![Host::new(Host::UNNAMED)],
        false => hosts.into_iter().map(host).collect::<Result<_, _>>()?,
    };
    let host_numbers: BTreeMap<&str, usize> =
        hosts.iter().enumerate().rev().map(|(index, host)| (host.name.as_str(), index)).collect();
    if let Some(twice) =
        hosts.iter().enumerate().find(|(index, host)| host_numbers[host.name.as_str()] != *index)
    {
        return Err(whole(format!("host {} is there twice; give it another name", shown(&twice.1.name))));
    }
    let read = |(index, table)| at(table, line, |table| object(index, table, &host_numbers, &ids, count));
    let objects = objects.into_iter().enumerate().map(read).collect::<Result<Vec<Object>, _>>()?;
    let recorded = recorded.map(|times| times.read().map_err(whole)).transpose()?;
    let name = own_name.unwrap_or_else(|| name.to_owned());
    let page = Page { name, hosts, objects, contents: None, notes: Vec::new(), recorded };
    page.check().map(|()| page).map_err(|error: PageError| whole(error.to_string()))
}

/// Reads a table; an error has its line.
fn at<T, U>(
    table: Spanned<T>,
    line: impl Fn(Range<usize>) -> Option<usize>,
    read: impl FnOnce(T) -> Result<U, String>,
) -> Result<U, FileError> {
    let span = table.span();
    read(table.into_inner()).map_err(|problem| FileError { line: line(span), problem })
}

impl Times {
    fn read(self) -> Result<RecordedTimes, String> {
        let Self { content_loaded, load, last_end, before_load, client_time } = self;
        let [content_loaded, load, last_end, before_load, client_time] =
            [content_loaded, load, last_end, before_load, client_time]
                .map(|time| time.map(|time| time.parse()).transpose());
        Ok(RecordedTimes {
            content_loaded: content_loaded?,
            load: load?,
            last_end: last_end?,
            before_load: before_load?,
            client_time: client_time?,
        })
    }
}

fn host(table: HostTable, moment: impl Fn(&str) -> Result<Dependency, String>) -> Result<Host, String> {
    let HostTable { name, address_group, extra_rtt, dns, server_time, protocols, .. } = table;
    if name.is_empty() || name.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
        return Err(format!("{} is not a name of a host; give one, such as www.example.com", shown(&name)));
    }
    let time = |time: Option<Quantity>| time.map_or(Ok(Duration::ZERO), |time| time.parse());
    Ok(Host {
        name,
        address_group,
        extra_rtt: time(extra_rtt)?,
        lookup: time(dns)?,
        processing: time(server_time)?,
        protocols: protocols.map_or(Ok(OfferedProtocols::ALL), |names| offered(&names))?,
        certificate_chain: table.certificate_chain.map(Bytes::new),
        software: table.software,
        hints: Hints {
            preconnect: table.preconnect.as_deref().map(&moment).transpose()?,
            dns_prefetch: table.dns_prefetch.as_deref().map(&moment).transpose()?,
        },
    })
}

/// Names of the protocols that a host offers; `http` is HTTP/1.1 without TLS.
const PROTOCOLS: [&str; 4] = ["http", "http/1.1", "h2", "h3"];

fn offered(names: &[String]) -> Result<OfferedProtocols, String> {
    if let Some(unknown) = names.iter().find(|name| !PROTOCOLS.contains(&name.as_str())) {
        return Err(format!("unknown protocol {}; known: {}", shown(unknown), PROTOCOLS.join(", ")));
    }
    let has = |name: &str| names.iter().any(|other| other == name);
    match (has("http"), names.len()) {
        (_, 0) => Err("a host without protocols; name http/1.1, h2 or h3".to_owned()),
        (true, 1) => Ok(OfferedProtocols::PLAINTEXT),
        (true, _) => Err("http is without TLS, and the others are with it; name two hosts".to_owned()),
        (false, _) => Ok(OfferedProtocols { tls: true, http2: has("h2"), http3: has("h3") }),
    }
}

fn object(
    index: usize,
    table: ObjectTable,
    hosts: &BTreeMap<&str, usize>,
    ids: &BTreeMap<String, usize>,
    count: usize,
) -> Result<Object, String> {
    let ObjectTable { id, host, path, method, kind, priority, size, deflated, after, .. } = &table;
    if let Some(id) = id {
        check_id(id)?;
        if ids.get(id) != Some(&index) {
            return Err(format!("id {} is there twice; give another", shown(id)));
        }
    }
    let known = || hosts.keys().copied().collect::<Vec<_>>().join(", ");
    let host = match host {
        None => 0,
        Some(name) => *hosts
            .get(name.as_str())
            .ok_or_else(|| format!("unknown host {}; known: {}", shown(name), known()))?,
    };
    let bytes = |size: &u64| Bytes::new(*size);
    let time = |time: &Option<Quantity>| time.as_ref().map(Quantity::parse).transpose();
    let after = match after {
        Some(after) => after.iter().map(|text| dependency(text, ids, count)).collect::<Result<_, _>>()?,
        None if index == 0 => Vec::new(),
        None => vec![Dependency::on_end(0)],
    };
    Ok(Object {
        host,
        path: path.clone(),
        method: method.as_deref().map_or(Ok(Method::Get), read_method)?,
        kind: find(kind.as_deref(), "type", &Kind::NAMES)?.unwrap_or_default(),
        priority: find(priority.as_deref(), "priority", &Priority::NAMES)?.unwrap_or_default(),
        request_head: table.request_headers.as_ref().map(bytes),
        response_head: table.response_headers.as_ref().map(bytes),
        size: Bytes::new(*size),
        deflated: deflated.as_ref().map(bytes),
        request_body: Bytes::new(table.request_body.unwrap_or(0)),
        processing: time(&table.server_time)?,
        local: time(&table.local)?,
        is_render_blocking: table.render_blocking.unwrap_or(false),
        is_anonymous: table.anonymous.unwrap_or(false),
        counts_for_load: table.load.unwrap_or(true),
        after,
    })
}

fn read_method(name: &str) -> Result<Method, String> {
    let is_method = name.len() <= MAX_METHOD_BYTES && is_token(name.as_bytes());
    is_method
        .then(|| Method::from_name(name))
        .ok_or_else(|| format!("{} is not a method; give one, such as GET", shown(name)))
}

/// Maximum length of a method: tables and request lines stay readable.
pub(crate) const MAX_METHOD_BYTES: usize = 20;

fn check_id(id: &str) -> Result<(), String> {
    let is_id = id.starts_with(|first: char| first.is_ascii_alphabetic())
        && id.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    is_id
        .then_some(())
        .ok_or_else(|| format!("{} is not an id; give a letter, then letters, digits and -", shown(id)))
}

fn find<T: Copy>(given: Option<&str>, what: &str, known: &[(T, &str)]) -> Result<Option<T>, String> {
    let Some(given) = given else { return Ok(None) };
    match known.iter().find(|(_, name)| *name == given) {
        Some((value, _)) => Ok(Some(*value)),
        None => {
            let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
            Err(format!("unknown {what} {}; known: {}", shown(given), names.join(", ")))
        }
    }
}

/// Parses `app`, `app begun`, `app at 2000 bytes`, each perhaps with `+ 30ms`.
fn dependency(text: &str, ids: &BTreeMap<String, usize>, count: usize) -> Result<Dependency, String> {
    let invalid = || {
        format!(
            "{} is not what an object can wait for; give ID, ID begun or ID at N bytes, and + TIME",
            shown(text)
        )
    };
    let (moment, plus) = match text.split_once('+') {
        Some((moment, plus)) => (moment, Quantity(plus.trim().to_owned()).parse()?),
        None => (text, Duration::ZERO),
    };
    let words: Vec<&str> = moment.split_whitespace().collect();
    let at = match words.get(1..).ok_or_else(invalid)? {
        [] => Moment::Ended,
        ["begun"] => Moment::Begun,
        ["at", bytes, "bytes"] => Moment::Delivered(Bytes::new(bytes.parse().map_err(|_| invalid())?)),
        _ => return Err(invalid()),
    };
    let unknown =
        || format!("object {} is not there; give an id, or a number from 1 to {count}", shown(words[0]));
    let number =
        || words[0].parse::<usize>().ok().and_then(|number| number.checked_sub(1)).filter(|on| *on < count);
    let on = ids.get(words[0]).copied().or_else(number).ok_or_else(unknown)?;
    Ok(Dependency { on, at, plus })
}

fn shown(text: &str) -> String {
    quantity::names::Quoted(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_HOSTS: &str = r#"
[[host]]
name = "www"
protocols = ["http"]

[[host]]
name = "cdn"
extra-rtt = "20.5ms"
dns = "12ms"
server-time = "5ms"
address-group = 1
certificate-chain = 4000
software = "Caddy"
protocols = ["http/1.1", "h2"]

[[object]]
type = "document"
path = "/a?b"
method = "POST"
request-body = 17
size = 12000
server-time = "50ms"

[[object]]
id = "app"
host = "cdn"
type = "script"
priority = "high"
render-blocking = true
size = 80000
deflated = 20000
after = ["1 at 2000 bytes", "1 begun + 1.000001ms"]

[[object]]
size = 3000
load = false
local = "2ms"
after = ["app + 30ms"]

[[object]]
size = 5
after = []
"#;

    #[test]
    fn a_page_is_written_as_it_is_read() {
        let page = read("two", TWO_HOSTS).unwrap();
        assert_eq!(page.objects[1].after[1].plus, Duration::from_nanos(1_000_001));
        assert_eq!(page.objects[2].after[0].on, 1);
        assert_eq!(page.objects[3].after, []);
        assert_eq!(read("other name", &write(&page)), Ok(page));
        let text = TWO_HOSTS.replacen(
            "[[host]]",
            "[[host]]\npreconnect = '1 at 7 bytes + 2ms'\ndns-prefetch = '1'",
            1,
        );
        let hinted = read("hinted", &text).unwrap();
        let hints = hinted.hosts[0].hints;
        let texts = [hints.preconnect, hints.dns_prefetch].map(|hint| hint.unwrap().to_string());
        assert_eq!(texts, ["1 at 7 bytes + 2ms", "1"]);
        assert_eq!(read("x", &write(&hinted)), Ok(hinted));
        let never = read("never", &text.replace("at 7 bytes", "at 700000000 bytes")).unwrap_err();
        assert!(never.problem.starts_with("a hint for host 1 is never known"), "{never}");
        let sizes = Page::named("small-cluster").unwrap();
        assert_eq!(read("x", &write(&sizes)), Ok(sizes));
    }

    #[test]
    fn errors_have_a_line_and_a_remedy() {
        for (text, expected) in [
            ("x = 1", "line 1: unknown field `x`"),
            (
                "[[object]]\nsize = 1\n\n[[object]]\nsize = 1\nhost = 'cd'",
                "line 4: unknown host `cd`; known: server",
            ),
            (
                "[[object]]\nsize = 1\nafter = ['2']",
                "line 1: object `2` is not there; give an id, or a number from 1 to 1",
            ),
            ("[[object]]\nsize = 1\nafter = ['1 + x']", "line 1: `x` is not a duration; give"),
            ("[[object]]\nsize = 1\nafter = ['1']", "object 1 is never discovered"),
            ("[[object]]\nsize = 0", "an object of 0 B is out of range"),
            ("[[object]]\nsize = 1\ntype = 'html'", "line 1: unknown type `html`; known: document"),
            (
                "[[host]]\nname = 'a'\nprotocols = ['http', 'h2']\n[[object]]\nsize = 1",
                "line 1: http is without TLS",
            ),
            ("[[host]]\nname = 'a'\n[[host]]\nname = 'a'\n[[object]]\nsize = 1", "host `a` is there twice"),
        ] {
            let error = read("x", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
