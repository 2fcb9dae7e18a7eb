//! The note's hosts: stated properties, properties derived from its byte counts, and fitted ones
//! (`papers/w3c#networks`, its Table 2).
//!
//! Stacks are `scenario`'s profiles, with the note's changes. Only fitted times are included: connections cost
//! a server nothing, and there are no disks.

use std::num::NonZeroUsize;

use fetch::{Flush, Pipelining};
use http1::message::WritePolicy;
use scenario::{Network, Stack};
use simulate::web::{BrowserTimes, HeadSizes, ServerTimes};
use tcp::stack::packets::Rto;
use wire::{Bytes, Duration, Rate, modem};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Software {
    /// 1.06, written in Java and interpreted.
    Jigsaw,
    /// 1.2b10.
    Apache,
}

/// Location of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientLocation {
    /// On the server's Ethernet.
    Lan,
    /// On the other coast.
    Wan,
    /// Behind a modem.
    Ppp,
}

/// "The result is an average request size of around 190 bytes."
pub const REQUEST: Bytes = Bytes::new(190);

impl Software {
    /// Sizes of responses' header sections: bytes of Tables 4 and 5 without the page and requests of 190 bytes, divided by 43.
    /// HTTP/1.0 in revalidation: 61,117 and 60,605 with the document. HTTP/1.1 in the first visit: 191,843 and 189,023; in
    /// revalidation: 17,694 and 14,009.
    pub fn heads(self, is_http10: bool) -> HeadSizes {
        let (object, unchanged) = match (self, is_http10) {
            (Self::Jigsaw, true) => (231, 221),
            (Self::Jigsaw, false) => (288, 221),
            (Self::Apache, true) => (219, 136),
            (Self::Apache, false) => (222, 136),
        };
        HeadSizes { object: Some(object), unchanged: Some(unchanged) }
    }

    /// Processing time of a response: fitted to the seconds of pipelined revalidation on the LAN.
    pub const fn times(self) -> ServerTimes {
        let request = match self {
            Self::Jigsaw => Duration::from_micros(12_000),
            Self::Apache => Duration::from_micros(4_900),
        };
        ServerTimes { connection: Duration::ZERO, opening: Duration::ZERO, request, write: Duration::ZERO }
    }

    /// Times of its client, fitted on the LAN. Before each write of requests: to unpipelined revalidation, for each
    /// server. For each kilobyte: to Apache's unpipelined first visit. For each connection: to Apache's revalidation
    /// by HTTP/1.0.
    pub const fn client_times(self) -> BrowserTimes {
        let request = match self {
            Self::Jigsaw => Duration::from_micros(7_700),
            Self::Apache => Duration::from_micros(3_400),
        };
        BrowserTimes {
            connection: Duration::from_micros(2_400),
            request,
            kilobyte: Duration::from_micros(1_400),
            file: Duration::ZERO,
        }
    }
}

impl ClientLocation {
    /// The path. Bandwidths are those of the model's authors (`papers/heidemann-model#table-2`), round trips the note's own.
    pub fn network(self) -> Network {
        let (name, rtt) = match self {
            Self::Lan => ("n-ethernet", Duration::from_micros(700)),
            Self::Wan => ("n-fast-internet", Duration::from_millis(90)),
            Self::Ppp => ("n-modem", Duration::from_millis(150)),
        };
        let mut network = Network::named(name).expect("a network of the catalogue");
        network.rtt = rtt;
        match self {
            Self::Lan | Self::Wan => {}
            Self::Ppp => {
                network.rate = LINK_RATE;
                network.modem = Some(MODEM);
            }
        }
        network
    }

    /// Both ends, with the changes that the note states: "we turned the Nagle algorithm off in both the client and the server".
    pub fn stacks(self) -> Stacks {
        let client = match self {
            // "UNIX 4.0" of Digital, whose TCP is 4.4BSD's.
            Self::Lan | Self::Wan => "bsd-4.4",
            Self::Ppp => "nt-4.0",
        };
        let mut stacks = Stacks { client: named(client), server: named("solaris-2.5") };
        stacks.client.nagle = false;
        stacks.server.nagle = false;
        // "Working around the TCP problems we uncovered": Solaris 2.5 retransmitted too early (Sun's bug 1233827). The
        // fix of May 1996 was `tcp_rexmit_interval_min` and `_initial` of 3 s.
        stacks.server.packets.rto.initial = SOLARIS_FIXED_RTO;
        stacks.server.packets.rto.min = SOLARIS_FIXED_RTO;
        // Of NT's first retransmission timeouts only the initial value is published, 3 s. The bytes of Tables 8 and 9
        // show that it retransmitted nothing.
        if self == Self::Ppp {
            stacks.client.packets.rto.min = SOLARIS_FIXED_RTO;
        }
        stacks
    }
}

const SOLARIS_FIXED_RTO: Duration = Duration::from_secs(3);

/// Retransmission timers of Solaris 2.5 without that fix: those of the catalogue.
pub fn unfixed() -> Rto {
    named("solaris-2.5").packets.rto
}

/// Two stacks.
pub struct Stacks {
    /// The client's.
    pub client: Stack,
    /// The server's.
    pub server: Stack,
}

/// "28.8k modem line".
pub const LINK_RATE: Rate = Rate::from_bits_per_second(28_800).expect("above zero");
/// It corrects errors and does not compress: at 28.8 kbit/s the bytes take the times of Tables 8 and 9 and of the
/// note's compression test. 67 packets of 42 kB take 12.5 s there, and took 12.2 s.
pub const MODEM: modem::Config = modem::Config { dictionary: None, port: None, compresses_headers: false };

/// Apache's buffer (`papers/p-http#section-2-3`); nothing suggests that Jigsaw's was another.
pub fn writes() -> WritePolicy {
    let size = NonZeroUsize::new(4096);
    WritePolicy { head_apart: false, buffer: size, gather: size }
}

/// "We modified the robot to force a flush after issuing the first request on the HTML document and then buffer the
/// following requests": 1024 bytes, 50 ms.
pub fn tuned() -> Pipelining {
    Pipelining { flush: Flush::First, ..Pipelining::default() }
}

fn named(stack: &str) -> Stack {
    Stack::named(stack).expect("a stack of the catalogue")
}
