//! Part of a connection's report that only a live capture knows.

/// Facts about one connection of a live capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// Names of the programs at the client's and the server's end, as far as they run on this host.
    pub programs: [Option<String>; 2],
    /// Present values of `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem`.
    pub buffers: [Option<String>; 2],
}
