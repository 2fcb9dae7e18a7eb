//! Rights that a server keeps: those for its ports and files, and on routers those for the network.
//!
//! Given up before there are threads, which inherit what is left; ports are bound afterwards with what is kept.

use dhttp_proxy::confinement::Paths;
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Capabilities of `serve`, `gateway` and a cache in front of an origin: low ports, and files that root may read.
pub const SERVER: CapabilitySet =
    CapabilitySet::NET_BIND_SERVICE.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::DAC_READ_SEARCH);

/// Additional capabilities of `nat` and an intercepting cache: rules, and packets from others' addresses.
pub const ROUTER: CapabilitySet = SERVER.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::NET_RAW);

/// Confines the process to these files; logs a line where the kernel cannot.
pub fn confine(paths: &Paths) {
    if let Some(line) = paths.confine() {
        eprintln!("roundtrip: {line}");
    }
}

/// Gives up every capability but these, for this process and what it starts, and the way to get new ones. A process that
/// has none of them has none afterwards; what the kernel refuses is as it was.
pub fn keep(retained: CapabilitySet) {
    let _ = set_no_new_privs(true);
    let Ok(now) = rustix::thread::capabilities(None) else { return };
    for capability in CapabilitySet::all().difference(retained).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let sets = CapabilitySets {
        effective: now.effective & retained,
        permitted: now.permitted & retained,
        inheritable: now.inheritable & retained,
    };
    let _ = set_capabilities(None, sets);
}
