//! The runs over real kernels: families that each provoke a cause, over round trips, rates, windows, congestion controls,
//! with SACK and without, with segments cut by the host and left to its card. What is found, and what is true, is said
//! elsewhere.

use wire::link::{Config, Loss};
use wire::{Duration, Probability, Rate};

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Which family, and where in it.
    pub(crate) name: String,
    pub(crate) rtt: Duration,
    pub(crate) rate: Rate,
    /// Of what the server sends, how likely each packet is lost.
    pub(crate) loss: Option<Probability>,
    pub(crate) tuning: Tuning,
    pub(crate) play: Play,
    pub(crate) seed: u64,
}

/// What the hosts' kernels are told.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    pub(crate) congestion: &'static str,
    pub(crate) sack: bool,
    /// Whether the cards cut and merge segments (TSO, GSO, GRO).
    pub(crate) offload: bool,
    /// In segments, of the server.
    pub(crate) initial_window: u32,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub(crate) restarts_after_idle: bool,
}

/// What the programs do.
#[derive(Clone, Debug)]
pub(crate) struct Play {
    /// Bytes of each answer's body.
    pub(crate) answers: Vec<usize>,
    /// Before each request but the first, and before each answer.
    pub(crate) client_think: Duration,
    pub(crate) server_think: Duration,
    /// Only before the first answer.
    pub(crate) thinks_once: bool,
    /// The head of an answer is a write of its own.
    pub(crate) head_apart: bool,
    pub(crate) nagle: bool,
    pub(crate) send_buffer: Option<usize>,
    pub(crate) receive_buffer: Option<usize>,
    pub(crate) acks: Acks,
    pub(crate) asking: Asking,
    /// Requests have a body, and the client asks whether it may send that.
    pub(crate) uploads: bool,
    pub(crate) expects: bool,
    /// After so many bytes of each answer the client does not read for so long.
    pub(crate) rests: Option<(usize, Duration)>,
    /// After so many answers the server closes at once.
    pub(crate) closes_after: Option<usize>,
}

/// How the client's kernel acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acks {
    /// Everything at once (the route's `quickack`).
    Quick,
    /// As if it had long been connected: the second segment at once, one alone late (`TCP_QUICKACK` 0).
    Delayed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    OneByOne,
    Pipelined,
    OnConnectionsOfTheirOwn,
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

/// All of them, in an order that never changes.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for family in FAMILIES {
        for rtt in ROUND_TRIPS_MS {
            for congestion in CONGESTIONS {
                for initial_window in INITIAL_WINDOWS {
                    for sack in [true, false] {
                        let number = cases.len();
                        // Every value of these meets every value of the others.
                        let offload = (number + number / 4 + number / 12).is_multiple_of(2);
                        let mbps = if (number / 2 + number / 12).is_multiple_of(2) { 20 } else { 100 };
                        let tuning =
                            Tuning { congestion, sack, offload, initial_window, restarts_after_idle: true };
                        let says = |is_so, text: &'static str| if is_so { text } else { "" };
                        let name = format!(
                            "{family} {rtt}ms {mbps}Mbps iw{initial_window} {congestion}{}{}",
                            says(sack, " sack"),
                            says(offload, " offload")
                        );
                        let mut case = Case {
                            name,
                            rtt: Duration::from_millis(rtt),
                            rate: Rate::from_bits_per_second(mbps * 1_000_000).expect("it is not zero"),
                            loss: None,
                            tuning,
                            play: Play::default(),
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

/// A few that take a second each.
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

impl Default for Play {
    fn default() -> Self {
        Self {
            answers: vec![60_000, 8_000, 30_000],
            client_think: Duration::ZERO,
            server_think: Duration::ZERO,
            thinks_once: false,
            head_apart: false,
            nagle: false,
            send_buffer: None,
            receive_buffer: None,
            acks: Acks::Quick,
            asking: Asking::OneByOne,
            uploads: false,
            expects: false,
            rests: None,
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
    let Case { rtt, loss, tuning, play, .. } = case;
    let percent = |percent: f64| Probability::new(percent / 100.0);
    match family {
        "connection-per-request" => {
            (play.asking, play.answers) = (Asking::OnConnectionsOfTheirOwn, vec![4_000; 4]);
        }
        "server-thinks" => (play.server_think, play.answers) = (Duration::from_millis(60), vec![4_000; 4]),
        "client-thinks" => (play.client_think, play.answers) = (Duration::from_millis(40), vec![4_000; 4]),
        "nagle" | "nagle-delayed-ack" => {
            (play.head_apart, play.nagle, play.answers) = (true, true, vec![300; 4]);
            play.acks = if family == "nagle" { Acks::Quick } else { Acks::Delayed };
        }
        // With two segments or more the head alone uses nothing up.
        "short-initial-segment" => {
            (play.head_apart, play.acks, play.answers) = (true, Acks::Delayed, vec![10_000; 2]);
            tuning.initial_window = 1;
        }
        "delayed-ack" => {
            (play.acks, play.answers) = (Acks::Delayed, vec![10_000; 2]);
            tuning.initial_window = if tuning.initial_window == 2 { 1 } else { 3 };
        }
        "send-buffer" => (play.send_buffer, play.answers) = (Some(8_192), vec![150_000]),
        "receive-buffer" => (play.receive_buffer, play.answers) = (Some(8_192), vec![150_000]),
        "zero-window" => {
            (play.receive_buffer, play.answers) = (Some(16_384), vec![100_000; 2]);
            play.rests = Some((20_000, Duration::from_millis(300)));
        }
        "loss" => (*loss, play.answers) = (percent(2.0), vec![150_000; 2]),
        "loss-of-short-answers" => (*loss, play.answers) = (percent(4.0), vec![6_000; 8]),
        "after-idle" => {
            (play.client_think, play.answers) = (*rtt * 3 + Duration::from_millis(900), vec![100_000; 2]);
        }
        "expect-100" => (play.uploads, play.expects, play.answers) = (true, true, vec![300; 3]),
        "reset" => {
            (play.asking, play.answers) = (Asking::Pipelined, vec![4_000; 10]);
            play.closes_after = Some(3);
        }
        "head-of-line" => {
            (play.asking, play.answers) = (Asking::Pipelined, vec![4_000; 5]);
            (play.server_think, play.thinks_once) = (Duration::from_millis(200), true);
        }
        _ => {}
    }
}
