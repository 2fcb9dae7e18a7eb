//! A browser's network events as records of requests, and as a HAR with the members that DevTools writes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::{Duration, calendar};

/// A browser's record of a page. Times are from the start of the document's request.
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserRecord {
    /// Time of the event `load`.
    pub load: Duration,
    /// Time of the last end of a response, which may be after `load`.
    pub last_end: Duration,
    /// Times of each response, in the order of the requests.
    pub objects: Vec<BrowserObject>,
    /// The visit as a HAR.
    pub har: Value,
    /// Its trace, if one was requested ([`Options::has_trace`](crate::Options::has_trace)).
    pub trace: Option<BrowserTrace>,
}

/// A visit as Lighthouse gathers it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrowserTrace {
    /// Events of DevTools' domains Network and Page, in their order.
    pub messages: Vec<Value>,
    /// Events of the trace, in Chromium's trace event format.
    pub events: Vec<Value>,
}

/// Times of a request and its response, from the start of the document's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserObject {
    /// Its URL.
    pub url: String,
    /// Moment at which the request was passed to a connection.
    pub sent: Duration,
    /// Moment at which the response's header section had arrived.
    pub first_byte: Duration,
    /// Moment of the last byte.
    pub end: Duration,
}

/// Requests of a page, and its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording {
    /// By the browser's id.
    requests: BTreeMap<String, Request>,
    /// Ids in the order of the requests.
    order: Vec<String>,
    /// Times of the events, in the browser's seconds.
    content_loaded: Option<f64>,
    load: Option<f64>,
    /// Contents of the trace, if one is recorded.
    pub(crate) trace: Option<BrowserTrace>,
}

/// A request. Times are in the browser's seconds.
#[derive(Clone, Debug, Default)]
struct Request {
    url: String,
    method: String,
    priority: String,
    kind: String,
    initiator: Value,
    /// Start.
    issued: f64,
    /// Start, since 1970.
    wall: f64,
    request_fields: Value,
    /// The response's object.
    response: Option<Value>,
    /// Bytes of the body.
    body: u64,
    /// Bytes of the response as transferred.
    transferred: f64,
    ended: Option<f64>,
    failure: Option<String>,
}

impl Recording {
    /// Adds an event; others than those of the network and the page are ignored.
    pub(super) fn add(&mut self, message: &Value) {
        if let Some(trace) = &mut self.trace {
            trace.messages.push(message.clone());
        }
        let parameters = &message["params"];
        let time = parameters["timestamp"].as_f64();
        match message["method"].as_str().unwrap_or_default() {
            "Page.domContentEventFired" => self.content_loaded = self.content_loaded.or(time),
            "Page.loadEventFired" => self.load = self.load.or(time),
            "Network.requestWillBeSent" => self.begin(parameters),
            method => {
                let Some(request) = parameters["requestId"].as_str().and_then(|id| self.requests.get_mut(id))
                else {
                    return;
                };
                match method {
                    "Network.requestWillBeSentExtraInfo" => {
                        request.request_fields = parameters["headers"].clone();
                    }
                    "Network.responseReceived" => {
                        request.response = Some(parameters["response"].clone());
                        if let Some(kind) = parameters["type"].as_str() {
                            kind.clone_into(&mut request.kind);
                        }
                    }
                    "Network.dataReceived" => {
                        request.body += parameters["dataLength"].as_u64().unwrap_or(0);
                    }
                    "Network.resourceChangedPriority" => {
                        parameters["newPriority"]
                            .as_str()
                            .unwrap_or_default()
                            .clone_into(&mut request.priority);
                    }
                    "Network.loadingFinished" => {
                        request.ended = time;
                        request.transferred = parameters["encodedDataLength"].as_f64().unwrap_or(0.0);
                    }
                    "Network.loadingFailed" => {
                        request.ended = time;
                        let reason = parameters["errorText"].as_str().filter(|text| !text.is_empty());
                        request.failure = Some(reason.unwrap_or("it was cancelled").to_owned());
                    }
                    _ => {}
                }
            }
        }
    }

    fn begin(&mut self, parameters: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, request) = (text(&parameters["requestId"]), &parameters["request"]);
        let url = text(&request["url"]);
        // Without the network: `data:` and others.
        if !url.starts_with("http") {
            return;
        }
        let begun = Request {
            url,
            method: text(&request["method"]),
            priority: text(&request["initialPriority"]),
            kind: text(&parameters["type"]),
            initiator: parameters["initiator"].clone(),
            issued: parameters["timestamp"].as_f64().unwrap_or(0.0),
            wall: parameters["wallTime"].as_f64().unwrap_or(0.0),
            request_fields: request["headers"].clone(),
            ..Request::default()
        };
        if self.requests.insert(id.clone(), begun).is_none() {
            self.order.push(id);
        }
    }

    /// Whether the event `load` has happened, and no request is in flight.
    pub(super) fn is_quiet(&self) -> bool {
        self.load.is_some() && self.requests.values().all(|request| request.ended.is_some())
    }

    /// Number of requests that have ended, by URL.
    pub(crate) fn ended(&self) -> BTreeMap<&str, usize> {
        let mut ended = BTreeMap::new();
        for request in self.requests.values().filter(|request| request.ended.is_some()) {
            *ended.entry(request.url.as_str()).or_default() += 1;
        }
        ended
    }

    /// The first request that failed, has another status than 200, or came by another protocol than `protocol`; in a sentence.
    pub(crate) fn fault(&self, protocol: &str) -> Option<String> {
        self.in_order().find_map(|request| {
            let Request { url, failure, response, .. } = request;
            if let Some(reason) = failure {
                return Some(format!("{url}: {reason}"));
            }
            let response = response.as_ref()?;
            let (status, found) =
                (response["status"].as_u64(), response["protocol"].as_str().unwrap_or_default());
            match status {
                Some(200) if found == protocol => None,
                Some(200) => Some(format!("{url} came by {found}, not by {protocol}")),
                status => Some(format!("{url}: status {}", status.unwrap_or(0))),
            }
        })
    }

    fn in_order(&self) -> impl Iterator<Item = &Request> {
        self.order.iter().filter_map(|id| self.requests.get(id))
    }

    /// Time from the start of the document's request to the event `load`.
    pub(crate) fn load(&self) -> Option<Duration> {
        self.since_start(self.load?)
    }

    /// Time from the start of the document's request to the last end of a response.
    pub(crate) fn last_end(&self) -> Option<Duration> {
        let ends = self.requests.values().filter_map(|request| request.ended);
        self.since_start(ends.max_by(f64::total_cmp)?)
    }

    /// Times of each request that has a response.
    pub(crate) fn objects(&self) -> Vec<BrowserObject> {
        let object = |request: &Request| {
            let timing = &request.response.as_ref()?["timing"];
            let base = timing["requestTime"].as_f64()?;
            let moment = |name: &str| self.since_start(base + timing[name].as_f64()? / 1e3);
            let (sent, first_byte) = (moment("sendEnd")?, moment("receiveHeadersEnd")?);
            let end = self.since_start(request.ended?)?;
            Some(BrowserObject { url: request.url.clone(), sent, first_byte, end })
        };
        self.in_order().filter_map(object).collect()
    }

    fn since_start(&self, time: f64) -> Option<Duration> {
        let first = self.in_order().next()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        let nanos = ((time - first.issued) * 1e9).round() as u64;
        Some(Duration::from_nanos(nanos))
    }

    /// A HAR of this page.
    pub(crate) fn har(&self, title: &str) -> Value {
        let first = self.in_order().next();
        let event =
            |time: Option<f64>| time.and_then(|time| self.since_start(time)).map(Duration::as_millis_f64);
        let page = json!({
            "startedDateTime": date(first.map_or(0.0, |first| first.wall)),
            "id": "page_1",
            "title": title,
            "pageTimings": {"onContentLoad": event(self.content_loaded), "onLoad": event(self.load)},
        });
        let entries: Vec<Value> = self.in_order().map(Request::entry).collect();
        let creator = json!({"name": "roundtrip", "version": env!("CARGO_PKG_VERSION")});
        json!({"log": {"version": "1.2", "creator": creator, "pages": [page], "entries": entries}})
    }
}

fn date(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
    let micros = (seconds * 1e6).round() as u64;
    let second = calendar::iso_8601(Duration::from_micros(micros));
    format!("{}.{:06}Z", second.trim_end_matches('Z'), micros % 1_000_000)
}

impl Request {
    fn entry(&self) -> Value {
        let none = Value::Null;
        let response = self.response.as_ref().unwrap_or(&none);
        let version = response["protocol"].as_str().unwrap_or_default();
        let body = self.body;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        let transferred = self.transferred as u64;
        // In HTTP/2 the size of a header section is that of frames, which are compressed.
        let is_text = version.starts_with("http/1");
        let head = is_text.then(|| transferred.saturating_sub(body));
        let phases = self.phases();
        let time: f64 = ["blocked", "dns", "connect", "send", "wait", "receive"]
            .iter()
            .filter_map(|name| phases[*name].as_f64())
            .filter(|time| *time > 0.0)
            .sum();
        json!({
            "pageref": "page_1",
            "startedDateTime": date(self.wall),
            "time": time,
            "request": {
                "method": self.method,
                "url": self.url,
                "httpVersion": version,
                "headers": fields(&self.request_fields),
                "queryString": [],
                "cookies": [],
                "headersSize": if is_text { json!(self.request_head_bytes()) } else { json!(-1) },
                "bodySize": 0,
            },
            "response": {
                "status": response["status"].as_u64().unwrap_or(0),
                "statusText": response["statusText"].as_str().unwrap_or_default(),
                "httpVersion": version,
                "headers": fields(&response["headers"]),
                "cookies": [],
                "content": {"size": body, "mimeType": response["mimeType"].as_str().unwrap_or_default()},
                "redirectURL": "",
                "headersSize": head.map_or(json!(-1), Value::from),
                "bodySize": body,
                "_transferSize": transferred,
                "_error": self.failure,
            },
            "cache": {},
            "timings": phases,
            "serverIPAddress": response["remoteIPAddress"].as_str().unwrap_or_default(),
            "connection": response["connectionId"].as_u64().map(|id| id.to_string()),
            "_initiator": self.initiator,
            "_priority": self.priority,
            "_resourceType": self.kind.to_ascii_lowercase(),
        })
    }

    /// Bytes of the request's header section in HTTP/1's form.
    fn request_head_bytes(&self) -> usize {
        let path = self.url.splitn(4, '/').nth(3).unwrap_or_default();
        let lines = self.request_fields.as_object().into_iter().flatten();
        let lines: usize =
            lines.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len) + 4).sum();
        self.method.len() + 1 + "/".len() + path.len() + " HTTP/1.1\r\n".len() + lines + 2
    }

    /// Phases in milliseconds, as in a HAR: -1 where they do not apply.
    fn phases(&self) -> Value {
        let timing = self.response.as_ref().map(|response| &response["timing"]);
        let moment =
            |name: &str| timing.and_then(|timing| timing[name].as_f64()).filter(|moment| *moment >= 0.0);
        let base = timing.and_then(|timing| timing["requestTime"].as_f64()).unwrap_or(self.issued);
        let ended = self.ended.map_or(0.0, |ended| (ended - base) * 1e3);
        let span =
            |from: Option<f64>, to: Option<f64>| from.zip(to).map_or(-1.0, |(from, to)| (to - from).max(0.0));
        let queued = ((base - self.issued) * 1e3).max(0.0);
        let first = ["dnsStart", "connectStart", "sendStart"].iter().find_map(|name| moment(name));
        let head = moment("receiveHeadersEnd");
        json!({
            "blocked": queued + first.unwrap_or(0.0),
            "dns": span(moment("dnsStart"), moment("dnsEnd")),
            "connect": span(moment("connectStart"), moment("connectEnd")),
            "ssl": span(moment("sslStart"), moment("sslEnd")),
            "send": span(moment("sendStart"), moment("sendEnd")).max(0.0),
            "wait": span(moment("sendEnd"), head).max(0.0),
            "receive": head.map_or(0.0, |head| (ended - head).max(0.0)),
        })
    }
}

/// Header fields as a list.
fn fields(object: &Value) -> Vec<Value> {
    let all = object.as_object().into_iter().flatten();
    all.map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(method: &str, parameters: Value) -> Value {
        json!({"method": method, "params": parameters})
    }

    fn recording(protocol: &str) -> Recording {
        let timing = json!({
            "requestTime": 100.002, "dnsStart": -1, "dnsEnd": -1, "connectStart": 1.0, "connectEnd": 5.0,
            "sslStart": 3.0, "sslEnd": 5.0, "sendStart": 5.0, "sendEnd": 5.5, "receiveHeadersEnd": 8.0,
        });
        let mut recording = Recording::default();
        for (method, parameters) in [
            (
                "Network.requestWillBeSent",
                json!({"requestId": "1", "timestamp": 100.0, "wallTime": 1.7e9, "type": "Document",
                    "request": {"url": "https://a/x", "method": "GET", "initialPriority": "VeryHigh"},
                    "initiator": {"type": "other"}}),
            ),
            (
                "Network.responseReceived",
                json!({"requestId": "1", "type": "Document", "response": {"status": 200, "protocol": protocol,
                    "timing": timing, "connectionId": 7, "mimeType": "text/html"}}),
            ),
            ("Network.dataReceived", json!({"requestId": "1", "dataLength": 900})),
            (
                "Network.loadingFinished",
                json!({"requestId": "1", "timestamp": 100.02, "encodedDataLength": 1_000}),
            ),
            ("Page.loadEventFired", json!({"timestamp": 100.03})),
        ] {
            assert!(!recording.is_quiet());
            recording.add(&event(method, parameters));
        }
        recording
    }

    #[test]
    fn a_recording_is_a_har_that_is_read_as_a_page() {
        let recording = recording("h2");
        assert!(recording.is_quiet());
        assert_eq!(recording.load(), Some(Duration::from_millis(30)));
        assert_eq!(recording.last_end(), Some(Duration::from_millis(20)));
        let text = recording.har("page").to_string();
        let page = page::har::pages("page", text.as_bytes()).unwrap().remove(0);
        assert_eq!((page.objects.len(), page.objects[0].size.get()), (1, 900));
        let recorded = page.recorded.unwrap();
        assert_eq!(recorded.load, Some(Duration::from_millis(30)));
        assert!(page.hosts[0].protocols.http2);
    }

    #[test]
    fn phases_add_up_to_the_time_of_an_entry() {
        let entry = recording("http/1.1").requests["1"].entry();
        let timings = &entry["timings"];
        let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-3;
        assert!(near(&timings["blocked"], 3.0) && near(&timings["connect"], 4.0), "{timings}");
        assert!(near(&timings["receive"], 10.0) && near(&entry["time"], 20.0), "{entry}");
        assert_eq!(entry["response"]["headersSize"], 100);
    }

    #[test]
    fn regress_another_protocol_a_failure_and_a_status_are_named() {
        let recording = recording("http/1.1");
        assert_eq!(recording.fault("http/1.1"), None);
        assert_eq!(recording.fault("h2").unwrap(), "https://a/x came by http/1.1, not by h2");
        let mut failed = recording.clone();
        let reason =
            json!({"requestId": "1", "timestamp": 1.0, "errorText": "net::ERR_CERT_AUTHORITY_INVALID"});
        failed.add(&event("Network.loadingFailed", reason));
        assert_eq!(failed.fault("h2").unwrap(), "https://a/x: net::ERR_CERT_AUTHORITY_INVALID");
        let mut missing = recording;
        let response = json!({"requestId": "1", "response": {"status": 404, "protocol": "http/1.1"}});
        missing.add(&event("Network.responseReceived", response));
        assert_eq!(missing.fault("http/1.1").unwrap(), "https://a/x: status 404");
    }
}
