//! What a stack profile means on this kernel: sysctls, route metrics, socket options, and shims in the link.
//!
//! Every knob of [`scenario::Stack`] is honoured here or refused; what was set is read back, so that nothing is
//! measured on a kernel that quietly does otherwise. Names are those of ip-sysctl.rst, ip-route(8) and tcp(7).
//!
//! Not an implementation of TCP: where Linux cannot be held to 1996 (4.4BSD's 200 ms heartbeat of ACKs, a window
//! that counts acknowledgements), the link in front of it is.

use std::fs;
use std::io::ErrorKind;

use scenario::Stack;
use scenario::stack::packets::Sharing;
use scenario::stack::{Acks, Congestion, Growth, Idle};
use wire::Bytes;

use crate::Error;
use crate::advertised_window::SlowStart;
use crate::netlink::Metrics;
use crate::privilege::sysctl_path;

/// A stack profile in the kernel's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    sysctls: Vec<Sysctl>,
    /// What the routes of both ends say to TCP.
    pub metrics: Metrics,
    /// Whether programs turn Nagle's algorithm off (TCP_NODELAY).
    pub nodelay: bool,
    /// What programs ask the kernel to hold for them (SO_SNDBUF, which it doubles); `None`: as it will.
    pub send_buffer: Option<Bytes>,
    /// The congestion control every socket must turn out to have.
    pub congestion: &'static str,
    /// The payload of a full segment every socket must turn out to send, bytes.
    pub segment: u32,
    /// What the link does in the kernel's stead.
    pub shims: Shims,
}

/// What Linux cannot be told, and the link in front of it therefore does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shims {
    /// Pure ACKs of less than two segments wait for the next tick of a 200 ms clock ([`crate::ack_heartbeat`]).
    pub ack_heartbeat: bool,
    /// No larger window is advertised, bytes ([`crate::advertised_window`]).
    pub largest_window: Option<u16>,
    /// The server's window opens by one segment per ACK (the same shim).
    pub slow_start: Option<SlowStart>,
}

/// One setting in force during a run: what a result is published with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As a user would look it up.
    pub name: String,
    /// As the kernel tells it.
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sysctl {
    name: &'static str,
    value: &'static str,
}

impl Profile {
    /// The profile of `stack`, with segments of `mss`.
    ///
    /// # Errors
    /// [`Error::Unsuited`] for what no setting and no shim gives.
    pub fn of(stack: &Stack, mss: Bytes) -> Result<Self, Error> {
        let Stack {
            name: _,
            initial_window,
            acks,
            growth,
            congestion,
            idle,
            nagle,
            sack,
            timestamps,
            window_scaling,
            receive_buffer,
            packets,
        } = stack;
        // For all else there the kernel has its own.
        match packets.sharing {
            Sharing::None => {}
            Sharing::Temporal | Sharing::Ensemble => {
                return Err(unsuited("a window that connections have together, or learn from one another"));
            }
        }
        let congestion = match congestion {
            Congestion::Reno => "reno",
            Congestion::Cubic => "cubic",
        };
        if *idle == Idle::Paced {
            return Err(unsuited("a window that is paced after idle"));
        }
        let mss = as_u32(mss, "a segment")?;
        let slow_start = match (growth, idle, window_scaling) {
            (Growth::PerSegment, Idle::Kept | Idle::Restarted | Idle::Paced, true | false) => None,
            (Growth::PerAcknowledgement, Idle::Kept | Idle::Paced, false) => {
                Some(SlowStart { mss, initial: *initial_window })
            }
            (Growth::PerAcknowledgement, Idle::Kept | Idle::Paced, true) => {
                return Err(unsuited("a window that opens per acknowledgement, with window scaling"));
            }
            (Growth::PerAcknowledgement, Idle::Restarted, true | false) => {
                return Err(unsuited("a window that opens per acknowledgement and restarts after idle"));
            }
        };
        let largest_window = match (receive_buffer, window_scaling) {
            (None, true | false) => None,
            (Some(_), true) => return Err(unsuited("a fixed receive buffer with window scaling")),
            (Some(size), false) => Some(
                u16::try_from(size.get()).map_err(|_| unsuited(&format!("an unscaled window of {size}")))?,
            ),
        };
        let mut sysctls = vec![
            on_or_off("net.ipv4.tcp_sack", *sack),
            on_or_off("net.ipv4.tcp_timestamps", *timestamps),
            on_or_off("net.ipv4.tcp_window_scaling", *window_scaling),
            on_or_off("net.ipv4.tcp_slow_start_after_idle", *idle == Idle::Restarted),
            on_or_off("net.ipv4.tcp_moderate_rcvbuf", receive_buffer.is_none()),
            // Runs must not learn from one another.
            Sysctl { name: "net.ipv4.tcp_no_metrics_save", value: "1" },
        ];
        if !sack {
            sysctls.extend(BEFORE_SACK);
        }
        let (ack_heartbeat, quick_acks) = match acks {
            Acks::EverySegment => (false, Some(true)),
            // The kernel acknowledges everything at once, so that the shim alone decides.
            Acks::Heartbeat => (true, Some(true)),
            Acks::QuickThenDelayed => (false, None),
            Acks::Timer => return Err(unsuited("a timer per connection for the odd segment's ACK")),
            Acks::Delayed => return Err(unsuited("a delayed ACK at the end of each flight")),
            Acks::NoDelayed => return Err(unsuited("an odd segment that is never acknowledged by itself")),
        };
        let metrics = Metrics {
            // It holds for the SYN; Linux moves on from it, and the shim does not let it.
            window: largest_window.map(u32::from),
            advertised_mss: Some(mss),
            initial_window: Some(u32::from(*initial_window)),
            // A sender must not take for lost what a held ACK is late to confirm: 4.3BSD's least is 1 s.
            rto_min_ms: ack_heartbeat.then_some(1_000),
            quick_acks,
            congestion: Some(congestion),
        };
        let shims = Shims { ack_heartbeat, largest_window, slow_start };
        let segment = if *timestamps { mss.saturating_sub(TIMESTAMPS) } else { mss };
        Ok(Self { sysctls, metrics, nodelay: !nagle, send_buffer: None, congestion, segment, shims })
    }

    /// Pins what belongs to the whole namespace the calling thread is in; returns what is in force. To be
    /// called before any link is made: IPv6 would greet it.
    pub fn pin(&self) -> Result<Vec<Setting>, Error> {
        silence_ipv6()?;
        self.sysctls.iter().map(Sysctl::pin).chain(REPORTED.iter().map(|name| read(name))).collect()
    }

    /// What is in force beyond the namespace's settings: the routes' metrics (which `netlink` has read back),
    /// the sockets' options and the shims.
    pub fn settings(&self) -> Vec<Setting> {
        let Self { sysctls: _, metrics, nodelay, send_buffer, congestion, segment, shims } = self;
        let Metrics { window, advertised_mss, initial_window, rto_min_ms, quick_acks, congestion: _ } =
            metrics;
        let Shims { ack_heartbeat, largest_window, slow_start } = shims;
        let some =
            |name: &str, value: Option<String>| value.map(|value| Setting { name: name.to_owned(), value });
        let text = |number: &Option<u32>| number.map(|number| number.to_string());
        [
            some("route congctl lock", Some((*congestion).to_owned())),
            some("route initcwnd", text(initial_window)),
            some("route advmss", text(advertised_mss)),
            some("route window", text(window)),
            some("route rto_min lock (ms)", text(rto_min_ms)),
            some("route quickack", quick_acks.map(|quick| u8::from(quick).to_string())),
            some("TCP_MAXSEG", Some(segment.to_string())),
            some("TCP_NODELAY", Some(u8::from(*nodelay).to_string())),
            some("SO_SNDBUF", send_buffer.map(|size| size.get().to_string())),
            some("link: ACKs wait for a 200 ms heartbeat", ack_heartbeat.then(|| "yes".to_owned())),
            some("link: window at most", largest_window.map(|bytes| bytes.to_string())),
            some(
                "link: window opens by one segment per ACK, from",
                slow_start.map(|SlowStart { mss: _, initial }| initial.to_string()),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What the option takes of each segment (RFC 7323), padding included.
const TIMESTAMPS: u32 = 12;

/// The loss recovery and the batching that came after selective acknowledgements, for a stack without them.
const BEFORE_SACK: [Sysctl; 9] = [
    Sysctl { name: "net.ipv4.tcp_dsack", value: "0" },
    Sysctl { name: "net.ipv4.tcp_recovery", value: "0" },
    Sysctl { name: "net.ipv4.tcp_early_retrans", value: "0" },
    Sysctl { name: "net.ipv4.tcp_frto", value: "0" },
    Sysctl { name: "net.ipv4.tcp_ecn", value: "0" },
    Sysctl { name: "net.ipv4.tcp_autocorking", value: "0" },
    Sysctl { name: "net.ipv4.tcp_fastopen", value: "0" },
    Sysctl { name: "net.ipv4.tcp_mtu_probing", value: "0" },
    Sysctl { name: "net.ipv4.tcp_min_tso_segs", value: "1" },
];

/// Not pinned, but published: they may differ from system to system.
const REPORTED: [&str; 2] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

impl Sysctl {
    fn pin(&self) -> Result<Setting, Error> {
        let Self { name, value } = *self;
        match fs::write(sysctl_path(name), value) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(unpinned(name, value, "nothing (this kernel has no such setting)"));
            }
            Err(error) => return Err(Error::io(format!("set {name} to {value}"))(error)),
        }
        let found = read(name)?;
        if found.value == value { Ok(found) } else { Err(unpinned(name, value, &found.value)) }
    }
}

/// IPv6 greets every link it sees, and would be counted; a kernel without IPv6 is as silent.
fn silence_ipv6() -> Result<(), Error> {
    const SETTINGS: [&str; 2] = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
    for name in SETTINGS {
        match fs::write(sysctl_path(name), "1") {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(format!("set {name} to 1"))(error)),
        }
    }
    Ok(())
}

fn read(name: &str) -> Result<Setting, Error> {
    let value = fs::read_to_string(sysctl_path(name)).map_err(Error::io(format!("read {name}")))?;
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Setting { name: name.to_owned(), value })
}

const fn on_or_off(name: &'static str, on: bool) -> Sysctl {
    Sysctl { name, value: if on { "1" } else { "0" } }
}

fn as_u32(size: Bytes, what: &str) -> Result<u32, Error> {
    u32::try_from(size.get()).map_err(|_| unsuited(&format!("{what} of {size}")))
}

fn unsuited(part: &str) -> Error {
    Error::Unsuited {
        part: format!("{part}, on a Linux kernel"),
        remedy: "choose --stack period or linux, or another engine".to_owned(),
    }
}

fn unpinned(setting: &str, wanted: &str, found: &str) -> Error {
    Error::Unpinned { setting: setting.to_owned(), wanted: wanted.to_owned(), found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(512);

    #[test]
    fn the_period_profile_leaves_acks_and_growth_to_the_link() {
        let profile = Profile::of(&Stack::named("period").unwrap(), MSS).unwrap();
        assert_eq!(
            profile.shims,
            Shims {
                ack_heartbeat: true,
                largest_window: Some(16_384),
                slow_start: Some(SlowStart { mss: 512, initial: 2 })
            }
        );
        assert_eq!(profile.metrics.initial_window, Some(2));
        assert_eq!(profile.metrics.window, Some(16_384));
        assert!(profile.nodelay);
        let value = |name| profile.sysctls.iter().find(|sysctl| sysctl.name == name).map(|found| found.value);
        assert_eq!(value("net.ipv4.tcp_sack"), Some("0"));
        assert_eq!(value("net.ipv4.tcp_early_retrans"), Some("0"));
        assert_eq!(value("net.ipv4.tcp_slow_start_after_idle"), Some("0"));
    }

    #[test]
    fn the_linux_profile_is_the_kernel_as_it_ships_but_for_congestion_control() {
        let profile = Profile::of(&Stack::named("linux").unwrap(), MSS).unwrap();
        assert_eq!(profile.shims, Shims::default());
        assert_eq!(profile.metrics.congestion, Some("cubic"));
        assert_eq!(profile.metrics.window, None);
        assert!(profile.sysctls.iter().all(|sysctl| sysctl.value == "1"));
    }

    #[test]
    fn what_no_kernel_does_is_refused_with_a_remedy() {
        let period = Stack::named("period").unwrap();
        let impossible = [
            Stack { acks: Acks::NoDelayed, ..period.clone() },
            Stack { acks: Acks::Delayed, ..period.clone() },
            Stack { window_scaling: true, ..period.clone() },
            Stack { idle: Idle::Restarted, ..period.clone() },
            Stack { receive_buffer: Some(Bytes::new(65_536)), ..period },
        ];
        for stack in impossible {
            let refusal = Profile::of(&stack, MSS).unwrap_err().to_string();
            assert!(refusal.contains("--stack period"), "{refusal}");
        }
    }
}
