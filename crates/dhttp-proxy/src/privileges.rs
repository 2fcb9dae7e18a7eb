//! Drops capabilities of a server, except those for its ports and files, and on routers those for the network.
//!
//! The caller drops them before any thread starts, because threads inherit the set, and binds ports afterwards. Once its files
//! and ports are known, those that they do not need are dropped, too: usually all.

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

/// Rights to other users' files.
const FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH);

/// Drops the right to ports below 1024, unless there is one, and those to other users' files, if `is_accessible` is true without
/// them. Returns whether none of these is left for files. Errors of the kernel are ignored.
pub(crate) fn release(has_low_port: bool, is_accessible: impl FnOnce() -> bool) -> bool {
    let Ok(before) = rustix::thread::capabilities(None) else { return true };
    let ports = if has_low_port { CapabilitySet::empty() } else { CapabilitySet::NET_BIND_SERVICE };
    let without = |dropped: CapabilitySet| CapabilitySets {
        effective: before.effective - dropped,
        permitted: before.permitted - dropped,
        inheritable: before.inheritable - dropped,
    };
    // Held, but without effect: as the files would be opened without them.
    let _ = set_capabilities(None, CapabilitySets { permitted: before.permitted, ..without(FILES) });
    let is_accessible = is_accessible();
    let _ = set_capabilities(None, without(if is_accessible { FILES | ports } else { ports }));
    is_accessible
}
