//! Sockets of servers and clients, with their options and the reasons.
//!
//! Not their use.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Creates a UDP socket that never fragments its datagrams.
pub fn udp(address: SocketAddr, shared: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    prepare(&socket, address, shared)?;
    never_fragment(&socket, address)?;
    // Buffers for a burst; the kernel may grant less.
    socket.set_recv_buffer_size(4 << 20)?;
    socket.set_send_buffer_size(4 << 20)?;
    Ok(socket.into())
}

/// Lets the kernel divert datagrams for other hosts to this socket (`tproxy` of nftables), and report their destinations.
///
/// # Errors
/// The system's error; it requires `CAP_NET_ADMIN`.
pub(crate) fn divert_to_socket(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)?;
    if socket.local_addr()?.is_ipv6() {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1)?;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVORIGDSTADDR, 1)?;
    }
    // Also for IPv4 on a dual-stack socket.
    set(socket, libc::IPPROTO_IP, libc::IP_RECVORIGDSTADDR, 1)
}

/// Creates a client's UDP socket, which also receives ICMP errors about its datagrams.
pub fn udp_of_client(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
    } else {
        set(&socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
    }
    socket.bind(&address.into())?;
    never_fragment(&socket, address)?;
    Ok(socket.into())
}

/// Creates a listener; with `shared`, several may have the same port.
pub fn tcp(address: SocketAddr, shared: bool, fast_open: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    prepare(&socket, address, shared)?;
    if fast_open {
        // Optional: where the kernel does not allow it, there is none.
        let _ = set(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, 256);
    }
    // Responses are complete writes already. Accepted connections inherit the option.
    socket.set_tcp_nodelay(true)?;
    socket.listen(1_024)?;
    Ok(socket.into())
}

/// Accepts a waiting connection, as non-blocking.
pub fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (stream, peer) = acceptfrom_with(listener, flags)?;
    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok()).ok_or(io::ErrorKind::NotConnected)?;
    Ok((stream.into(), peer))
}

/// Begins a connection to a client, from the server's own port if possible.
pub(crate) fn connect(local: SocketAddr, to: SocketAddr, fast_open: bool) -> io::Result<Socket> {
    let to = SocketAddr::new(to.ip().to_canonical(), to.port());
    // Two connections to one client cannot both have the same local port.
    begin(Some(local), to, fast_open).or_else(|_| begin(None, to, fast_open))
}

fn begin(local: Option<SocketAddr>, to: SocketAddr, fast_open: bool) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new_raw(Domain::for_address(to), kind, Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    // The response is ready, so the handshake's final ACK can carry its first bytes.
    set(&socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0)?;
    if fast_open {
        // Optional: where the kernel does not allow it, there is none.
        let _ = set(&socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1);
    }
    if let Some(local) = local {
        let local = SocketAddr::new(local.ip().to_canonical(), local.port());
        if local.is_ipv4() != to.is_ipv4() && !local.ip().is_unspecified() {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let any = match to {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], local.port())),
            SocketAddr::V6(_) => SocketAddr::from(([0_u16; 8], local.port())),
        };
        // As the listener and all other sockets on this port.
        socket.set_reuse_port(true)?;
        socket.bind(&if local.ip().is_unspecified() { any } else { local }.into())?;
    }
    match socket.connect(&to.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Whether the first bytes of an accepted connection came in its SYN (RFC 7413).
pub(crate) fn has_data_in_syn(stream: &impl AsRawFd) -> bool {
    let mut information = [0_u8; size_of::<libc::tcp_info>()];
    let mut length = libc::socklen_t::try_from(information.len()).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes, the size of the buffer, and returns the number written.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            information.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let options = information.get(core::mem::offset_of!(libc::tcp_info, tcpi_options));
    result == 0 && options.is_some_and(|options| options & SYN_DATA != 0)
}

/// `TCPI_OPT_SYN_DATA` (`linux/tcp.h`): data in the SYN was acknowledged.
const SYN_DATA: u8 = 32;

/// Reads this host's TCP Fast Open setting, and whether it lets listeners take data in SYNs.
pub(crate) fn fast_open_setting() -> Option<(u32, bool)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").ok()?;
    let value: u32 = text.trim().parse().ok()?;
    Some((value, value & 2 != 0))
}

/// Returns the bytes that a connection's peer has not acknowledged; 0 if the kernel does not report it.
pub(crate) fn unacknowledged(stream: &impl AsRawFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, which outlives the call.
    let result = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// Makes closing send a reset, so that the client notices missing data.
pub fn reset_on_close(socket: &impl AsFd) {
    // A socket that is closed already needs no reset.
    let _ = SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO));
}

fn prepare(socket: &Socket, address: SocketAddr, shared: bool) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // Listeners start again while connections of an earlier process end. For UDP the option would share the port, with anyone.
    if shared || socket.r#type()? == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    if shared {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())
}

/// Sets don't-fragment and ignores path MTU reports: a forged ICMP message must not shrink datagrams.
fn never_fragment(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv6() {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    }
    // Also for IPv4 on a dual-stack socket.
    match set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE) {
        Err(_) if address.is_ipv6() => Ok(()),
        result => result,
    }
}

/// Size of an `i32`.
const LENGTH: libc::socklen_t = 4;

/// Bytes that the kernel holds for a connection besides those in flight.
const NOTSENT_BYTES: i32 = 128 << 10;

/// Limits what a client that does not read leaves unsent in the kernel, on all connections of a listener, which inherit it. If
/// the option is not supported, the kernel's own limits apply.
pub fn limit_unsent(listener: &TcpListener) {
    let _ = set(listener, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, NOTSENT_BYTES);
}

/// Sets an integer option.
pub fn set(socket: &impl AsRawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the value is a number that outlives the call, of the length given.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), LENGTH) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
