//! Drops capabilities of a server, except those for its ports and files, and on routers those for the network.
//!
//! The caller drops them before any thread starts, because threads inherit the set, and binds ports afterwards.

use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Capabilities of `serve`, `gateway` and a cache in front of an origin: low ports, and files that root may read.
pub const SERVER: CapabilitySet =
    CapabilitySet::NET_BIND_SERVICE.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::DAC_READ_SEARCH);

/// Additional capabilities of `nat` and an intercepting cache: rules, and packets from others' addresses.
pub const ROUTER: CapabilitySet = SERVER.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::NET_RAW);

/// Drops every capability but these, for this process and its children, and prevents them from gaining new ones. A process
/// without any of these has no capabilities afterwards. Errors of the kernel are ignored.
pub fn retain_capabilities(retained: CapabilitySet) {
    let _ = set_no_new_privs(true);
    let Ok(current) = rustix::thread::capabilities(None) else { return };
    for capability in CapabilitySet::all().difference(retained).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let sets = CapabilitySets {
        effective: current.effective & retained,
        permitted: current.permitted & retained,
        inheritable: current.inheritable & retained,
    };
    let _ = set_capabilities(None, sets);
}
