//! Waterfall of a capture's HTTP exchanges: a row each, in order of time, divided by where its time went.

use diagnose::cause::Describe as _;
use diagnose::report::ExchangeReport;
use diagnose::{Account, Cause, FlowReport, Share};
use render::plot::palette;
use render::plot::waterfall::{Bar, Row, Waterfall};
use wire::Duration;

use crate::Capture;
use crate::span::shown;

/// Maximum number of exchanges: the longest ones of a capture with more.
const MAX_ROWS: usize = 120;

/// Kinds of time, in the order of a row's bars, with their colours.
const KINDS: [(&str, &str); 5] = [
    (palette::ACCENT, "lost to a fault"),
    (palette::ORANGE, "server or client think time"),
    (palette::BLUE, "round trips"),
    (palette::GREEN, "data flowed"),
    (palette::GREY, "other"),
];

/// Returns the picture; `None` if there are no exchanges.
pub fn svg(capture: &Capture) -> Option<String> {
    let all = capture.flows.iter().flat_map(|flow| flow.exchanges.iter().map(move |one| (flow, one)));
    let mut rows: Vec<(&FlowReport, &ExchangeReport)> = all.collect();
    let count = rows.len();
    rows.sort_by_key(|(_, exchange)| std::cmp::Reverse(exchange.elapsed));
    rows.truncate(MAX_ROWS);
    rows.sort_by_key(|(_, exchange)| exchange.at);
    let began = rows.first()?.1.at;
    let rows: Vec<Row> = rows
        .iter()
        .map(|(flow, exchange)| {
            let at = exchange.at.since(began).as_millis_f64();
            Row {
                name: exchange.request.clone(),
                tooltip: tooltip(flow, exchange),
                bars: bars(&exchange.account, at, exchange.elapsed),
                after: None,
                is_critical: false,
            }
        })
        .collect();
    let cut = format!("The {MAX_ROWS} longest of {count} exchanges.");
    let lines: &[&str] = &[
        "A bar is divided by where the time of its exchange went, not by when.",
        if count > MAX_ROWS { &cut } else { "" },
    ];
    let picture = Waterfall {
        title: "Exchanges",
        lines: &lines[..1 + usize::from(count > MAX_ROWS)],
        axis: "ms since the first request",
        key: &KINDS,
        rows: &rows,
        source: "",
    };
    Some(picture.picture())
}

fn tooltip(flow: &FlowReport, exchange: &ExchangeReport) -> String {
    let ExchangeReport { request, status, at: _, elapsed, packets: (first, last), account } = exchange;
    let status = status.map(|status| format!(", status {status}")).unwrap_or_default();
    let mut shares: Vec<(Share, Duration)> = account.iter().collect();
    shares.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let shares: Vec<String> =
        shares.iter().map(|(share, time)| format!("{} {}", share.name(), shown(*time))).collect();
    format!(
        "{request}{status}\n{} to {}, packets {first} to {last}, {}\n{}",
        flow.client,
        flow.server,
        shown(*elapsed),
        shares.join(", ")
    )
}

/// Divides an exchange that begins at `at` milliseconds. Time without a share is `other`.
fn bars(account: &Account, at: f64, elapsed: Duration) -> Vec<Bar> {
    let mut times = [Duration::ZERO; KINDS.len()];
    let mut rest = elapsed;
    for (share, time) in account.iter() {
        times[kind(share)] += time;
        rest = rest.saturating_sub(time);
    }
    times[KINDS.len() - 1] += rest;
    let mut from = at;
    let mut bars = Vec::new();
    for (time, (colour, _)) in times.into_iter().zip(KINDS).filter(|(time, _)| *time > Duration::ZERO) {
        let to = from + time.as_millis_f64();
        bars.push(Bar { from, to, colour });
        from = to;
    }
    bars
}

/// Returns the index of a share's kind.
fn kind(share: Share) -> usize {
    match share {
        Share::Stall(Cause::ServerThink | Cause::ClientThink) => 1,
        Share::Stall(cause) if cause.about().is_fault => 0,
        Share::RoundTrip | Share::Stall(_) => 2,
        Share::Transfer => 3,
        Share::Idle | Share::Closing | Share::Unknown => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::stored;

    #[test]
    fn bars_of_an_exchange_last_as_long_as_it() {
        let capture = stored("pipelined");
        let exchanges = capture.flows.iter().flat_map(|flow| &flow.exchanges);
        let mut count = 0;
        for exchange in exchanges {
            let bars = bars(&exchange.account, 0.0, exchange.elapsed);
            let end = bars.last().unwrap().to;
            assert!((end - exchange.elapsed.as_millis_f64()).abs() < 1e-6, "{bars:?}");
            count += 1;
        }
        assert!(count > 1);
        assert!(svg(&capture).unwrap().contains("server or client think time"));
    }

    #[test]
    fn a_capture_without_exchanges_has_no_waterfall() {
        assert_eq!(svg(&stored("timeouts")).is_none(), stored("timeouts").flows[0].exchanges.is_empty());
    }
}
