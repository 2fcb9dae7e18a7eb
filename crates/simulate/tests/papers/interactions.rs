use std::num::NonZeroUsize;

use proto::http::WritePolicy;
use scenario::{Client, Connection, Network, Page, Protocol, Requests, Scenario, Server, Stack, Visit};
use simulate::profile::Clocks;
use simulate::web::{BrowserTimes, ServerTimes};
use simulate::world::{HostId, Seen};
use simulate::{Experiment, Hosts};
use wire::{Bytes, Duration, Seed};

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

pub(crate) fn hosts(head_apart: bool, phase_ms: u64) -> Hosts {
    let clocks = Clocks { heartbeat: Duration::from_millis(phase_ms), slow: Duration::from_millis(333) };
    Hosts {
        client: BrowserTimes { connection: micros(0), request: micros(650) },
        server: ServerTimes { connection: micros(6_000), request: micros(2_175), write: micros(1_626) },
        writes: WritePolicy { head_apart, buffer: NonZeroUsize::new(4096) },
        head_bytes: Some(226),
        clocks: Some([clocks, Clocks { heartbeat: Duration::from_millis(77), ..clocks }]),
    }
}

pub(crate) fn scenario(protocol: Protocol, nagle: bool, sizes: &[u64]) -> Scenario {
    let mut stack = Stack::named("sunos-4.1.3").unwrap();
    stack.nagle = nagle;
    let mut page = Page::named("small-cluster").unwrap();
    for (object, size) in page.objects.iter_mut().zip(sizes) {
        object.size = Bytes::new(*size);
    }
    Scenario {
        network: Network::named("ethernet").unwrap(),
        page,
        visit: Visit::First,
        protocol,
        stack,
        client: Client {
            request: Bytes::new(100),
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        },
        server: Server { processing: Duration::ZERO },
        runs: 1,
        seed: Seed::default(),
    }
}

#[test]
fn dump() {
    for (protocol, apart, nagle) in [
        (Protocol::Http10, false, true),
        (Protocol::Http10KeepAlive, true, true),
        (Protocol::Http10KeepAlive, false, true),
        (Protocol::Http10KeepAlive, false, false),
    ] {
        let experiment =
            Experiment::new(&scenario(protocol, nagle, &[6651, 3883, 1866]), hosts(apart, 190)).unwrap();
        let fetched = experiment.run(0, true).unwrap();
        println!("=== {protocol:?} apart {apart} nagle {nagle}: {:?} {:?}", fetched.elapsed.map(|e| e.as_millis_f64()), fetched.ended);
        for record in &fetched.records {
            let wanted = match record.seen {
                Seen::Sent => record.from.host == HostId(1),
                Seen::Received => record.from.host == HostId(0),
                Seen::Lost => true,
            };
            if wanted {
                let s = &record.segment;
                let who = if record.from.host == HostId(0) { "client" } else { "server" };
                println!(
                    "{:10.3} {who}:{} {}{}{}{} {}:{}({}) ack {} win {}",
                    record.at.as_millis_f64(), record.from.port.max(record.to.port),
                    if s.flags.syn { "S" } else { "" },
                    if s.flags.fin { "F" } else { "" },
                    if s.flags.rst { "R" } else { "" },
                    if s.flags.psh { "P" } else { "." },
                    s.sequence, s.end(), s.payload.len(), s.acknowledgement, s.window
                );
            }
        }
    }
}
