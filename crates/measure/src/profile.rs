//! A stack profile in the kernel's terms: sysctls, route metrics, socket options, and shims in the link.
//!
//! Every setting of [`scenario::Stack`] is honoured here or refused by [`crate::fidelity`]. Settings are read
//! back, so that nothing is measured on a kernel that silently differs. Names are those of ip-sysctl.rst,
//! ip-route(8) and tcp(7).
//!
//! The link in front of Linux imitates two behaviours of 1996 that Linux lacks: 4.4BSD's 200 ms heartbeat of
//! ACKs, and a window that counts acknowledgements.

use std::borrow::Cow;
use std::fs;
use std::io::ErrorKind;

use linux::netlink::Metrics;
use linux::privilege::sysctl_path;
use scenario::Stack;
use tcp::stack::{Acks, Congestion, Growth, Idle};
use testbed::advertised_window::SlowStart;
use testbed::{End, PerEnd};
use wire::Bytes;

use crate::Error;
use crate::fidelity::{StackPart, Unreproducible};

/// A stack profile in the kernel's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    sysctls: Vec<Sysctl>,
    /// TCP metrics of each end's route.
    pub metrics: PerEnd<Metrics>,
    /// Whether programs disable Nagle's algorithm (TCP_NODELAY).
    pub nodelay: bool,
    /// Send buffer that programs request (SO_SNDBUF, which the kernel doubles); `None`: the kernel's default.
    pub send_buffer: Option<Bytes>,
    /// Required congestion control of every socket.
    pub congestion: &'static str,
    /// Required payload of a full segment of every socket, bytes.
    pub segment: u32,
    /// Parts of the profile that the link provides instead of the kernel.
    pub shims: Shims,
}

/// Parts of a profile that Linux cannot be set to, provided by the link in front of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shims {
    /// Pure ACKs of less than two segments wait for the next tick of a 200 ms clock ([`testbed::ack_heartbeat`]).
    pub ack_heartbeat: bool,
    /// Maximum advertised window, bytes ([`testbed::advertised_window`]).
    pub largest_window: Option<u16>,
    /// The congestion window of each end opens by one segment per ACK (the same shim).
    pub slow_start: PerEnd<Option<SlowStart>>,
}

/// A setting in force during a run, published with the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name, as documented.
    pub name: String,
    /// Value, as the kernel reports it.
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sysctl {
    name: &'static str,
    value: Cow<'static, str>,
}

impl Profile {
    /// The profile of `stack`, with segments of `mss`, where `opener` opens the connections. Whether the
    /// kernel has every part of the stack is checked by [`crate::fidelity`].
    ///
    /// # Errors
    /// [`Error::Stack`] for a window that cannot be fixed, [`Error::Unsuited`] for an impossible segment
    /// size.
    pub fn of(stack: &Stack, mss: Bytes, opener: End) -> Result<Self, Error> {
        let Stack {
            name: _,
            initial_window,
            acks,
            growth,
            congestion,
            idle: _,
            nagle,
            sack: _,
            timestamps,
            window_scaling: _,
            receive_buffer,
            // Parts that the kernel lacks are refused by [`crate::fidelity`].
            packets,
        } = stack;
        let refused = |part| Error::Stack(Unreproducible { stack: stack.name, part });
        let congestion = match congestion {
            Congestion::Reno => "reno",
            Congestion::Cubic => "cubic",
        };
        let mss = as_u32(mss, "a segment")?;
        // With this setting, the ACK of a server's SYN opens its window by one segment: the client begins with
        // one less.
        let handshake_segments = u16::from(packets.handshake_opens);
        let initial = PerEnd::of(|end| match end == opener {
            true => initial_window.saturating_sub(handshake_segments).max(1),
            false => *initial_window,
        });
        let slow_start = PerEnd::of(|end| match growth {
            Growth::PerSegment => None,
            Growth::PerAcknowledgement => Some(SlowStart { mss, initial: *initial.at(end) }),
        });
        let largest_window = receive_buffer
            .map(|size| u16::try_from(size.get()).map_err(|_| refused(StackPart::ReceiveBuffer)))
            .transpose()?;
        let (ack_heartbeat, quick_acks) = match acks {
            Acks::EverySegment => (false, Some(true)),
            // The kernel acknowledges everything immediately, so that the shim alone decides.
            Acks::Heartbeat => (true, Some(true)),
            Acks::QuickThenDelayed => (false, None),
            Acks::Timer | Acks::Delayed | Acks::NoDelayed => return Err(refused(StackPart::Acks(*acks))),
        };
        let metrics = PerEnd::of(|end| Metrics {
            // It applies to the SYN; Linux raises it later, and the shim prevents that.
            window: largest_window.map(u32::from),
            advertised_mss: Some(mss),
            initial_window: Some(u32::from(*initial.at(end))),
            // A sender must not consider data lost because its ACK is held: 4.3BSD's minimum is 1 s.
            rto_min_ms: ack_heartbeat.then_some(1_000),
            quick_acks,
            congestion: Some(congestion),
        });
        let shims = Shims { ack_heartbeat, largest_window, slow_start };
        let segment = if *timestamps { mss.saturating_sub(TIMESTAMPS) } else { mss };
        let sysctls = sysctls(stack);
        Ok(Self { sysctls, metrics, nodelay: !nagle, send_buffer: None, congestion, segment, shims })
    }

    /// Pins the settings of the calling thread's namespace; returns those in force. To be called before the
    /// first connection.
    pub fn pin(&self) -> Result<Vec<Setting>, Error> {
        self.sysctls.iter().map(Sysctl::pin).chain(REPORTED.iter().map(|name| read(name))).collect()
    }

    /// Settings in force beyond the namespace's: the routes' metrics (which `netlink` has read back), the
    /// sockets' options and the shims.
    pub fn settings(&self) -> Vec<Setting> {
        let Self { sysctls: _, metrics, nodelay, send_buffer, congestion, segment, shims } = self;
        let Metrics { window, advertised_mss, initial_window, rto_min_ms, quick_acks, congestion: _ } =
            &metrics.server;
        let Shims { ack_heartbeat, largest_window, slow_start } = shims;
        let optional =
            |name: &str, value: Option<String>| value.map(|value| Setting { name: name.to_owned(), value });
        let text = |number: &Option<u32>| number.map(|number| number.to_string());
        [
            optional("route congctl lock", Some((*congestion).to_owned())),
            optional("route initcwnd (server)", text(initial_window)),
            optional("route initcwnd (client)", text(&metrics.client.initial_window)),
            optional("route advmss", text(advertised_mss)),
            optional("route window", text(window)),
            optional("route rto_min lock (ms)", text(rto_min_ms)),
            optional("route quickack", quick_acks.map(|quick| u8::from(quick).to_string())),
            optional("TCP_MAXSEG", Some(segment.to_string())),
            optional("TCP_NODELAY", Some(u8::from(*nodelay).to_string())),
            optional("SO_SNDBUF", send_buffer.map(|size| size.get().to_string())),
            optional("link: ACKs wait for a 200 ms heartbeat", ack_heartbeat.then(|| "yes".to_owned())),
            optional("link: window at most", largest_window.map(|bytes| bytes.to_string())),
            optional(
                "link: window opens by one segment per ACK, from",
                slow_start.server.map(|SlowStart { mss: _, initial }| initial.to_string()),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Size of the option in each segment (RFC 7323), padding included.
const TIMESTAMPS: u32 = 12;

/// Settings without the loss recovery and the batching that came after selective acknowledgements, for a
/// stack without them.
const BEFORE_SACK: [Sysctl; 9] = [
    Sysctl::fixed("net.ipv4.tcp_dsack", "0"),
    Sysctl::fixed("net.ipv4.tcp_recovery", "0"),
    Sysctl::fixed("net.ipv4.tcp_early_retrans", "0"),
    Sysctl::fixed("net.ipv4.tcp_frto", "0"),
    Sysctl::fixed("net.ipv4.tcp_ecn", "0"),
    Sysctl::fixed("net.ipv4.tcp_autocorking", "0"),
    Sysctl::fixed("net.ipv4.tcp_fastopen", "0"),
    Sysctl::fixed("net.ipv4.tcp_mtu_probing", "0"),
    Sysctl::fixed("net.ipv4.tcp_min_tso_segs", "1"),
];

/// Not pinned, but published: they may differ between systems.
const REPORTED: [&str; 2] = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

impl Sysctl {
    const fn fixed(name: &'static str, value: &'static str) -> Self {
        Self { name, value: Cow::Borrowed(value) }
    }

    fn pin(&self) -> Result<Setting, Error> {
        let Self { name, value } = self;
        match fs::write(sysctl_path(name), &**value) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(unpinned(name, value, "nothing (this kernel has no such setting)"));
            }
            Err(error) => return Err(Error::io(format!("set {name} to {value}"))(error)),
        }
        let found = read(name)?;
        if found.value == *value { Ok(found) } else { Err(unpinned(name, value, &found.value)) }
    }
}

/// Settings of the namespaces of both hosts.
fn sysctls(stack: &Stack) -> Vec<Sysctl> {
    let on_or_off = |name, on| Sysctl::fixed(name, if on { "1" } else { "0" });
    let mut sysctls = vec![
        on_or_off("net.ipv4.tcp_sack", stack.sack),
        on_or_off("net.ipv4.tcp_timestamps", stack.timestamps),
        on_or_off("net.ipv4.tcp_window_scaling", stack.window_scaling),
        on_or_off("net.ipv4.tcp_slow_start_after_idle", stack.idle == Idle::Restarted),
        on_or_off("net.ipv4.tcp_moderate_rcvbuf", stack.receive_buffer.is_none()),
        // Runs must be independent of one another.
        Sysctl::fixed("net.ipv4.tcp_no_metrics_save", "1"),
    ];
    if !stack.sack {
        sysctls.extend(BEFORE_SACK);
    }
    let name = "net.ipv4.tcp_notsent_lowat";
    let limit = stack.packets.unsent_limit.map(|limit| limit.get().to_string());
    sysctls.extend(limit.map(|limit| Sysctl { name, value: limit.into() }));
    sysctls
}

fn read(name: &str) -> Result<Setting, Error> {
    let value = fs::read_to_string(sysctl_path(name)).map_err(Error::io(format!("read {name}")))?;
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Setting { name: name.to_owned(), value })
}

fn as_u32(size: Bytes, quantity: &str) -> Result<u32, Error> {
    u32::try_from(size.get()).map_err(|_| Error::Unsuited {
        part: format!("{quantity} of {size} on a Linux kernel"),
        remedy: "use a smaller --mss, or another engine".to_owned(),
    })
}

fn unpinned(setting: &str, wanted: &str, found: &str) -> Error {
    let (setting, wanted, found) = (setting.to_owned(), wanted.to_owned(), found.to_owned());
    testbed::Error::Unpinned { setting, wanted, found }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(512);

    fn profile(stack: &str, opener: End) -> Profile {
        Profile::of(&Stack::named(stack).unwrap(), MSS, opener).unwrap()
    }

    #[test]
    fn the_period_profile_leaves_acks_and_growth_to_the_link() {
        let profile = profile("period", End::Client);
        let slow_start =
            PerEnd::of(|end| Some(SlowStart { mss: 512, initial: if end == End::Server { 2 } else { 1 } }));
        assert_eq!(profile.shims, Shims { ack_heartbeat: true, largest_window: Some(16_384), slow_start });
        assert_eq!(profile.metrics.server.window, Some(16_384));
        assert!(profile.nodelay);
        let value =
            |name| profile.sysctls.iter().find(|sysctl| sysctl.name == name).map(|found| &*found.value);
        assert_eq!(value("net.ipv4.tcp_sack"), Some("0"));
        assert_eq!(value("net.ipv4.tcp_early_retrans"), Some("0"));
        assert_eq!(value("net.ipv4.tcp_slow_start_after_idle"), Some("0"));
    }

    #[test]
    fn the_end_that_opens_a_connection_begins_with_a_segment_less_under_bsd_alone() {
        let initial = |stack, opener| {
            let PerEnd { client, server } = profile(stack, opener).metrics;
            (client.initial_window, server.initial_window)
        };
        assert_eq!(initial("period", End::Client), (Some(1), Some(2)));
        assert_eq!(initial("period", End::Server), (Some(2), Some(1)));
        assert_eq!(initial("linux", End::Server), (Some(10), Some(10)));
    }

    #[test]
    fn the_linux_profile_is_the_kernel_as_it_ships_but_for_congestion_control() {
        let profile = profile("linux", End::Client);
        assert_eq!(profile.shims, Shims::default());
        assert_eq!(profile.metrics.client.congestion, Some("cubic"));
        assert_eq!(profile.metrics.client.window, None);
        assert!(profile.sysctls.iter().all(|sysctl| sysctl.value == "1"));
    }
}
