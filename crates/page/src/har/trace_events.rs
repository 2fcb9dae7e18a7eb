//! Traces of Chromium in JSON: the Performance panel of DevTools, Lighthouse, browsertime, `--trace-startup`.
//!
//! A request is four kinds of events with one id: sent, response, data, finished (`third_party/blink`,
//! `inspector_trace_events.cc`). A redirect is sent again under the same id. They become entries of a HAR, as Chromium's
//! exporter makes them, so that both are read by the same rules; only times are taken from the events, since those of the
//! network stack are more precise than a HAR's. Other events, mostly the work of threads, are skipped unread; and so are the
//! browser's own pages (`chrome:`), of which a trace from the start of the browser has some.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::Duration;

use super::MAX_ENTRIES;
use super::archive::{Archive, RecordedPage, TOO_MANY};
use super::entry::Entry;
use super::phases::{MAX_TIME, Phases};
use super::raw::{Loose, Timings};

/// The list of events.
pub(super) struct Events;

impl<'de> DeserializeSeed<'de> for Events {
    type Value = Archive;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Archive, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events {
    type Value = Archive;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of trace events")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Archive, A::Error> {
        let (mut trace, mut is_protocol) = (Trace::default(), false);
        while let Some(json) = list.next_element::<Box<RawValue>>()? {
            is_protocol |= json.get().contains("\"method\"") && json.get().contains("\"Network.");
            if READ.iter().any(|name| json.get().contains(name)) {
                trace.read(json.get());
            }
            if trace.requests.len() + trace.ended.len() > MAX_ENTRIES {
                return Err(serde::de::Error::custom(TOO_MANY));
            }
        }
        match trace.into_archive() {
            archive if archive.entries.is_empty() && is_protocol => Err(serde::de::Error::custom(
                "messages of the DevTools protocol, of which chrome-har makes one",
            )),
            archive => Ok(archive),
        }
    }
}

/// Times of events are below this, in microseconds: thirty years.
const MAX_TS: f64 = 1e15;

/// Parts of the names of events that are read.
const READ: [&str; 4] = ["\"Resource", "\"MarkLoad\"", "\"MarkDOMContent\"", "\"navigationStart\""];

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    /// Microseconds of a monotonic clock.
    ts: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Default, Deserialize)]
struct Args {
    #[serde(default)]
    data: Loose<Data>,
    #[serde(default)]
    frame: Loose<String>,
}

/// Members of the events that are used.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    #[serde(default)]
    request_id: Loose<String>,
    #[serde(default)]
    frame: Loose<String>,
    #[serde(default)]
    url: Loose<String>,
    #[serde(default)]
    request_method: Loose<String>,
    #[serde(default)]
    priority: Loose<String>,
    #[serde(default)]
    render_blocking: Loose<String>,
    #[serde(default)]
    resource_type: Loose<String>,
    #[serde(default)]
    initiator: Loose<Caller>,
    #[serde(default)]
    stack_trace: Loose<Vec<Caller>>,
    #[serde(default)]
    status_code: Loose<i64>,
    #[serde(default)]
    mime_type: Loose<String>,
    #[serde(default)]
    protocol: Loose<String>,
    #[serde(default)]
    connection_id: Loose<i64>,
    #[serde(default)]
    from_cache: Loose<bool>,
    #[serde(default)]
    from_service_worker: Loose<bool>,
    #[serde(default)]
    headers: Loose<Vec<Header>>,
    #[serde(default)]
    timing: Loose<Timing>,
    /// Of a response, its headers; of data, their bytes; at the end, all bytes.
    #[serde(default)]
    encoded_data_length: Loose<f64>,
    #[serde(default)]
    decoded_body_length: Loose<f64>,
    #[serde(default)]
    did_fail: Loose<bool>,
    /// Seconds of the same clock.
    #[serde(default)]
    finish_time: Loose<f64>,
    #[serde(default)]
    is_main_frame: Loose<bool>,
    #[serde(default)]
    is_outermost_main_frame: Loose<bool>,
    #[serde(default)]
    is_loading_main_frame: Loose<bool>,
    #[serde(rename = "documentLoaderURL", default)]
    document_url: Loose<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Caller {
    #[serde(default)]
    url: Loose<String>,
    #[serde(rename = "type", default)]
    kind: Loose<String>,
    #[serde(default)]
    line_number: Loose<f64>,
    #[serde(default)]
    column_number: Loose<f64>,
    /// Kind of the request: `link`, `img`, `fetch`, `xmlhttprequest`, ...
    #[serde(default)]
    fetch_type: Loose<String>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

/// Times of the network stack: seconds of the clock, and milliseconds from there; -1 where they do not apply.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timing {
    request_time: f64,
    #[serde(default = "none")]
    dns_start: f64,
    #[serde(default = "none")]
    dns_end: f64,
    #[serde(default = "none")]
    connect_start: f64,
    #[serde(default = "none")]
    connect_end: f64,
    #[serde(default = "none")]
    ssl_start: f64,
    #[serde(default = "none")]
    ssl_end: f64,
    #[serde(default = "none")]
    send_start: f64,
    #[serde(default = "none")]
    send_end: f64,
    #[serde(default = "none")]
    receive_headers_start: f64,
    #[serde(default = "none")]
    receive_headers_end: f64,
}

const fn none() -> f64 {
    -1.0
}

/// A request of the trace. Times are microseconds.
struct Request {
    /// Order in which requests began.
    number: usize,
    start: f64,
    sent: Data,
    response: Option<(f64, Data)>,
    /// Time of the last part of the body.
    last_part: Option<f64>,
    received: f64,
    finish: Option<(f64, Data)>,
    is_in_memory: bool,
    /// Target, if it was redirected.
    redirect: Option<String>,
}

/// An event of a main frame.
struct FrameEvent {
    at: f64,
    frame: Option<String>,
}

/// State while events are read.
#[derive(Default)]
struct Trace {
    requests: BTreeMap<String, Request>,
    /// Times at which the browser began requests, and each of their redirects, before the event that they are sent.
    begun: BTreeMap<String, VecDeque<f64>>,
    ended: Vec<Request>,
    navigations: Vec<FrameEvent>,
    /// Events `DOMContentLoaded` and `load` of main frames.
    content_loaded: Vec<FrameEvent>,
    load: Vec<FrameEvent>,
    /// Frames of the browser's own pages.
    internal: BTreeSet<String>,
    count: usize,
    archive: Archive,
}

impl Trace {
    fn read(&mut self, json: &str) {
        let (name, ts, data) = match serde_json::from_str(json) {
            Ok(Event { name, ts, args: Args { data: Loose(Some(mut data)), frame } })
                if (0.0..MAX_TS).contains(&ts) =>
            {
                data.frame = Loose(data.frame.0.or(frame.0));
                (name, ts, data)
            }
            Ok(Event { name, ts, .. }) if name == "ResourceSendRequest" => {
                let error = serde::de::Error::custom(format!("no data, or a time out of range: {ts}"));
                return self.archive.odd.add(self.count + 1, &error);
            }
            // Others have one of these names in their arguments, and may be of any form.
            Err(error) if json.contains("\"ResourceSendRequest\"") => {
                return self.archive.odd.add(self.count + 1, &error);
            }
            Ok(_) | Err(_) => return,
        };
        let is_main = || {
            data.is_outermost_main_frame.or(data.is_main_frame.0).or(data.is_loading_main_frame.0)
                == Some(true)
        };
        match name.as_ref() {
            "navigationStart" if is_main() && data.document_url.as_deref().is_some_and(is_http) => {
                self.navigations.push(FrameEvent { at: ts, frame: data.frame.0 });
            }
            "MarkDOMContent" if is_main() => {
                self.content_loaded.push(FrameEvent { at: ts, frame: data.frame.0 })
            }
            "MarkLoad" if is_main() => self.load.push(FrameEvent { at: ts, frame: data.frame.0 }),
            _ => self.of_request(&name, ts, data),
        }
    }

    fn of_request(&mut self, name: &str, ts: f64, mut data: Data) {
        let Some(id) = data.request_id.take() else { return };
        match name {
            "ResourceWillSendRequest" if self.begun.len() <= MAX_ENTRIES => {
                self.begun.entry(id).or_default().push_back(ts);
            }
            "ResourceSendRequest" => self.send(id, ts, data),
            "ResourceReceiveResponse" => {
                if let Some(request) = self.requests.get_mut(&id) {
                    let offers = |header: &Header| header.name.eq_ignore_ascii_case("alt-svc");
                    data.headers.iter_mut().for_each(|headers| headers.retain(offers));
                    request.response = Some((ts, data));
                }
            }
            "ResourceReceivedData" => {
                if let Some(request) = self.requests.get_mut(&id) {
                    request.last_part = Some(ts);
                    request.received += data.encoded_data_length.unwrap_or(0.0);
                }
            }
            "ResourceFinish" => {
                if let Some(request) = self.requests.get_mut(&id) {
                    request.finish = Some((ts, data));
                }
            }
            "ResourceMarkAsCached" => {
                if let Some(request) = self.requests.get_mut(&id) {
                    request.is_in_memory = true;
                }
            }
            _ => {}
        }
    }

    fn send(&mut self, id: String, ts: f64, mut sent: Data) {
        let start = self.begun.get_mut(&id).and_then(VecDeque::pop_front).unwrap_or(ts);
        let url = sent.url.get_or_insert_default();
        if !is_http(url) {
            if let (Some(frame), true) = (&sent.frame.0, url.starts_with("chrome")) {
                self.internal.insert(frame.clone());
            }
            // Those may be as long as a body.
            *url = url.chars().take(MAX_OTHER_URL_CHARS).collect();
        }
        self.count += 1;
        let url = sent.url.0.clone();
        let request = Request {
            number: self.count,
            start,
            sent,
            response: None,
            last_part: None,
            received: 0.0,
            finish: None,
            is_in_memory: false,
            redirect: None,
        };
        // Events of one id are a request and its redirects; after its end, another request.
        if let Some(before) = self.requests.insert(id, request) {
            let is_redirect = before.finish.is_none();
            let redirect = url.filter(|_| is_redirect);
            let finish = if is_redirect { Some((start, Data::default())) } else { before.finish };
            self.ended.push(Request { redirect, finish, ..before });
        }
    }

    fn into_archive(self) -> Archive {
        let Self {
            requests, mut ended, mut navigations, content_loaded, load, internal, mut archive, ..
        } = self;
        ended.extend(requests.into_values());
        ended.retain(|request| !request.sent.frame.as_ref().is_some_and(|frame| internal.contains(frame)));
        ended.sort_by_key(|request| request.number);
        navigations.sort_by(|one, other| one.at.total_cmp(&other.at));
        for request in ended {
            let page =
                navigations.partition_point(|navigation| navigation.at <= request.start).saturating_sub(1);
            match request.entry(page.to_string()) {
                Ok(entry) => archive.entries.push(entry),
                Err(error) => archive.odd.add(request.number, &error),
            }
        }
        let page = |(index, FrameEvent { at: start, frame }): (usize, &FrameEvent)| {
            let end = navigations.get(index + 1).map_or(f64::INFINITY, |next| next.at);
            let event = |events: &[FrameEvent]| {
                let own = events
                    .iter()
                    .filter(|event| event.frame == *frame && event.at > *start && event.at < end);
                own.map(|event| between(*start, event.at)).min()
            };
            RecordedPage {
                id: Some(index.to_string()),
                start: Some(nanos(*start)),
                content_loaded: event(&content_loaded),
                load: event(&load),
            }
        };
        archive.pages = navigations.iter().enumerate().map(page).collect();
        archive
    }
}

/// Characters that are kept of a URL of another scheme than http.
const MAX_OTHER_URL_CHARS: usize = 64;

fn is_http(url: &str) -> bool {
    ["http:", "https:", "ws:", "wss:"].iter().any(|scheme| url.starts_with(scheme))
}

impl Request {
    /// The request as an entry of a HAR, of this page.
    fn entry(&self, page: String) -> serde_json::Result<Entry> {
        let mut entry = Entry::of_sizes(&self.har().to_string())?;
        entry.page = Some(page);
        entry.phases = Phases { start: Some(nanos(self.start)), ..self.phases() };
        Ok(entry)
    }

    /// Its members as Chromium exports them.
    fn har(&self) -> Value {
        let Self { sent, response, finish, .. } = self;
        let empty = Data::default();
        let response = response.as_ref().map(|(_, response)| response);
        let is_cached =
            self.is_in_memory || response.is_some_and(|response| response.from_cache.0 == Some(true));
        let finish = finish.as_ref().map_or(&empty, |(_, finish)| finish);
        let status = match (&self.redirect, response) {
            // The response to a redirected request is not an event.
            (Some(_), _) => REDIRECT,
            (None, Some(response)) => response.status_code.filter(|code| *code > 0).unwrap_or(200),
            // From memory, without the network.
            (None, None) if is_cached && finish.did_fail.0 != Some(true) => 200,
            (None, None) => 0,
        };
        let response = response.unwrap_or(&empty);
        let headers = response.headers.iter().flatten();
        let headers = headers.map(|Header { name, value }| json!({"name": name, "value": value}));
        let head = response.encoded_data_length.unwrap_or(0.0).max(0.0);
        let transferred = finish.encoded_data_length.unwrap_or(head + self.received);
        // Images are counted without their headers.
        let body =
            if finish.decoded_body_length.0 == Some(transferred) { transferred } else { transferred - head };
        let initiator = sent.initiator.as_ref();
        let fetch_type = initiator.and_then(|initiator| initiator.fetch_type.as_deref());
        let resource_type = match fetch_type {
            // The resource's type is `Other`.
            Some("fetch") => Some("fetch"),
            Some("xmlhttprequest") => Some("xhr"),
            Some("beacon") => Some("beacon"),
            _ => sent.resource_type.as_deref(),
        };
        let frames = sent.stack_trace.iter().flatten().map(|caller| json!({"url": *caller.url}));
        let mut entry = json!({
            "request": {"url": *sent.url, "method": *sent.request_method},
            "response": {
                "status": status,
                "httpVersion": *response.protocol,
                "redirectURL": self.redirect,
                "headers": headers.collect::<Value>(),
                "content": {"size": *finish.decoded_body_length, "mimeType": *response.mime_type},
                // Fields of HTTP/2 and HTTP/3 are compressed, so their size is not that of headers.
                "bodySize": body.max(0.0),
            },
            "_priority": *sent.priority,
            "_renderBlocking": *sent.render_blocking,
            "_resourceType": resource_type,
            "_initiator": {
                "type": initiator.and_then(|initiator| initiator.kind.as_ref()),
                "url": initiator.and_then(|initiator| initiator.url.as_ref()),
                "lineNumber": initiator.and_then(|initiator| initiator.line_number.0),
                "columnNumber": initiator.and_then(|initiator| initiator.column_number.0),
                "stack": {"callFrames": frames.collect::<Value>()},
            },
            "_fetchedViaServiceWorker": *response.from_service_worker,
            "connection": *response.connection_id,
        });
        if is_cached {
            entry["_fromCache"] = json!("memory");
        }
        entry
    }

    fn phases(&self) -> Phases {
        let Self { start, response, last_part, finish, .. } = self;
        let response_at = response.as_ref().map(|(at, _)| *at);
        let finish = finish
            .as_ref()
            .map(|(at, finish)| finish.finish_time.filter(|time| *time > 0.0).map_or(*at, |time| time * 1e6));
        let end = finish.or(*last_part).or(response_at).unwrap_or(*start);
        let millis = |from: f64, to: f64| ((to - from) / 1e3).max(0.0);
        let timing = response.as_ref().and_then(|(_, response)| response.timing.0);
        let timings = match timing {
            Some(timing) if timing.request_time > 0.0 && timing.send_end >= 0.0 => {
                let at = |offset: f64| timing.request_time * 1e6 + offset * 1e3;
                let first_byte = Some(timing.receive_headers_start).filter(|time| *time > 0.0);
                let first_byte = at(first_byte.unwrap_or(timing.receive_headers_end));
                let phase = |from: f64, to: f64| (from >= 0.0 && to >= from).then_some(to - from);
                let dns = phase(timing.dns_start, timing.dns_end);
                let connect = phase(timing.connect_start, timing.connect_end);
                let send = phase(timing.send_start, timing.send_end);
                let known: f64 = [dns, connect, send].into_iter().flatten().sum();
                Timings {
                    blocked: Loose(Some((millis(*start, at(timing.send_end)) - known).max(0.0))),
                    dns: Loose(dns),
                    connect: Loose(connect),
                    ssl: Loose(phase(timing.ssl_start, timing.ssl_end)),
                    send: Loose(send),
                    wait: Loose(Some(millis(at(timing.send_end), first_byte))),
                    receive: Loose(Some(millis(first_byte, end))),
                    queued: Loose(None),
                }
            }
            Some(_) | None => {
                let first_byte = response_at.unwrap_or(end);
                let (wait, receive) = (millis(*start, first_byte), millis(first_byte, end));
                Timings { wait: Loose(Some(wait)), receive: Loose(Some(receive)), ..Timings::default() }
            }
        };
        Phases::of(None, Some(millis(*start, end)), Some(timings))
    }
}

/// Status of a redirected request.
const REDIRECT: i64 = 302;

/// Nanoseconds of a time in microseconds.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which is bounded later")]
fn nanos(micros: f64) -> i64 {
    (micros * 1e3) as i64
}

fn between(from: f64, to: f64) -> Duration {
    Duration::from_secs_f64((to - from) / 1e6).unwrap_or_default().min(MAX_TIME)
}

#[cfg(test)]
mod tests {
    use super::super::pages;
    use crate::{Dependency, Kind, Moment, Page};
    use wire::{Bytes, Duration};

    /// An event at a time in milliseconds of the trace's clock.
    fn event(name: &str, ms: u64, data: &str) -> String {
        format!(
            r#"{{"name":"{name}","cat":"devtools.timeline","ph":"I","pid":1,"tid":1,"ts":{},"args":{{"data":{{{data}}}}}}}"#,
            ms * 1_000
        )
    }

    /// A request that is sent at once, whose connection is open, and that waits 30 ms for its response.
    fn request(id: &str, at: u64, sent: &str, response: &str, end: u64) -> Vec<String> {
        let id = format!(r#""requestId":"{id}""#);
        // The clock in seconds, and milliseconds from there.
        let seconds = at as f64 / 1e3;
        let timing = format!(
            r#""timing":{{"requestTime":{seconds},"dnsStart":-1,"dnsEnd":-1,"connectStart":-1,"connectEnd":-1,"sslStart":-1,"sslEnd":-1,"sendStart":1,"sendEnd":2,"receiveHeadersStart":32,"receiveHeadersEnd":33}}"#
        );
        vec![
            event("ResourceWillSendRequest", at, &id),
            event("ResourceSendRequest", at, &format!(r#"{id},"requestMethod":"GET",{sent}"#)),
            event(
                "ResourceReceiveResponse",
                at + 35,
                &format!(
                    r#"{id},"statusCode":200,"protocol":"h2","encodedDataLength":120,"connectionId":7,{response}{timing}"#
                ),
            ),
            event("ResourceReceivedData", end, &format!(r#"{id},"encodedDataLength":4000"#)),
            event(
                "ResourceFinish",
                end + 1,
                &format!(
                    r#"{id},"encodedDataLength":4120,"decodedBodyLength":9000,"didFail":false,"finishTime":{}"#,
                    end as f64 / 1e3
                ),
            ),
        ]
    }

    fn page(events: &[Vec<String>]) -> Page {
        let text = format!(r#"{{"metadata":{{}},"traceEvents":[{}]}}"#, events.concat().join(","));
        let mut pages = pages("trace", text.as_bytes()).unwrap();
        assert_eq!(pages.len(), 1);
        pages.remove(0)
    }

    const DOCUMENT: &str =
        r#""url":"https://www.example.com/","resourceType":"Document","priority":"VeryHigh""#;

    #[test]
    fn requests_of_a_trace_are_objects_with_their_sizes_initiators_and_times() {
        let style = r#""url":"https://www.example.com/a.css","resourceType":"Stylesheet","priority":"VeryHigh","renderBlocking":"blocking","initiator":{"type":"parser","url":"https://www.example.com/"}"#;
        let font = r#""url":"https://cdn.example.com/b.woff2","resourceType":"Font","priority":"VeryHigh","initiator":{"type":"css","url":"https://www.example.com/a.css"}"#;
        let work = vec![r#"{"name":"RunTask","ph":"X","ts":5,"dur":9,"args":{"x":"Resource"}}"#.to_owned()];
        let page = page(&[
            work,
            request("a", 1_000, DOCUMENT, "", 1_100),
            request("b", 1_110, style, "", 1_200),
            request("c", 1_260, font, r#""headers":[{"name":"Alt-Svc","value":"h3=\":443\""}],"#, 1_400),
            vec![event("MarkLoad", 1_450, r#""isOutermostMainFrame":true"#)],
        ]);
        let kinds: Vec<Kind> = page.objects.iter().map(|object| object.kind).collect();
        assert_eq!(kinds, [Kind::Document, Kind::StyleSheet, Kind::Font]);
        assert!(page.objects.iter().all(|object| object.size == Bytes::new(4_000)), "{:?}", page.objects);
        let ended = |on, plus| vec![Dependency { on, at: Moment::Ended, plus: Duration::from_millis(plus) }];
        assert_eq!([&page.objects[1].after, &page.objects[2].after], [&ended(0, 10), &ended(1, 60)]);
        assert!(page.objects[1].is_render_blocking);
        let offers: Vec<(bool, bool)> =
            page.hosts.iter().map(|host| (host.protocols.http2, host.protocols.http3)).collect();
        assert_eq!(offers, [(true, false), (true, true)]);
        assert_eq!(page.hosts[0].address_group, page.hosts[1].address_group, "one connection for both");
        // Without a handshake the distance is unknown: all of the wait is the server's.
        assert_eq!(page.objects[0].processing, Some(Duration::from_millis(30)));
        assert_eq!(page.recorded.unwrap().last_end, Some(Duration::from_millis(400)));
    }

    #[test]
    fn handshakes_give_the_distance_of_a_host() {
        let mut events = request("a", 1_000, DOCUMENT, "", 1_200);
        events[2] = events[2]
            .replace(
                r#""connectStart":-1,"connectEnd":-1,"sslStart":-1,"sslEnd":-1,"sendStart":1,"sendEnd":2"#,
                r#""connectStart":5,"connectEnd":45,"sslStart":25,"sslEnd":45,"sendStart":46,"sendEnd":47"#,
            )
            .replace(
                r#""receiveHeadersStart":32,"receiveHeadersEnd":33"#,
                r#""receiveHeadersStart":97,"receiveHeadersEnd":98"#,
            );
        // 20 ms for TCP, and 50 until the first byte.
        assert_eq!(page(&[events]).objects[0].processing, Some(Duration::from_millis(30)));
    }

    #[test]
    fn messages_of_the_devtools_protocol_are_refused_with_the_remedy() {
        let text = r#"[{"method":"Page.loadEventFired","params":{}},{"method":"Network.requestWillBeSent","params":{}}]"#;
        let error = crate::har::pages("visit", text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("chrome-har"), "{error}");
    }

    #[test]
    fn redirects_caches_and_failures_are_what_they_are_in_a_har() {
        let redirected = vec![
            // A document's events come when it is committed.
            event("ResourceWillSendRequest", 1_000, r#""requestId":"a""#),
            event("ResourceWillSendRequest", 1_050, r#""requestId":"a""#),
            event(
                "ResourceSendRequest",
                1_090,
                r#""requestId":"a","url":"http://example.com/","resourceType":"Document""#,
            ),
        ];
        let cached = [
            event("ResourceSendRequest", 1_300, r#""requestId":"m","url":"https://www.example.com/m.png""#),
            event("ResourceMarkAsCached", 1_301, r#""requestId":"m""#),
            event("ResourceFinish", 1_302, r#""requestId":"m","didFail":false"#),
        ];
        let failed = [
            event("ResourceSendRequest", 1_310, r#""requestId":"f","url":"https://www.example.com/f.png""#),
            event("ResourceFinish", 1_350, r#""requestId":"f","didFail":true"#),
        ];
        let inline =
            [event("ResourceSendRequest", 1_320, r#""requestId":"d","url":"data:image/gif;base64,AAAA""#)];
        let target = request("a", 1_050, DOCUMENT, "", 1_200);
        let page =
            page(&[redirected, target[1..].to_vec(), cached.to_vec(), failed.to_vec(), inline.to_vec()]);
        let hosts: Vec<&str> = page.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(hosts, ["example.com", "www.example.com"]);
        assert_eq!(page.objects[1].after, [Dependency::on_end(0)]);
        assert_eq!(page.objects[0].processing, Some(Duration::from_millis(50)));
        assert!(
            page.notes[1].starts_with("2 of 5 entries are fetched, from 2 hosts; 1 without a body")
                && page.notes[1].contains("1 from the browser's cache")
                && page.notes[1].contains("1 not fetched by HTTP")
                && page.notes[1].contains("1 without a response"),
            "{}",
            page.notes[1]
        );
    }

    #[test]
    fn navigations_of_the_main_frame_are_pages() {
        let navigation = |ms, url: &str| {
            event("navigationStart", ms, &format!(r#""isLoadingMainFrame":true,"documentLoaderURL":"{url}""#))
                .replace(r#""args":{"#, r#""args":{"frame":"F","#)
        };
        let second = DOCUMENT.replace("www", "shop");
        let events = [
            vec![navigation(10, "about:blank"), navigation(990, "https://www.example.com/")],
            request("a", 1_000, DOCUMENT, "", 1_100),
            vec![
                event("MarkLoad", 1_120, r#""isMainFrame":false,"frame":"F""#),
                event("MarkLoad", 1_130, r#""isMainFrame":true,"frame":"G""#),
                event("MarkLoad", 1_150, r#""isMainFrame":true,"frame":"F""#),
            ],
            // Pages of the browser itself.
            vec![
                event(
                    "ResourceSendRequest",
                    1_010,
                    r#""requestId":"n","frame":"G","url":"chrome://newtab/""#,
                ),
                event(
                    "ResourceSendRequest",
                    1_020,
                    r#""requestId":"o","frame":"G","url":"data:image/png;base64,AA""#,
                ),
            ],
            vec![navigation(5_000, "https://shop.example.com/")],
            request("b", 5_001, &second, "", 5_100),
        ];
        // The list alone is a trace, too.
        let pages = pages("trace", format!("[{}]", events.concat().join(",")).as_bytes()).unwrap();
        let found: Vec<_> =
            pages.iter().map(|page| (page.name.as_str(), page.hosts[0].name.as_str())).collect();
        assert_eq!(found, [("trace#1", "www.example.com"), ("trace#2", "shop.example.com")]);
        let load = pages[0].recorded.unwrap().load;
        assert_eq!(load, Some(Duration::from_millis(160)));
        assert!(pages.iter().all(|page| page.objects.len() == 1), "the browser's own are left out");
    }

    #[test]
    fn odd_events_are_counted_or_skipped_and_no_events_are_refused() {
        let odd = vec![
            r#"{"name":"ResourceSendRequest","ts":"soon","args":{}}"#.to_owned(),
            r#"{"name":"ResourceFinish","ts":[],"args":7}"#.to_owned(),
            r#"{"name":"ResourceSendRequest","ts":-1e300,"args":{"data":{"requestId":"x","url":7}}}"#
                .to_owned(),
            "null".to_owned(),
        ];
        let page = page(&[odd, request("a", 1_000, DOCUMENT, "", 1_100)]);
        assert!(page.notes[1].contains("left out: 2 unreadable (number 1: "), "{}", page.notes[1]);
        let error = |text: &str| pages("trace", text.as_bytes()).unwrap_err().to_string();
        assert!(error(r#"{"traceEvents":[]}"#).starts_with("nothing in it came over the network"));
        assert!(
            error(r#"{"traceEvents":7}"#)
                .starts_with("not a HAR: invalid type: integer `7`, expected a list of trace events")
        );
    }
}
