//! Stack profiles on the real kernel: pinned in a namespace and read back.

use std::fs;

use measure::profile::Profile;
use scenario::Stack;
use testbed::{End, Namespace};
use wire::Bytes;

#[test]
fn the_stacks_for_a_kernel_can_be_pinned_and_are_read_back() {
    if !test_fixture::has_laboratory() {
        return;
    }
    for stack in ["period", "linux"].map(|name| Stack::named(name).unwrap()) {
        let profile = Profile::of(&stack, Bytes::new(512), End::Client).unwrap();
        let namespace = Namespace::new("server").unwrap();
        let settings = namespace.run(move || profile.pin()).unwrap();
        let sack = settings.iter().find(|setting| setting.name == "net.ipv4.tcp_sack").unwrap();
        assert_eq!(sack.value, if stack.sack { "1" } else { "0" });
    }
    // The caller's own kernel settings are unchanged.
    assert_ne!(fs::read_to_string("/proc/sys/net/ipv4/tcp_no_metrics_save").unwrap().trim(), "1");
}
