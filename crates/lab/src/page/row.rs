//! A page as JSON: every field, units as suffixes, objects numbered from 1.

use page::{Dependency, Host, Moment, Object, OfferedProtocols, Page, RecordedTimes};
use serde::Serialize;
use wire::Duration;

use super::{HostCost, PageCosts};

/// A page.
#[derive(Debug, Serialize)]
pub struct PageRow<'a> {
    page: &'a str,
    hosts: Vec<HostRow<'a>>,
    objects: Vec<ObjectRow<'a>>,
    recorded_content_loaded_ms: Option<f64>,
    recorded_load_ms: Option<f64>,
    recorded_last_end_ms: Option<f64>,
    recorded_before_load_ms: Option<f64>,
    recorded_client_time_ms: Option<f64>,
    /// The load of which hosts have `critical_path_ms`; null if none was simulated.
    simulated_network: Option<String>,
    simulated_protocol: Option<&'static str>,
    simulated_ms: Option<f64>,
    simulated_client_ms: Option<f64>,
    notes: &'a [String],
}

/// A host of a page.
#[derive(Debug, Serialize)]
pub struct HostRow<'a> {
    name: &'a str,
    /// Position by cost, from 1: time on the critical path, then bytes.
    rank: usize,
    requests: usize,
    size_bytes: u64,
    critical_path_ms: Option<f64>,
    address_group: Option<u32>,
    extra_rtt_ms: f64,
    dns_ms: f64,
    server_time_ms: f64,
    tls: bool,
    http2: bool,
    http3: bool,
    certificate_chain_bytes: Option<u64>,
    software: Option<&'a str>,
    preconnect: Option<String>,
    dns_prefetch: Option<String>,
}

/// An object of a page.
#[derive(Debug, Serialize)]
pub struct ObjectRow<'a> {
    number: usize,
    host: Option<&'a str>,
    path: Option<&'a str>,
    method: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    priority: &'static str,
    size_bytes: u64,
    deflated_bytes: Option<u64>,
    request_header_bytes: Option<u64>,
    response_header_bytes: Option<u64>,
    request_body_bytes: u64,
    server_time_ms: Option<f64>,
    local_ms: Option<f64>,
    render_blocking: bool,
    anonymous: bool,
    counts_for_load: bool,
    after: Vec<AfterRow>,
}

/// A dependency of an object.
#[derive(Debug, Serialize)]
pub struct AfterRow {
    object: usize,
    /// `begun`, `delivered` or `ended`.
    at: &'static str,
    delivered_bytes: Option<u64>,
    plus_ms: f64,
}

/// A row for each page.
pub fn rows(pages: &[Page]) -> Vec<PageRow<'_>> {
    pages.iter().map(page_row).collect()
}

fn page_row(page: &Page) -> PageRow<'_> {
    let Page { name, hosts, objects, contents: _, notes, recorded } = page;
    let RecordedTimes { content_loaded, load, last_end, before_load, client_time } =
        recorded.unwrap_or_default();
    let millis = |time: Option<Duration>| time.map(Duration::as_millis_f64);
    let costs = PageCosts::of(page);
    let mut ranks = vec![0; hosts.len()];
    (1..).zip(costs.ranked()).for_each(|(rank, host)| ranks[host] = rank);
    let rows = hosts.iter().zip(&costs.hosts).zip(ranks);
    let simulated = costs.load.as_ref();
    PageRow {
        page: name,
        hosts: rows.map(|((host, cost), rank)| host_row(host, *cost, rank)).collect(),
        objects: objects.iter().enumerate().map(|(index, object)| object_row(index, object, hosts)).collect(),
        recorded_content_loaded_ms: millis(content_loaded),
        recorded_load_ms: millis(load),
        recorded_last_end_ms: millis(last_end),
        recorded_before_load_ms: millis(before_load),
        recorded_client_time_ms: millis(client_time),
        simulated_network: simulated.map(|load| load.network.clone()),
        simulated_protocol: simulated.map(|load| load.protocol.name()),
        simulated_ms: millis(simulated.map(|load| load.elapsed)),
        simulated_client_ms: millis(simulated.map(|load| load.client)),
        notes,
    }
}

fn host_row(host: &Host, cost: HostCost, rank: usize) -> HostRow<'_> {
    let HostCost { requests, bytes, path_time } = cost;
    let Host { name, address_group, extra_rtt, lookup, processing, protocols, .. } = host;
    let Host { certificate_chain, software, hints, .. } = host;
    let OfferedProtocols { tls, http2, http3 } = *protocols;
    HostRow {
        name,
        rank,
        requests,
        size_bytes: bytes,
        critical_path_ms: path_time.map(Duration::as_millis_f64),
        address_group: *address_group,
        extra_rtt_ms: extra_rtt.as_millis_f64(),
        dns_ms: lookup.as_millis_f64(),
        server_time_ms: processing.as_millis_f64(),
        tls,
        http2,
        http3,
        certificate_chain_bytes: certificate_chain.map(|bytes| bytes.get()),
        software: software.as_deref(),
        preconnect: hints.preconnect.map(|after| after.to_string()),
        dns_prefetch: hints.dns_prefetch.map(|after| after.to_string()),
    }
}

fn object_row<'a>(index: usize, object: &'a Object, hosts: &'a [Host]) -> ObjectRow<'a> {
    let Object {
        host,
        path,
        method,
        kind,
        priority,
        request_head,
        response_head,
        size,
        deflated,
        request_body,
        processing,
        local,
        is_render_blocking,
        is_anonymous,
        counts_for_load,
        after,
    } = object;
    let host = hosts.get(*host).filter(|_| local.is_none());
    ObjectRow {
        number: index + 1,
        host: host.map(|host| host.name.as_str()),
        path: path.as_deref(),
        method: method.name(),
        kind: kind.name(),
        priority: priority.name(),
        size_bytes: size.get(),
        deflated_bytes: deflated.map(|bytes| bytes.get()),
        request_header_bytes: request_head.map(|bytes| bytes.get()),
        response_header_bytes: response_head.map(|bytes| bytes.get()),
        request_body_bytes: request_body.get(),
        server_time_ms: processing.map(Duration::as_millis_f64),
        local_ms: local.map(Duration::as_millis_f64),
        render_blocking: *is_render_blocking,
        anonymous: *is_anonymous,
        counts_for_load: *counts_for_load,
        after: after.iter().map(after_row).collect(),
    }
}

fn after_row(dependency: &Dependency) -> AfterRow {
    let Dependency { on, at, plus } = *dependency;
    let (at, delivered_bytes) = match at {
        Moment::Begun => ("begun", None),
        Moment::Delivered(bytes) => ("delivered", Some(bytes.get())),
        Moment::Ended => ("ended", None),
    };
    AfterRow { object: on + 1, at, delivered_bytes, plus_ms: plus.as_millis_f64() }
}
