//! The rules of a helper, as text for `nft`, and its pinholes as elements of them.
//!
//! TPROXY diverts requests to this process, and leaves the packets unchanged. A connection is let in if its source address and
//! port are in one of the sets `holes0` to `holes3`. The rule that lets it in deletes the element, so that it lets in one
//! connection; the element also has a lifetime. Where addresses are translated, the map `listeners` holds the destination.
//! Where caches may respond, a hole is for members of `caches`, or of `asked`, the servers that were sent a request. With
//! `by_id`, bytes pass only once the first eight are the id of a request (`papers/dhttp#section-iv-c`: "making holes specific
//! to the request IDs").
//!
//! [`dhttp_proto::translator`] decides when a pinhole is opened.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use dhttp_proto::Prefix;
use dhttp_proto::client::Responders;
use dhttp_proto::translator::{Mapping, Pinhole, SLOTS, Translation};

use super::NatConfig;
use crate::nft::elements::{Element, Elements};
use crate::nft::{Family, Rules, RulesError};

/// Name of the table.
pub(super) const TABLE: &str = "roundtrip_nat";

/// Mark of requests, which are diverted to this process.
const DIVERTED: u32 = 0x7470;

/// Mark of connections that come through a pinhole; other programs' rules may accept it.
pub const PINHOLE_MARK: u32 = 0x7471;

/// Mark of connections whose first bytes were an id.
const PROVED: u32 = 0x7472;

/// Returns the rules.
pub(super) fn rules(config: &NatConfig) -> Rules {
    Rules { family: config.family, table: TABLE, content: content(config), diverted: DIVERTED }
}

/// Returns the same table without content: enough to remove it.
pub(super) const fn empty(family: Family) -> Rules {
    Rules { family, table: TABLE, content: String::new(), diverted: DIVERTED }
}

fn content(config: &NatConfig) -> String {
    let NatConfig { inside, outside, family, port, translator, by_id, closed } = config;
    let (ip, address) = (family.name(), family.address());
    let is_translating = matches!(translator.translation, Translation::To(..));
    let (kind, packet) = key(*family, &translator.translation, translator.responders);
    let mut text = String::new();
    let mut line = |line: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\t{line}");
    };
    for slot in 0..SLOTS {
        line(&format!("set holes{slot} {{ type {kind}; size 65536; flags dynamic,timeout; }}"));
    }
    if is_translating {
        line(&format!("map listeners {{ type inet_service : {address} . inet_service; }}"));
    } else {
        line(&format!("set answers {{ type {address} . inet_service; size 65536; flags dynamic,timeout; }}"));
    }
    if let Responders::Caches(prefixes) = &translator.responders {
        line(&format!("set asked {{ type {address} . inet_service; size 65536; flags dynamic,timeout; }}"));
        let networks: Vec<String> = prefixes
            .iter()
            .filter(|prefix| prefix.is_ipv6() == (*family == Family::Ip6))
            .map(Prefix::to_string)
            .collect();
        let elements = if networks.is_empty() {
            String::new()
        } else {
            format!(" elements = {{ {} }}", networks.join(", "))
        };
        line(&format!("set caches {{ type {address}; flags interval; auto-merge;{elements} }}"));
    }
    if *by_id {
        line("set ids { typeof @ih,0,64; size 65536; flags dynamic,timeout; }");
    }
    let loopback = match family {
        Family::Ip => "127.0.0.1",
        Family::Ip6 => "[::1]",
    };
    line("chain requests {");
    line("\ttype filter hook prerouting priority mangle; policy accept;");
    line(&format!(
        "\tiifname \"{inside}\" fib daddr type unicast udp dport {port} tproxy to {loopback}:{port} meta mark set {DIVERTED:#x} accept"
    ));
    line("}");
    line("chain connections {");
    let (hook, is_new, act) = match &translator.translation {
        Translation::To(to, _) => (
            "type nat hook prerouting priority dstnat - 5",
            format!("{ip} daddr {to}"),
            "dnat to tcp dport map @listeners",
        ),
        Translation::None => {
            ("type filter hook forward priority filter - 5", "ct state new".to_owned(), "accept")
        }
    };
    line(&format!("\t{hook}; policy accept;"));
    let marks = if *by_id {
        format!("meta mark set {PINHOLE_MARK:#x} ct mark set {PINHOLE_MARK:#x}")
    } else {
        format!("meta mark set {PINHOLE_MARK:#x}")
    };
    let source_match = match translator.responders {
        Responders::Server | Responders::AnyHost => vec![String::new()],
        Responders::Caches(_) => {
            vec![format!("{ip} saddr . tcp dport @asked "), format!("{ip} saddr @caches ")]
        }
    };
    for (slot, source_match) in
        (0..SLOTS).flat_map(|slot| source_match.iter().map(move |source_match| (slot, source_match)))
    {
        line(&format!(
            "\tiifname \"{outside}\" {is_new} {source_match}{packet} @holes{slot} delete @holes{slot} {{ {packet} }} {marks} {act}"
        ));
    }
    if !is_translating {
        let source_match = match translator.responders {
            Responders::Server | Responders::AnyHost => String::new(),
            Responders::Caches(_) => format!("{ip} saddr @caches "),
        };
        line(&format!(
            "\tiifname \"{outside}\" ct state new {source_match}{ip} daddr . udp dport @answers meta mark set {PINHOLE_MARK:#x} accept"
        ));
        if *closed {
            line(&format!("\tiifname \"{outside}\" ct state new drop"));
        }
    }
    line("}");
    if *by_id {
        line("chain proof {");
        line("\ttype filter hook forward priority filter - 4; policy accept;");
        line(&format!(
            "\tct mark {PINHOLE_MARK:#x} ct direction original @ih,0,64 @ids delete @ids {{ @ih,0,64 }} ct mark set {PROVED:#x} accept"
        ));
        line(&format!("\tct mark {PINHOLE_MARK:#x} @ih,0,8 0-255 drop"));
        line("}");
    }
    text
}

/// Returns the key of a pinhole: as a type, and as an expression on a packet.
fn key(family: Family, translation: &Translation, responders: Responders) -> (String, String) {
    let (ip, address) = (family.name(), family.address());
    let mut parts = Vec::new();
    match responders {
        Responders::Server => parts.push((address, format!("{ip} saddr"))),
        Responders::AnyHost | Responders::Caches(_) => {}
    }
    match translation {
        Translation::To(..) => {}
        Translation::None => parts.push((address, format!("{ip} daddr"))),
    }
    parts.push(("inet_service", "tcp dport".to_owned()));
    let (types, expressions): (Vec<&str>, Vec<String>) = parts.into_iter().unzip();
    (types.join(" . "), expressions.join(" . "))
}

/// The table's elements.
pub(super) struct Holes {
    elements: Elements,
    is_translating: bool,
    responders: Responders,
    by_id: bool,
}

impl Holes {
    pub(super) fn open(config: &NatConfig) -> Result<Self, RulesError> {
        let is_translating = matches!(config.translator.translation, Translation::To(..));
        let responders = config.translator.responders;
        Ok(Self {
            elements: Elements::open(config.family, TABLE)?,
            is_translating,
            responders,
            by_id: config.by_id,
        })
    }

    /// Adds the internal address to which connections of a mapping are translated.
    pub(super) fn begin(&mut self, mapping: &Mapping) {
        if self.is_translating && mapping.tcp_port != 0 {
            let listener = Some(set_key(mapping.listener()));
            self.elements.add(Element { value: listener, ..element("listeners", port_key(mapping)) });
        }
    }

    pub(super) fn end(&mut self, mapping: &Mapping) {
        if self.is_translating && mapping.tcp_port != 0 {
            self.elements.delete(element("listeners", port_key(mapping)));
        }
    }

    pub(super) fn admit_server(&mut self, hole: &Pinhole) {
        let lifetime = Some(hole.lifetime);
        self.elements.add(Element { lifetime, ..element(&holes(hole.slot), self.key(hole)) });
        if let (Responders::Caches(_), Some(server)) = (self.responders, hole.server) {
            let key = set_key(SocketAddr::new(server, hole.outside.port()));
            self.elements.add(Element { lifetime, ..element("asked", key) });
        }
        if self.by_id {
            self.elements.add(Element { lifetime, ..element("ids", hole.id.to_bytes().to_vec()) });
        }
    }

    pub(super) fn close(&mut self, hole: &Pinhole) {
        self.elements.delete(element(&holes(hole.slot), self.key(hole)));
        if self.by_id {
            self.elements.delete(element("ids", hole.id.to_bytes().to_vec()));
        }
    }

    /// Lets datagrams of any host in, to the source of a request.
    pub(super) fn admit_any_host(&mut self, client: SocketAddr, lifetime: wire::Duration) {
        self.elements.add(Element { lifetime: Some(lifetime), ..element("answers", set_key(client)) });
    }

    /// Applies all of these changes in one step.
    pub(super) fn commit(&mut self) -> Result<(), RulesError> {
        self.elements.commit()
    }

    fn key(&self, hole: &Pinhole) -> Vec<u8> {
        let mut key = match (self.responders, hole.server) {
            (Responders::Server, Some(server)) => octets(server),
            (Responders::Server, None) | (Responders::Caches(_) | Responders::AnyHost, _) => Vec::new(),
        };
        if !self.is_translating {
            key.extend(octets(hole.outside.ip()));
        }
        key.extend(hole.outside.port().to_be_bytes());
        // The parts of a concatenation are padded; a single one is not.
        if key.len() > 2 {
            key.extend([0; 2]);
        }
        key
    }
}

fn element(set: &str, key: Vec<u8>) -> Element {
    Element { set: set.to_owned(), key, value: None, lifetime: None }
}

/// Returns the outside port of a mapping as a key.
fn port_key(mapping: &Mapping) -> Vec<u8> {
    mapping.outside.port().to_be_bytes().to_vec()
}

fn holes(slot: u8) -> String {
    format!("holes{slot}")
}

/// Returns an address and a port as a key of the sets.
fn set_key(socket: SocketAddr) -> Vec<u8> {
    [&octets(socket.ip())[..], &socket.port().to_be_bytes(), &[0; 2]].concat()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
