//! State of a simulated run's connections, as comma-separated values: a line for each change, at either end.
//!
//! Not the packets: those are in the capture.

use std::io::{self, Write};

use scenario::Scenario;
use simulate::page::{CLIENT, Flow};
use simulate::world::Probe;
use tcp::ConnectionStats;
use wire::{Duration, Time};

use super::FirstRun;

/// The heading of all lines.
///
/// # Errors
/// Errors of `out`.
pub fn write_heading(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")
}

/// The lines of one run.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut dyn Write, first: FirstRun<'_>) -> io::Result<()> {
    let FirstRun { scenario, experiment: _, result } = first;
    result.probes.iter().try_for_each(|probe| line(out, scenario, result.began, probe))
}

const HEADING: &str = "network,page,protocol,stack,at_ms,end,connection,state,limit,cwnd,ssthresh,in_flight,peer_window,\
                       srtt_ms,rto_ms,retransmits_at_ms,acknowledges_at_ms";

/// One line. Windows are in bytes; times count from the first packet of the page. A connection is named by the port of
/// the end that opened it. An unknown value, or a timer that is not running, is empty.
fn line(out: &mut dyn Write, scenario: &Scenario, began: Time, probe: &Probe) -> io::Result<()> {
    let Probe { at, local, peer: _, stats } = probe;
    let ConnectionStats {
        state,
        limit,
        cwnd,
        ssthresh,
        in_flight,
        peer_window,
        round_trip,
        rto,
        retransmits_at,
        acknowledges_at,
    } = stats;
    let end = if local.host == CLIENT { "client" } else { "server" };
    let connection = Flow::of_probe(probe).port();
    let millis = |duration: Duration| duration.as_millis_f64().to_string();
    let some = |duration: Option<Duration>| duration.map(millis).unwrap_or_default();
    let until = |at: Option<Time>| some(at.map(|at| at.since(began)));
    let threshold = if *ssthresh == u64::MAX { String::new() } else { ssthresh.to_string() };
    writeln!(
        out,
        "{},{},{},{},{},{end},{connection},{state},{limit},{cwnd},{threshold},{in_flight},{peer_window},{},{},{},{}",
        scenario.network.name,
        scenario.page.name,
        scenario.protocol.name(),
        scenario.stack.name,
        millis(at.since(began)),
        some(*round_trip),
        millis(*rto),
        until(*retransmits_at),
        until(*acknowledges_at),
    )
}
