//! HTTP Archive 1.2 of fetched pages, and of exchanges in a capture: for browsers' network tools and other readers of the
//! format.
//!
//! Our own fields begin with an underscore, as the format requires.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use wire::{Bytes, Duration, calendar};

use crate::metrics::{Metrics, Stall};

/// One run, or one capture, which has no scenario.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// Title for users.
    pub title: String,
    /// Time at which the page was requested, since 1 January 1970, UTC.
    pub began: Duration,
    /// Time until the last byte had arrived; `None` if it never did.
    pub elapsed: Option<Duration>,
    /// Time of the event `load`, where it is not that.
    pub load: Option<Duration>,
    /// Exchanges in the order of their requests.
    pub exchanges: Vec<Exchange>,
    /// Name of the network.
    pub network: String,
    /// Name of the protocol.
    pub protocol: &'static str,
    /// Name of the engine; empty for a capture.
    pub engine: &'static str,
    /// Name of the stack profile.
    pub stack: &'static str,
    /// Means over all runs of its scenario.
    pub metrics: Metrics,
    /// Stalls of its scenario.
    pub stalls: Vec<Stall>,
}

/// A request and its response. Times are relative to the request of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Method.
    pub method: Cow<'static, str>,
    /// URL of the object.
    pub url: String,
    /// Version as in `HTTP/1.1`; `unknown` where it is not.
    pub version: &'static str,
    /// Size of the request with its headers, where it is known.
    pub request: Option<Bytes>,
    /// Status code, if a response was seen.
    pub status: Option<u16>,
    /// Size of the response's body, where it is known.
    pub body: Option<Bytes>,
    /// Media type; empty where it is unknown.
    pub mime: &'static str,
    /// Number of the connection, from 0.
    pub connection: u32,
    /// Time at which the connection was opened, for the first request on it.
    pub connects: Option<Duration>,
    /// Time at which the request was sent.
    pub sent: Duration,
    /// Time at which the response's headers had arrived, where it is known: otherwise, the wait includes the response.
    pub answered: Option<Duration>,
    /// Time at which the whole response had arrived.
    pub complete: Duration,
}

/// Writes a file with these runs, a page each.
pub fn file(visits: &[Visit]) -> String {
    let pages = visits.iter().enumerate().map(|(number, visit)| visit.page(number)).collect();
    let entries = visits.iter().enumerate().flat_map(|(number, visit)| {
        visit.exchanges.iter().map(move |exchange| exchange.entry(number, visit.began))
    });
    let creator = Creator { name: "roundtrip", version: env!("CARGO_PKG_VERSION") };
    let log = Log { version: "1.2", creator, pages, entries: entries.collect() };
    let text = serde_json::to_string_pretty(&File { log });
    text.expect("numbers, texts and lists can be serialized") + "\n"
}

/// Writes a file with a browser's HARs of one page each, which get ids of their own; without any, with these runs.
pub fn joined(visits: &[Visit], recordings: Vec<Value>) -> String {
    if recordings.is_empty() {
        return file(visits);
    }
    let mut all: Option<Value> = None;
    for (number, mut recording) in recordings.into_iter().enumerate() {
        let log = &mut recording["log"];
        for (list, name) in [("pages", "id"), ("entries", "pageref")] {
            for item in log[list].as_array_mut().into_iter().flatten() {
                item[name] = id(number).into();
            }
        }
        match &mut all {
            None => all = Some(recording),
            Some(all) => {
                for list in ["pages", "entries"] {
                    let more = log[list].as_array_mut().map(std::mem::take).unwrap_or_default();
                    all["log"][list].as_array_mut().into_iter().for_each(|known| known.extend(more.clone()));
                }
            }
        }
    }
    let text = serde_json::to_string_pretty(&all.unwrap_or_default());
    text.expect("numbers, texts and lists can be serialized") + "\n"
}

#[derive(Serialize)]
struct File<'a> {
    log: Log<'a>,
}

#[derive(Serialize)]
struct Log<'a> {
    version: &'static str,
    creator: Creator,
    pages: Vec<Page<'a>>,
    entries: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Creator {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    started_date_time: String,
    id: String,
    title: &'a str,
    page_timings: PageTimings,
    #[serde(rename = "_roundtrip", skip_serializing_if = "Option::is_none")]
    facts: Option<Facts<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageTimings {
    on_load: f64,
}

/// Our own fields.
#[derive(Serialize)]
struct Facts<'a> {
    network: &'a str,
    protocol: &'a str,
    engine: &'a str,
    stack: &'a str,
    packets_up: Option<f64>,
    packets_down: Option<f64>,
    connections: Option<f64>,
    stalls: &'a [Stall],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    pageref: String,
    started_date_time: String,
    time: f64,
    request: Request<'a>,
    response: Response,
    cache: EmptyObject,
    timings: Timings,
    connection: String,
}

#[derive(Serialize)]
struct EmptyObject {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    method: &'a str,
    url: &'a str,
    http_version: &'static str,
    cookies: [EmptyObject; 0],
    headers: [EmptyObject; 0],
    query_string: [EmptyObject; 0],
    headers_size: i64,
    body_size: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    status: u16,
    status_text: &'static str,
    http_version: &'static str,
    cookies: [EmptyObject; 0],
    headers: [EmptyObject; 0],
    content: Content,
    #[serde(rename = "redirectURL")]
    redirect_url: &'static str,
    headers_size: i64,
    body_size: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    size: i64,
    mime_type: &'static str,
}

#[derive(Serialize)]
struct Timings {
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'static str>,
    blocked: f64,
    dns: f64,
    connect: f64,
    send: f64,
    wait: f64,
    receive: f64,
    ssl: f64,
}

/// The format's value for an absent time.
const NONE: f64 = -1.0;

/// The format's value for an unknown size.
fn size(bytes: Option<Bytes>) -> i64 {
    bytes.and_then(|bytes| i64::try_from(bytes.get()).ok()).unwrap_or(-1)
}

impl Visit {
    fn page(&self, number: usize) -> Page<'_> {
        let Self { network, protocol, engine, stack, metrics, stalls, .. } = self;
        let facts = Facts {
            network,
            protocol,
            engine,
            stack,
            packets_up: metrics.packets_up,
            packets_down: metrics.packets_down,
            connections: metrics.connections,
            stalls,
        };
        Page {
            started_date_time: timestamp(self.began),
            id: id(number),
            title: &self.title,
            page_timings: PageTimings {
                on_load: self.load.or(self.elapsed).map_or(NONE, Duration::as_millis_f64),
            },
            facts: Some(facts).filter(|facts| !facts.engine.is_empty()),
        }
    }
}

impl Exchange {
    fn entry(&self, number: usize, began: Duration) -> Entry<'_> {
        let Self {
            method,
            url,
            version,
            request,
            status,
            body,
            mime,
            connection,
            connects,
            sent,
            answered,
            complete,
        } = self;
        let start = connects.unwrap_or(*sent);
        let between = |from: Duration, to: Duration| to.saturating_sub(from).as_millis_f64();
        Entry {
            pageref: id(number),
            started_date_time: timestamp(began + start),
            time: between(start, *complete),
            request: Request {
                method,
                url,
                http_version: version,
                cookies: [],
                headers: [],
                query_string: [],
                headers_size: size(*request),
                body_size: 0,
            },
            response: Response {
                status: status.unwrap_or_default(),
                status_text: "",
                http_version: version,
                cookies: [],
                headers: [],
                content: Content { size: size(*body), mime_type: mime },
                redirect_url: "",
                headers_size: -1,
                body_size: size(*body),
            },
            cache: EmptyObject {},
            timings: Timings {
                comment: answered.is_none().then_some("wait includes the response"),
                blocked: NONE,
                dns: NONE,
                connect: connects.map_or(NONE, |connects| between(connects, *sent)),
                send: 0.0,
                wait: between(*sent, answered.unwrap_or(*complete)),
                receive: answered.map_or(0.0, |answered| between(answered, *complete)),
                ssl: NONE,
            },
            connection: connection.to_string(),
        }
    }
}

fn id(number: usize) -> String {
    format!("page_{}", number + 1)
}

/// ISO 8601 to the millisecond.
fn timestamp(since_1970: Duration) -> String {
    let second = calendar::iso_8601(since_1970);
    format!("{}.{:03}Z", second.trim_end_matches('Z'), since_1970.as_nanos() / 1_000_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_are_those_of_the_format() {
        let ms = Duration::from_millis;
        let exchange = Exchange {
            method: "GET".into(),
            url: "http://server/0".to_owned(),
            version: "HTTP/1.1",
            request: Some(Bytes::new(256)),
            status: Some(200),
            body: Some(Bytes::new(6_651)),
            mime: "text/html",
            connection: 0,
            connects: Some(ms(0)),
            sent: ms(90),
            answered: Some(ms(190)),
            complete: ms(350),
        };
        let visit = Visit {
            title: "t".to_owned(),
            began: ms(867_110_400_005),
            elapsed: Some(ms(350)),
            exchanges: vec![exchange],
            network: "n".to_owned(),
            engine: "simulate",
            ..Visit::default()
        };
        let file: serde_json::Value = serde_json::from_str(&file(&[visit])).unwrap();
        let entry = &file["log"]["entries"][0];
        assert_eq!(entry["startedDateTime"], "1997-06-24T00:00:00.005Z");
        let timings = &entry["timings"];
        assert_eq!(
            [&timings["connect"], &timings["wait"], &timings["receive"]].map(|ms| ms.as_f64().unwrap()),
            [90.0, 100.0, 160.0]
        );
        assert_eq!((&entry["time"], &entry["response"]["bodySize"]), (&350.0.into(), &6_651.into()));
        assert_eq!(file["log"]["pages"][0]["_roundtrip"]["network"], "n");
    }

    #[test]
    fn recordings_are_joined_with_ids_of_their_own() {
        let one = || {
            serde_json::json!({"log": {"version": "1.2", "pages": [{"id": "x"}],
                "entries": [{"pageref": "x"}, {"pageref": "x"}]}})
        };
        let all: Value = serde_json::from_str(&joined(&[], vec![one(), one()])).unwrap();
        let ids = |list: &str, name: &str| {
            let items = all["log"][list].as_array().unwrap();
            items.iter().map(|item| item[name].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids("pages", "id"), [id(0), id(1)]);
        assert_eq!(ids("entries", "pageref"), [id(0), id(0), id(1), id(1)]);
        assert_eq!(joined(&[], Vec::new()), file(&[]));
    }
}
