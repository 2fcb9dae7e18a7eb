//! Scenarios: a base, and variations of one or two of its parameters.
//!
//! Each group of scenarios tests one mechanism.

use std::fmt;

use scenario::{
    Client, Connection, Network, Object, Page, Programs, Protocol, Requests, Scenario, Server, Stack, Tls,
    Visit,
};
use tcp::stack::{Acks, Congestion};
use wire::{Bytes, Duration, Rate, Seed};

/// A scenario with its index.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    number: usize,
    setting: Setting,
}

/// Parameters that vary.
#[derive(Clone, Debug)]
struct Setting {
    rtt_ms: u64,
    rate_mbit: f64,
    mss: u64,
    sizes: Vec<u64>,
    protocol: Protocol,
    initial_window: u16,
    acks: Acks,
    nagle: bool,
    congestion: Congestion,
    timestamps: bool,
    processing_ms: u64,
    request: u64,
    parallel: u16,
}

/// A page of three objects over a modern path, with Linux's defaults.
fn base() -> Setting {
    Setting {
        rtt_ms: 40,
        rate_mbit: 10.0,
        mss: 1_460,
        sizes: SMALL_CLUSTER.to_vec(),
        protocol: Protocol::Http10KeepAlive,
        initial_window: 10,
        acks: Acks::QuickThenDelayed,
        nagle: true,
        congestion: Congestion::Cubic,
        timestamps: true,
        processing_ms: 0,
        request: 256,
        parallel: 1,
    }
}

/// `papers/heidemann-model#workloads`
const SMALL_CLUSTER: [u64; 3] = [6_651, 3_883, 1_866];

/// Every scenario.
pub(crate) fn all() -> Vec<Case> {
    let settings = [
        paths(),
        segments(),
        windows(),
        acknowledgements(),
        exchanges(),
        transfers(),
        long_exchanges(),
        requests(),
    ]
    .concat();
    settings.into_iter().enumerate().map(|(number, setting)| Case { number, setting }).collect()
}

/// Round trips, rates and sizes: slow start on short and long, slow and fast paths.
fn paths() -> Vec<Setting> {
    let mut settings = Vec::new();
    for rtt_ms in [2, 10, 40, 100, 250] {
        for rate_mbit in [1.0, 20.0] {
            for sizes in [[5], [3_000], [14_480], [60_000]] {
                settings.push(Setting { rtt_ms, rate_mbit, sizes: sizes.to_vec(), ..base() });
            }
        }
    }
    settings
}

/// Segment sizes: the remainder at the end, and the receiver's estimate of a full segment.
fn segments() -> Vec<Setting> {
    let mut settings = Vec::new();
    for mss in [128, 256, 512, 536, 1_000, 1_448] {
        for (protocol, timestamps) in [(Protocol::Http10, true), (Protocol::Http10KeepAlive, false)] {
            settings.push(Setting { mss, protocol, timestamps, ..base() });
        }
        settings.push(Setting { mss, sizes: vec![20_000], ..base() });
    }
    settings
}

/// Initial windows, growing by Reno and by CUBIC.
fn windows() -> Vec<Setting> {
    let mut settings = Vec::new();
    for initial_window in [1, 2, 3, 4, 7, 20] {
        for congestion in [Congestion::Reno, Congestion::Cubic] {
            settings.push(Setting { initial_window, congestion, sizes: vec![40_000], ..base() });
        }
        settings.push(Setting { initial_window, mss: 512, rtt_ms: 80, ..base() });
    }
    settings
}

/// Every segment acknowledged immediately, or as Linux delays them; with Nagle's algorithm and without.
fn acknowledgements() -> Vec<Setting> {
    let mut settings = Vec::new();
    for acks in [Acks::EverySegment, Acks::QuickThenDelayed] {
        for nagle in [true, false] {
            for (initial_window, sizes) in
                [(2, vec![11_000]), (10, vec![700; 5]), (4, vec![5_000, 100, 9_000])]
            {
                settings.push(Setting { acks, nagle, initial_window, sizes, rtt_ms: 30, ..base() });
            }
        }
    }
    settings
}

/// Many exchanges, fast and slow servers: ACKs that are delayed, piggybacked on requests, or sent by the timer; windows
/// that idle.
fn exchanges() -> Vec<Setting> {
    let mut settings = Vec::new();
    for processing_ms in [0, 10, 60, 300, 700] {
        for protocol in [Protocol::Http10, Protocol::Http10KeepAlive, Protocol::Http11] {
            let sizes = vec![2_000, 300, 25_000, 30_000];
            settings.push(Setting { processing_ms, protocol, sizes, ..base() });
        }
    }
    settings
}

/// Large windows: receive buffers that grow, HyStart, CUBIC.
fn transfers() -> Vec<Setting> {
    let mut settings = Vec::new();
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        for (rtt_ms, rate_mbit) in [(10, 10.0), (40, 10.0), (40, 50.0), (100, 20.0)] {
            settings.push(Setting { rtt_ms, rate_mbit, congestion, sizes: vec![400_000], ..base() });
        }
    }
    settings
}

/// More exchanges than the quick ACKs at the start of a connection.
fn long_exchanges() -> Vec<Setting> {
    let mut settings = Vec::new();
    for processing_ms in [0, 30, 50] {
        for (size, initial_window) in [(700, 10), (2_000, 10), (4_000, 1)] {
            let sizes = vec![size; 14];
            settings.push(Setting { processing_ms, sizes, initial_window, rtt_ms: 20, ..base() });
        }
    }
    settings
}

/// Requests of more than one segment, and several concurrent connections.
fn requests() -> Vec<Setting> {
    let mut settings = Vec::new();
    for request in [2_000, 3_200, 7_000] {
        for processing_ms in [0, 60] {
            settings.push(Setting { request, processing_ms, sizes: vec![3_000, 10_000, 500], ..base() });
        }
    }
    for parallel in [2, 4] {
        for sizes in [vec![2_000; 4], SMALL_CLUSTER.to_vec()] {
            settings.push(Setting { parallel, sizes, protocol: Protocol::Http10, ..base() });
        }
    }
    settings
}

impl Case {
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn scenario(&self, runs: u32) -> Scenario {
        let Setting {
            rtt_ms,
            rate_mbit,
            mss,
            sizes,
            protocol,
            initial_window,
            acks,
            nagle,
            congestion,
            timestamps,
            processing_ms,
            request,
            parallel,
        } = self.setting.clone();
        let linux = Stack::named("linux").expect("a stack's name");
        let objects = sizes.into_iter().map(|size| Object::sized(Bytes::new(size)));
        // A few megabits: exact.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = Rate::from_bits_per_second((rate_mbit * 1e6) as u64).expect("above zero");
        Scenario {
            network: Network::new("custom".to_owned(), Duration::from_millis(rtt_ms), rate, Bytes::new(mss)),
            page: Page::of("custom", objects.collect()),
            visit: Visit::First,
            protocol,
            tls: Tls::None,
            stack: Stack { initial_window, acks, nagle, congestion, timestamps, ..linux },
            client: Client {
                request: Bytes::new(request),
                requests: if parallel > 1 { Requests::Independent } else { Requests::Dependent },
                parallel,
                connection: Connection::Cold,
            },
            server: Server { processing: Duration::from_millis(processing_ms) },
            programs: Programs::default(),
            runs,
            seed: Seed::default(),
        }
    }

    /// Description without commas.
    pub(crate) fn description(&self) -> String {
        let Setting {
            rtt_ms,
            rate_mbit,
            mss,
            sizes,
            protocol,
            initial_window,
            acks,
            nagle,
            congestion,
            timestamps,
            processing_ms,
            request,
            parallel,
        } = &self.setting;
        let groups = sizes.chunk_by(PartialEq::eq).map(|run| match run {
            [size] => size.to_string(),
            [size, ..] => format!("{}x{size}", run.len()),
            [] => String::new(),
        });
        let sizes = groups.collect::<Vec<_>>().join("+");
        let mut parts = vec![
            format!("{rtt_ms} ms"),
            format!("{rate_mbit} mbit"),
            format!("mss {mss}"),
            sizes,
            protocol.name().to_owned(),
        ];
        let text_if = |condition: bool, text: String| condition.then_some(text);
        parts.extend(text_if(*initial_window != 10, format!("window {initial_window}")));
        parts.extend(text_if(*acks == Acks::EverySegment, "every segment acknowledged".to_owned()));
        parts.extend(text_if(!nagle, "nodelay".to_owned()));
        parts.extend(text_if(*congestion == Congestion::Reno, "reno".to_owned()));
        parts.extend(text_if(!timestamps, "no timestamps".to_owned()));
        parts.extend(text_if(*processing_ms > 0, format!("server {processing_ms} ms")));
        parts.extend(text_if(*request != 256, format!("requests of {request}")));
        parts.extend(text_if(*parallel > 1, format!("{parallel} connections")));
        parts.join(" ")
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:3} {}", self.number, self.description()))
    }
}
