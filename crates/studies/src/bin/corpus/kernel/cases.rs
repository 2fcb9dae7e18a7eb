//! The runs over real kernels: families that each provoke a cause. They vary round trips, rates, windows,
//! congestion control, SACK, and segmentation by the host or by its card. Findings and true causes are in other
//! modules.

use wire::link::{Config, Loss};
use wire::{Duration, Probability, Rate};

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Family, and index in it.
    pub(crate) name: String,
    pub(crate) rtt: Duration,
    pub(crate) rate: Rate,
    /// Probability of loss of the server's packets.
    pub(crate) loss: Option<Probability>,
    pub(crate) tuning: Tuning,
    pub(crate) behaviour: ProgramBehaviour,
    pub(crate) seed: u64,
}

/// Settings of the hosts' kernels.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    pub(crate) congestion: &'static str,
    pub(crate) sack: bool,
    /// Whether the cards cut and merge segments (TSO, GSO, GRO).
    pub(crate) offload: bool,
    /// Initial window of the server, in segments.
    pub(crate) initial_window: u32,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub(crate) restarts_after_idle: bool,
}

/// Behaviour of the programs.
#[derive(Clone, Debug)]
pub(crate) struct ProgramBehaviour {
    /// Bytes of each response's body.
    pub(crate) responses: Vec<usize>,
    /// Time before each request except the first, and before each response.
    pub(crate) client_think: Duration,
    pub(crate) server_think: Duration,
    /// Whether the server takes this time before the first response only.
    pub(crate) thinks_once: bool,
    /// Whether the header section of a response is a write of its own.
    pub(crate) head_apart: bool,
    pub(crate) nagle: bool,
    pub(crate) send_buffer: Option<usize>,
    pub(crate) receive_buffer: Option<usize>,
    pub(crate) acks: Acks,
    pub(crate) request_order: RequestOrder,
    /// Whether requests have a body, which the client announces with `Expect: 100-continue`.
    pub(crate) uploads: bool,
    pub(crate) expects: bool,
    /// Bytes of each response after which the client stops reading, and for how long.
    pub(crate) reading_pause: Option<(usize, Duration)>,
    /// Number of responses after which the server closes.
    pub(crate) closes_after: Option<usize>,
}

/// Acknowledgements of the client's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acks {
    /// Every segment immediately (the route's `quickack`).
    Quick,
    /// As on an old connection: every second segment immediately, a single one delayed (`TCP_QUICKACK` 0).
    Delayed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOrder {
    Sequential,
    Pipelined,
    SeparateConnections,
}

pub(crate) const FAMILIES: [&str; 17] = [
    "plain",
    "connection-per-request",
    "server-thinks",
    "client-thinks",
    "nagle",
    "nagle-delayed-ack",
    "short-initial-segment",
    "delayed-ack",
    "send-buffer",
    "receive-buffer",
    "zero-window",
    "loss",
    "loss-of-short-answers",
    "after-idle",
    "expect-100",
    "reset",
    "head-of-line",
];

const ROUND_TRIPS_MS: [u64; 8] = [1, 5, 12, 30, 60, 100, 200, 400];
const CONGESTIONS: [&str; 3] = ["reno", "cubic", "bbr"];
const INITIAL_WINDOWS: [u32; 2] = [2, 10];

/// All cases, in a fixed order.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for family in FAMILIES {
        for rtt in ROUND_TRIPS_MS {
            for congestion in CONGESTIONS {
                for initial_window in INITIAL_WINDOWS {
                    for sack in [true, false] {
                        let number = cases.len();
                        // Every value of these is combined with every value of the others.
                        let offload = (number + number / 4 + number / 12).is_multiple_of(2);
                        let mbps = if (number / 2 + number / 12).is_multiple_of(2) { 20 } else { 100 };
                        let tuning =
                            Tuning { congestion, sack, offload, initial_window, restarts_after_idle: true };
                        let text_if = |is_set, text: &'static str| if is_set { text } else { "" };
                        let name = format!(
                            "{family} {rtt}ms {mbps}Mbps iw{initial_window} {congestion}{}{}",
                            text_if(sack, " sack"),
                            text_if(offload, " offload")
                        );
                        let mut case = Case {
                            name,
                            rtt: Duration::from_millis(rtt),
                            rate: Rate::from_bits_per_second(mbps * 1_000_000).expect("it is not zero"),
                            loss: None,
                            tuning,
                            behaviour: ProgramBehaviour::default(),
                            seed: number as u64 + 1,
                        };
                        provoke(family, &mut case);
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

/// Returns a few cases that take a second each.
pub(crate) fn sample() -> Vec<(usize, Case)> {
    const FAMILIES: [&str; 8] = [
        "server-thinks",
        "client-thinks",
        "nagle",
        "nagle-delayed-ack",
        "receive-buffer",
        "zero-window",
        "expect-100",
        "reset",
    ];
    let is_short = |case: &Case| case.name.contains(" 30ms 20Mbps iw10 cubic sack");
    let is_one = |case: &Case| FAMILIES.iter().any(|family| case.name.starts_with(&format!("{family} ")));
    all().into_iter().enumerate().filter(|(_, case)| is_short(case) && is_one(case)).collect()
}

impl Default for ProgramBehaviour {
    fn default() -> Self {
        Self {
            responses: vec![60_000, 8_000, 30_000],
            client_think: Duration::ZERO,
            server_think: Duration::ZERO,
            thinks_once: false,
            head_apart: false,
            nagle: false,
            send_buffer: None,
            receive_buffer: None,
            acks: Acks::Quick,
            request_order: RequestOrder::Sequential,
            uploads: false,
            expects: false,
            reading_pause: None,
            closes_after: None,
        }
    }
}

impl Case {
    /// The link towards the server, and towards the client.
    pub(crate) fn links(&self) -> [Config; 2] {
        let up = Config { rate: Some(self.rate), delay: self.rtt / 2, ..Config::default() };
        let loss = self.loss.map_or(Loss::None, Loss::Independent);
        let down = Config { loss, ..up.clone() };
        [up, down]
    }
}

fn provoke(family: &str, case: &mut Case) {
    let Case { rtt, loss, tuning, behaviour, .. } = case;
    let percent = |percent: f64| Probability::new(percent / 100.0);
    match family {
        "connection-per-request" => {
            (behaviour.request_order, behaviour.responses) =
                (RequestOrder::SeparateConnections, vec![4_000; 4]);
        }
        "server-thinks" => {
            (behaviour.server_think, behaviour.responses) = (Duration::from_millis(60), vec![4_000; 4])
        }
        "client-thinks" => {
            (behaviour.client_think, behaviour.responses) = (Duration::from_millis(40), vec![4_000; 4])
        }
        "nagle" | "nagle-delayed-ack" => {
            (behaviour.head_apart, behaviour.nagle, behaviour.responses) = (true, true, vec![300; 4]);
            behaviour.acks = if family == "nagle" { Acks::Quick } else { Acks::Delayed };
        }
        // With two segments or more the header section alone does not exhaust the window.
        "short-initial-segment" => {
            (behaviour.head_apart, behaviour.acks, behaviour.responses) =
                (true, Acks::Delayed, vec![10_000; 2]);
            tuning.initial_window = 1;
        }
        "delayed-ack" => {
            (behaviour.acks, behaviour.responses) = (Acks::Delayed, vec![10_000; 2]);
            tuning.initial_window = if tuning.initial_window == 2 { 1 } else { 3 };
        }
        "send-buffer" => (behaviour.send_buffer, behaviour.responses) = (Some(8_192), vec![150_000]),
        "receive-buffer" => (behaviour.receive_buffer, behaviour.responses) = (Some(8_192), vec![150_000]),
        "zero-window" => {
            (behaviour.receive_buffer, behaviour.responses) = (Some(16_384), vec![100_000; 2]);
            behaviour.reading_pause = Some((20_000, Duration::from_millis(300)));
        }
        "loss" => (*loss, behaviour.responses) = (percent(2.0), vec![150_000; 2]),
        "loss-of-short-answers" => (*loss, behaviour.responses) = (percent(4.0), vec![6_000; 8]),
        "after-idle" => {
            (behaviour.client_think, behaviour.responses) =
                (*rtt * 3 + Duration::from_millis(900), vec![100_000; 2]);
        }
        "expect-100" => {
            (behaviour.uploads, behaviour.expects, behaviour.responses) = (true, true, vec![300; 3])
        }
        "reset" => {
            (behaviour.request_order, behaviour.responses) = (RequestOrder::Pipelined, vec![4_000; 10]);
            behaviour.closes_after = Some(3);
        }
        "head-of-line" => {
            (behaviour.request_order, behaviour.responses) = (RequestOrder::Pipelined, vec![4_000; 5]);
            (behaviour.server_think, behaviour.thinks_once) = (Duration::from_millis(200), true);
        }
        _ => {}
    }
}
