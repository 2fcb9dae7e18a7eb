//! Conversations written as a script, for tests: sender, contents and time of each packet, and whether it arrived;
//! captured at the client, at the server or between them.
//!
//! A line is a time in milliseconds *at the sender*, the sender (`C` or `S`), and words:
//!
//! | word | meaning |
//! | --- | --- |
//! | `syn`, `fin`, `rst` | the flag |
//! | `reopen` | the same SYN again |
//! | `send=N` | N bytes, continuing (or from `seq=N` on) |
//! | `text=...` | these bytes, to the end of the line, `\r\n` for line ends, `\xNN` for any |
//! | `ack=N` | acknowledges up to N; without it, all that has arrived by then |
//! | `sack=N:M` | SACK block: data from N to M behind a gap |
//! | `win=N` | the window; 65,535 without it |
//! | `ts=N:M` | timestamps: the value and the echo |
//! | `mss=N` | the MSS of a SYN; 1,460 without it |
//! | `no-sack` | a SYN that does not permit SACK |
//! | `scale=N` | the window scale of a SYN; no such option without it |
//! | `hex=...` | these bytes |
//! | `client-hello`, `server-hello`, `hello-retry` | these records of TLS 1.3, for HTTP |
//! | `mail-hello` | a Client Hello for another protocol than HTTP |
//! | `records=N,M` | TLS records of application data with bodies of N and M bytes |
//! | `mptcp=...` | an option of Multipath TCP with these bytes |
//! | `bare` | it acknowledges nothing |
//! | `ttl=N` | the TTL; 64 without it |
//! | `number=N` | the number by which its IP ID counts; the sender's next without it |
//! | `lost` | it is seen near its sender and never arrives |
//! | `twice` | it is captured twice |
//! | `missed` | it arrives, but is not captured |
//! | `public` | the server's address is a public one |
//!
//! Not a TCP: every line is sent as written.

use dissect::{Both, Side};
use wire::packet::{Flags, Packet, TcpBuilder, TcpOption};
use wire::{Duration, Time};

use crate::report::{FlowReport, VantagePoint};
use crate::{Diagnosis, Options, PacketPosition, Share};

/// A script, and the one-way delay of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script<'a> {
    pub(crate) one_way_ms: f64,
    pub(crate) lines: &'a str,
}

/// Returns the handshake of most scripts, on a path of `one_way_ms`, followed by `lines`.
pub(crate) fn opened(one_way_ms: f64, lines: &str) -> String {
    let round_trip = 2.0 * one_way_ms;
    format!("0 C syn\n{one_way_ms} S syn\n{round_trip} C\n{lines}")
}

/// Returns the diagnosis at the client of a connection on a path of 15 ms: the handshake, and `lines`.
pub(crate) fn at_client(lines: &str) -> FlowReport {
    Script { one_way_ms: 15.0, lines: &opened(15.0, lines) }.diagnose(VantagePoint::Client)
}

struct ScriptLine {
    sent: f64,
    from: Side,
    flags: Flags,
    seq: Option<u32>,
    ack: Option<u32>,
    /// SACK block, relative to the peer's first byte.
    sack: Option<(u32, u32)>,
    payload: Vec<u8>,
    window: u16,
    mss: u16,
    scale: Option<u8>,
    stamps: Option<(u32, u32)>,
    multipath: Vec<u8>,
    has_sack: bool,
    hop_limit: Option<u8>,
    number: Option<u16>,
    is_bare: bool,
    is_lost: bool,
    is_twice: bool,
    is_missed: bool,
    is_public: bool,
    reopens: bool,
}

impl Script<'_> {
    /// Returns the diagnosis of a capture at `place`.
    pub(crate) fn diagnose(&self, vantage_point: VantagePoint) -> FlowReport {
        Self::diagnosed(self.capture(vantage_point))
    }

    /// Returns the diagnosis of a capture of one direction.
    pub(crate) fn diagnose_only(&self, vantage_point: VantagePoint, side: Side) -> FlowReport {
        let is_of_it = |bytes: &[u8]| {
            let source = Packet::read(bytes).unwrap().sockets().unwrap().0;
            (source.port() == 80) == (side == Side::Server)
        };
        Self::diagnosed(
            self.capture(vantage_point).into_iter().filter(|(_, bytes)| is_of_it(bytes)).collect(),
        )
    }

    pub(crate) fn diagnosed(capture: Vec<(Time, Vec<u8>)>) -> FlowReport {
        let mut diagnosis = Diagnosis::new(Options { is_plotted: true, since: Time::ZERO });
        for (frame, (at, bytes)) in (1..).zip(capture) {
            diagnosis.handle(at, PacketPosition { frame, interface: 0 }, &Packet::read(&bytes).unwrap());
        }
        diagnosis.end();
        let report = diagnosis.poll().unwrap();
        assert!(diagnosis.poll().is_none());
        // All unknown time has a reason.
        assert_eq!(report.doubts.total(), report.account.of(Share::Unknown));
        assert_eq!(report.account.total(), report.elapsed, "the account does not add up");
        report
    }

    /// Returns the diagnosis of a capture whose clock ticks every `tick`.
    pub(crate) fn diagnose_ticks(&self, vantage_point: VantagePoint, tick: Duration) -> FlowReport {
        let ticks = |at: Time| Time::from_nanos(at.as_nanos() / tick.as_nanos() * tick.as_nanos());
        Self::diagnosed(
            self.capture(vantage_point).into_iter().map(|(at, bytes)| (ticks(at), bytes)).collect(),
        )
    }

    /// Returns the packets in the order in which they pass.
    pub(crate) fn capture(&self, vantage_point: VantagePoint) -> Vec<(Time, Vec<u8>)> {
        let mut lines: Vec<ScriptLine> =
            self.lines.lines().filter(|line| !line.trim().is_empty()).map(ScriptLine::read).collect();
        lines.sort_by(|one, other| one.sent.total_cmp(&other.sent));
        let mut next = Both { client: 1_000_u32, server: 5_000_u32 };
        let first = next;
        let mut arrivals: Vec<(f64, Side, u32)> = Vec::new();
        let mut passing: Vec<(f64, Vec<u8>)> = Vec::new();
        let mut numbers = Both { client: 0_u16, server: 0_u16 };
        for line in lines {
            let peer = line.from.other();
            let received = |sent: f64| {
                let received = arrivals.iter().filter(|(at, from, _)| *from == peer && *at <= sent + 1e-6);
                received.map(|(_, _, end)| *end).max()
            };
            let base = |side| first.of(side) + 1;
            let seq = line.seq.map_or(*next.of(line.from), |seq| base(line.from) + seq);
            let seq = if line.reopens { *first.of(line.from) } else { seq };
            let length = u32::try_from(line.payload.len()).unwrap();
            let marks =
                u32::from(line.flags.contains(Flags::SYN)) + u32::from(line.flags.contains(Flags::FIN));
            let end = seq + length + marks;
            *next.of_mut(line.from) = (*next.of(line.from)).max(end);
            let ack = line.ack.map(|ack| base(peer) + ack).or(received(line.sent));
            if !line.is_lost {
                arrivals.push((line.sent + self.one_way_ms, line.from, end));
            }
            let has_passed = match (vantage_point, line.from) {
                (VantagePoint::Client, Side::Client) | (VantagePoint::Server, Side::Server) => 0.0,
                (VantagePoint::Client, Side::Server) | (VantagePoint::Server, Side::Client) => 1.0,
                (VantagePoint::Between | VantagePoint::Unknown, Side::Client | Side::Server) => 0.5,
            };
            *numbers.of_mut(line.from) += 1;
            if line.is_missed || (line.is_lost && has_passed > 0.4) {
                continue;
            }
            let sack = line.sack.map(|(from, to)| (base(peer) + from, base(peer) + to));
            let packet = line.packet(seq, ack, sack, *numbers.of(line.from));
            let at = line.sent + has_passed * self.one_way_ms;
            passing.extend(vec![(at, packet); 1 + usize::from(line.is_twice)]);
        }
        passing.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let time = |ms: f64| Time::ZERO + Duration::from_secs_f64(1.0 + ms / 1e3).unwrap();
        passing.into_iter().map(|(at, packet)| (time(at), packet)).collect()
    }
}

/// `h2` and `http/1.1` in the ALPN of the Client Hello.
const HTTP: &str = "02683208687474702f312e31";
/// Client Hello to `a.example` with a share of X25519 and ALPN `h2`, `http/1.1`.
const CLIENT_HELLO: &str = "160303006c010000680303010101010101010101010101010101010101010101010101010101010101010100000213010100\
    003d0000000e000c000009612e6578616d706c650010000e000c02683208687474702f312e31002b00030203040033000800\
    06001d00026162002d00020101";
/// Server Hello of TLS 1.3 with AES-128-GCM: 17 bytes of each record are encryption.
const SERVER_HELLO: &str = "160303003c020000380303020202020202020202020202020202020202020202020202020202020202020200130100001000\
    2b0002030400330006001d00026364";
/// Hello Retry Request for P-384.
const HELLO_RETRY: &str = "1603030038020000340303cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c00130100000c00\
    2b00020304003300020018";

/// Returns records of application data with bodies of these lengths.
fn tls_records(lengths: &str) -> Vec<u8> {
    let record = |length: &str| {
        let length: u16 = length.parse().unwrap();
        let [high, low] = length.to_be_bytes();
        [vec![23, 3, 3, high, low], vec![0xaa; length.into()]].concat()
    };
    lengths.split(',').flat_map(record).collect()
}

/// Returns the bytes of hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Returns the bytes of a text with `\r\n` and `\xNN`.
fn payload(text: &str) -> Vec<u8> {
    let text = text.trim_end_matches('\n').replace("\\r\\n", "\r\n");
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (number, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(number, 16).unwrap());
        bytes.extend(rest.as_bytes());
    }
    bytes
}

impl ScriptLine {
    fn read(line: &str) -> Self {
        let (line, text) = line.split_once("text=").unwrap_or((line, ""));
        let mut words = line.split_whitespace();
        let sent = words.next().unwrap().parse().unwrap();
        let from = if words.next().unwrap() == "C" { Side::Client } else { Side::Server };
        let mut read = Self {
            sent,
            from,
            flags: Flags::default(),
            seq: None,
            ack: None,
            sack: None,
            payload: payload(text),
            window: u16::MAX,
            mss: 1_460,
            scale: None,
            stamps: None,
            multipath: Vec::new(),
            has_sack: true,
            hop_limit: None,
            number: None,
            is_bare: false,
            is_lost: false,
            is_twice: false,
            is_missed: false,
            is_public: false,
            reopens: false,
        };
        for word in words {
            match word.split_once('=') {
                Some(("send", length)) => read.payload = vec![b'x'; length.parse().unwrap()],
                Some(("seq", seq)) => read.seq = Some(seq.parse().unwrap()),
                Some(("ack", ack)) => read.ack = Some(ack.parse().unwrap()),
                Some(("sack", range)) => {
                    let (from, to) = range.split_once(':').unwrap();
                    read.sack = Some((from.parse().unwrap(), to.parse().unwrap()));
                }
                Some(("number", number)) => read.number = Some(number.parse().unwrap()),
                Some(("ttl", ttl)) => read.hop_limit = Some(ttl.parse().unwrap()),
                Some(("mss", mss)) => read.mss = mss.parse().unwrap(),
                Some(("scale", scale)) => read.scale = Some(scale.parse().unwrap()),
                Some(("hex", digits)) => read.payload = bytes(digits),
                Some(("records", lengths)) => read.payload = tls_records(lengths),
                Some(("mptcp", digits)) => read.multipath = bytes(digits),
                Some(("win", window)) => read.window = window.parse().unwrap(),
                Some(("ts", stamps)) => {
                    let (value, echo) = stamps.split_once(':').unwrap();
                    read.stamps = Some((value.parse().unwrap(), echo.parse().unwrap()));
                }
                Some(_) => panic!("{word}"),
                None => match word {
                    "syn" => read.flags = Flags::SYN,
                    "fin" => read.flags = Flags::FIN,
                    "rst" => read.flags = Flags::RST,
                    "reopen" => (read.flags, read.reopens) = (Flags::SYN, true),
                    "no-sack" => read.has_sack = false,
                    "bare" => read.is_bare = true,
                    "lost" => read.is_lost = true,
                    "twice" => read.is_twice = true,
                    "missed" => read.is_missed = true,
                    "public" => read.is_public = true,
                    "client-hello" => read.payload = bytes(CLIENT_HELLO),
                    "mail-hello" => {
                        read.payload = bytes(&CLIENT_HELLO.replace(HTTP, "02696d08696d617034726576"))
                    }
                    "server-hello" => read.payload = bytes(SERVER_HELLO),
                    "hello-retry" => read.payload = bytes(HELLO_RETRY),
                    other => panic!("{other}"),
                },
            }
        }
        read
    }

    fn packet(&self, seq: u32, ack: Option<u32>, sack: Option<(u32, u32)>, number: u16) -> Vec<u8> {
        let address = if self.is_public { [192, 0, 2, 1] } else { [10, 0, 0, 2] };
        let (client, server) = (([10, 0, 0, 1], 40_000).into(), (address, 80).into());
        let (source, destination) = match self.from {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let mut options = Vec::new();
        if self.flags.contains(Flags::SYN) {
            options.push(TcpOption::Mss(self.mss));
            options.extend(self.has_sack.then_some(TcpOption::SackPermitted));
            options.extend(self.scale.map(TcpOption::WindowScale));
        } else if sack.is_some() {
            options.push(TcpOption::Sack([sack, None, None, None]));
        }
        options.extend(self.stamps.map(|(value, echo)| TcpOption::Timestamps { value, echo }));
        if !self.multipath.is_empty() {
            options.push(TcpOption::Other { kind: 30, data: &self.multipath });
        }
        let options = options.as_slice();
        // A client's SYN acknowledges nothing, whatever it has received before.
        let opens = self.flags.contains(Flags::SYN) && self.from == Side::Client;
        let ack = ack.filter(|_| !opens && !self.is_bare);
        let flags = if ack.is_some() { self.flags | Flags::ACK } else { self.flags };
        let window = self.window;
        let mut packet = Vec::new();
        TcpBuilder { source, destination, seq, ack: ack.unwrap_or(0), flags, window, options }
            .write(&self.payload, &mut packet)
            .unwrap();
        // Hosts number their packets (IP ID); the header checksum is not verified here.
        packet[4..6].copy_from_slice(&(1_000 + self.number.unwrap_or(number)).to_be_bytes());
        packet[8] = self.hop_limit.unwrap_or(packet[8]);
        packet
    }
}

#[cfg(test)]
mod corpus {
    use super::*;

    /// Writes captures of some scripts as seeds for the fuzzer: `ROUNDTRIP_BLESS=1 cargo test -p roundtrip-diagnose
    /// corpus`.
    #[test]
    fn corpus_of_captures_can_be_written() {
        let of = |lines: &str| {
            let lines = opened(15.0, lines);
            let mut bytes: Vec<u8> = [0xa1b2_3c4d_u32, 0x0002_0004, 0, 0, 0xffff, 101]
                .iter()
                .flat_map(|word| word.to_be_bytes())
                .collect();
            for (at, packet) in (Script { one_way_ms: 15.0, lines: &lines }).capture(VantagePoint::Client) {
                let length = u32::try_from(packet.len()).unwrap();
                let [seconds, nanos] = [at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000];
                let words = [u32::try_from(seconds).unwrap(), u32::try_from(nanos).unwrap(), length, length];
                bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
                bytes.extend(packet);
            }
            bytes
        };
        let request = "text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n";
        let chunked =
            "text=HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nhello\\r\\n0\\r\\n\\r\\n";
        let captures = [
        ("nagle", "30 C send=100\n90 S\n105.1 C send=40\n121 S send=500\n136 C".to_owned()),
        ("short_initial_segment", "30 C send=52\n45 S send=226\n45.1 S send=1460\n260 C\n275.2 S send=1460".to_owned()),
        ("zero_window", "30 C send=9 win=2920\n45 S send=1460\n45.1 S send=1460\n60.2 C win=0\n500 C win=5840\n515.1 S send=9".to_owned()),
        ("receive_window", "30 C send=9 win=2920\n45 S send=1460\n45.1 S send=1460\n60.3 C win=2920\n75.4 S send=1460".to_owned()),
        ("fast_retransmit", "30 C send=9\n45 S send=99\n45 S send=99 lost\n45 S send=99\n45 S send=99\n60 C ack=99\n60 C ack=99\n75 S seq=99 send=99\n90 C".to_owned()),
        ("timeouts", "30 C send=100 lost\n230 C seq=0 send=100 lost\n630 C seq=0 send=100\n646 S send=100".to_owned()),
        ("reset", format!("30 C {request}\n30.1 C {request}\n46 S {chunked}\n46.2 S rst")),
        ("pipelined", format!("30 C {request}\n30.1 C {request}\n46 S {chunked}\n200 S {chunked}\n215 C fin\n230 S fin\n245 C")),
        ("expect", "30 C text=PUT / HTTP/1.1\\r\\nExpect: 100-continue\\r\\nContent-Length: 9\\r\\n\\r\\n\n45 S text=HTTP/1.1 100 Continue\\r\\n\\r\\n\n60 C send=9".to_owned()),
        ("twice_and_out_of_order", "30 C send=9 twice\n45 S send=99\n45.2 S seq=198 send=99 number=4\n45.3 S seq=99 send=99 number=3\n60 C twice".to_owned()),
        ("idle_restart", "30 C send=9\n45 S send=9000\n60 C\n3000 C send=9\n3015 S send=1460\n3030 C\n3045 S send=1460".to_owned()),
    ];
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture");
        for (name, lines) in captures {
            let (path, bytes) = (directory.join(name), of(&lines));
            if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
                std::fs::write(&path, &bytes).unwrap();
            }
            assert!(std::fs::read(&path).is_ok_and(|stored| stored == bytes), "{} is stale", path.display());
        }
    }
}
