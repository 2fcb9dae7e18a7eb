//! Report of a finished connection.

pub(crate) mod exchange;
pub(crate) mod host;

use core::net::SocketAddr;

use dissect::Side;
use dissect::exchange::KeyUse;
use wire::{Bytes, Duration, Time};

use crate::cause::{Cause, Describe as _, Fix, Party};
use crate::causes::{datagram_resend, quic, syn_unanswered};
use crate::doubt::Doubts;
use crate::finding::{Count, Finding};
use crate::program::Program;
use crate::runtime::Runtime;
pub use dissect::path::VantagePoint;
use dissect::plot::Plot;
pub use exchange::ExchangeReport;
use host::HostFacts;
use trace::account::Account;

/// The diagnosis of a connection.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// Protocol spoken.
    pub protocol: Protocol,
    /// Whether a DHTTP dialogue also reports it and its time: a connection that the server opened.
    pub is_within_dialogue: bool,
    /// Address of the side that opened it.
    pub client: SocketAddr,
    /// Address of the side that accepted it.
    pub server: SocketAddr,
    /// When its first packet was captured.
    pub started: Time,
    /// That packet's number.
    pub first_packet: u64,
    /// Whether it was captured from its opening on.
    pub is_whole: bool,
    /// From the first packet to the last.
    pub elapsed: Duration,
    /// Number of packets.
    pub packets: u64,
    /// Payload bytes, both directions, retransmissions included.
    pub bytes: Bytes,
    /// Minimum round trip; `None` where one direction never responded.
    pub round_trip: Option<Duration>,
    /// Where the capture was taken.
    pub vantage_point: VantagePoint,
    /// HTTP requests, as far as they could be read.
    pub requests: u64,
    /// Findings in chronological order; for each cause the worst 64, fewer where many connections are open
    /// concurrently.
    pub findings: Vec<Finding>,
    /// Occurrences of each cause, and its total cost.
    pub counts: Vec<Count>,
    /// Where all its time went.
    pub account: Account,
    /// Reasons for its unknown time.
    pub doubts: Doubts,
    /// The longest HTTP exchanges, in chronological order.
    pub exchanges: Vec<ExchangeReport>,
    /// Totals of all HTTP exchanges.
    pub serial: dissect::serial::SerialRequests,
    /// Oddities of its capture.
    pub oddities: Oddities,
    /// The side of which nothing was captured, although the other side's packets show that it was active.
    pub missing_direction: Option<Side>,
    /// Long waits that one captured direction does not explain.
    pub unexplained: Duration,
    /// Whether its lost packets were segments of the handshake.
    pub(crate) is_opening_lost: bool,
    /// Use of a key log, if there is one and TLS is spoken.
    pub keys: Option<KeyUse>,
    /// Its packets, if requested.
    pub plot: Option<Plot>,
    /// Facts from the host, if captured live.
    pub host: Option<Box<HostFacts>>,
}

const LOCAL_LOSS: Fix = Fix {
    party: Party::Network,
    change: "look for what drops packets on the host itself: a full listen backlog or receive queue (nstat TcpExtListenDrops \
             TcpExtTCPRcvQDrop), a filter (nft list ruleset), an emulated link (tc qdisc)",
};
const GAVE_UP: Fix = Fix {
    party: Party::ReceivingApplication,
    change: "find out why it gives up: a crash, a timeout, a limit on the size of what it reads",
};
const NGINX_RECEIVE: Fix =
    Fix { party: Party::ServerApplication, change: "nginx: leave rcvbuf= out of listen, or raise it" };
const NGINX_SEND: Fix =
    Fix { party: Party::ServerApplication, change: "nginx: leave sndbuf= out of listen, or raise it" };
const CORK_TIMER: Fix = Fix {
    party: Party::ServerApplication,
    change: "if it sets TCP_CORK or MSG_MORE: clear it after the last piece; Linux holds a partial segment for 200 ms, as long as \
             each of these waits",
};

/// Protocol that carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// A TCP connection, with any content.
    Tcp,
    /// A client's and a server's datagrams, and the connections that the server opened for its responses. Those are
    /// also reported as TCP connections.
    Dhttp,
    /// A QUIC connection, of which only the opening is readable.
    Quic,
}

impl Protocol {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Dhttp => "dhttp",
            Self::Quic => "quic",
        }
    }
}

impl FlowReport {
    /// Returns the fixes for a cause on this connection: datagrams have other timers than TCP, and programs have their
    /// own settings.
    pub fn fixes(&self, cause: Cause) -> &'static [Fix] {
        match (self.protocol, cause) {
            (Protocol::Dhttp, Cause::RetransmissionTimeout) => &datagram_resend::RESENT,
            (Protocol::Tcp, Cause::RetransmissionTimeout) if self.is_opening_lost => &syn_unanswered::LOST,
            (Protocol::Quic, _) => quic::fixes(cause).unwrap_or(cause.about().fixes),
            (Protocol::Dhttp, _) => cause.about().fixes,
            (Protocol::Tcp, _) => {
                Program::of(self.server, self.requests).fixes(cause).unwrap_or(cause.about().fixes)
            }
        }
    }

    /// Returns the fixes for a finding, as far as its side and its host are known: a relay cannot write messages whole, and
    /// nothing on loopback is lost in the air.
    pub fn fixes_of(&self, finding: &Finding) -> Vec<(Party, String)> {
        let Finding { cause, side, .. } = finding;
        let ip = self.server.ip().to_canonical();
        let is_loopback = ip.is_loopback() || ip == self.client.ip().to_canonical();
        let losses = [
            Cause::RetransmissionTimeout,
            Cause::TailLossProbe,
            Cause::FastRetransmit,
            Cause::CongestionWindow,
        ];
        let facts = self.host.as_deref().cloned().unwrap_or_default();
        let [client, server] = facts.programs;
        let program = if *side == Side::Client { client } else { server };
        let mut fixes = match (cause, program.as_deref().and_then(Runtime::named)) {
            (Cause::Nagle | Cause::NagleDelayedAck, Some(runtime)) => runtime.nagle_fixes().to_vec(),
            (_, Some(_) | None) => self.fixes(*cause).to_vec(),
        };
        if is_loopback && losses.contains(cause) {
            fixes.iter_mut().filter(|fix| fix.party == Party::Network).for_each(|fix| *fix = LOCAL_LOSS);
        }
        if *cause == Cause::ResetMidTransfer && *side == Side::Server {
            // The client reset it: settings of a web server are at the other end.
            fixes
                .iter_mut()
                .filter(|fix| fix.party == Party::ReceivingApplication)
                .for_each(|fix| *fix = GAVE_UP);
        }
        if *cause == Cause::ServerThink && self.is_as_long_as_a_cork() {
            fixes.push(CORK_TIMER);
        }
        let is_web = Program::of(self.server, self.requests) == Program::Web;
        match (cause, side) {
            (Cause::ReceiveWindowLimited | Cause::ZeroWindow, Side::Client) if is_web => {
                fixes.push(NGINX_RECEIVE)
            }
            (Cause::SendBufferLimited, Side::Server) if is_web => fixes.push(NGINX_SEND),
            (_, Side::Client | Side::Server) => {}
        }
        let present = |name: &str, value: Option<String>| {
            value.map_or_else(String::new, |value| format!(" (now {name}='{value}')"))
        };
        let [receive, send] = facts.buffers;
        let (receive, send) = (present("tcp_rmem", receive), present("tcp_wmem", send));
        let with_value = |Fix { party, change }: Fix| {
            let value = match party {
                Party::ReceivingKernel if change.contains("tcp_rmem") => receive.as_str(),
                Party::SendingKernel if change.contains("tcp_wmem") => send.as_str(),
                _another => "",
            };
            (party, format!("{change}{value}"))
        };
        fixes.into_iter().map(with_value).collect()
    }

    /// Returns whether every wait for the server took as long as Linux holds a partial segment under TCP_CORK or MSG_MORE:
    /// 200 ms, and some ticks.
    fn is_as_long_as_a_cork(&self) -> bool {
        const CORK_MS: core::ops::RangeInclusive<u64> = 198..=216;
        const ENOUGH: usize = 3;
        let waits = self.findings.iter().filter(|finding| finding.cause == Cause::ServerThink);
        let is_one = |finding: &Finding| CORK_MS.contains(&(finding.lost.as_nanos() / 1_000_000));
        waits.clone().count() >= ENOUGH && waits.clone().all(is_one)
    }

    /// Returns whether any finding is worth fixing.
    pub fn is_worth_fixing(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity.is_worth_fixing())
    }
}

/// Oddities of a capture that are no fault of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Packets that were captured twice.
    pub captured_twice: u64,
    /// Acknowledgements of data that was not captured.
    pub not_captured: u64,
    /// Packets with a timestamp before that of the previous packet.
    pub backwards: u64,
    /// Data reordered by the network.
    pub out_of_order: u64,
    /// Retransmissions of data that had already been acknowledged.
    pub needless: u64,
    /// Packets of QUIC with a frame that is unknown, after which nothing of them is read.
    pub cut: u64,
}
