//! Network between servers and loads: two network namespaces with a virtual link between them, and each end's work on its own
//! CPUs. The link has no rate limit and no delay.
//!
//! Over the loopback interface the sender is charged for the kernel's work at the other end, too: a server that opens
//! connections pays for both ends, and one that accepts them pays for neither handshake. Here a kernel thread receives the
//! packets of an end (`threaded`; Documentation/networking/napi.rst). At the servers' end it runs on their CPU and is charged
//! to them, and at the other end on the others'. A network card does the same, apart from its own work.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use super::scheduling;

/// The network of this run.
pub(crate) enum Network {
    /// One interface for both.
    Loopback,
    /// The servers' namespace; this program is in the other.
    Apart(File),
}

const SERVERS: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);
const LOADERS: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 2);

impl Network {
    /// Two namespaces, which are removed with this program. Must be called while it has one thread.
    ///
    /// # Errors
    /// The missing permission or tool.
    pub(crate) fn apart() -> io::Result<Self> {
        let servers = in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        })?;
        unshare(CloneFlags::CLONE_NEWNET)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), servers.as_raw_fd());
        run(&["ip", "link", "set", "lo", "up"])?;
        run(&["ip", "link", "add", "loaders", "type", "veth", "peer", "name", "servers", "netns", &path])?;
        run(&["ip", "address", "add", &format!("{LOADERS}/30"), "dev", "loaders"])?;
        run(&["ip", "link", "set", "loaders", "up"])?;
        // Every address of it is a local client's.
        run(&["ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo"])?;
        receive_in_thread("loaders")?;
        let network = Self::Apart(servers);
        network.inside(|| {
            run(&["ip", "link", "set", "lo", "up"])?;
            run(&["ip", "address", "add", &format!("{SERVERS}/30"), "dev", "servers"])?;
            run(&["ip", "link", "set", "servers", "up"])?;
            run(&["ip", "route", "add", "10.0.0.0/8", "via", &LOADERS.to_string()])?;
            receive_in_thread("servers")
        })?;
        scheduling::pin_network_threads();
        Ok(network)
    }

    /// Returns the address on which servers listen.
    pub(crate) const fn servers(&self) -> Ipv4Addr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            Self::Apart(_) => SERVERS,
        }
    }

    /// Runs a function in the servers' namespace, in a thread that inherits this one's CPUs.
    pub(crate) fn inside<T: Send>(&self, task: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_thread(|| {
            match self {
                Self::Loopback => {}
                Self::Apart(namespace) => setns(namespace, CloneFlags::CLONE_NEWNET)?,
            }
            task()
        })
    }
}

/// Returns a client address in the network of this server.
pub(crate) fn client(server: SocketAddr, [second, third, fourth]: [u8; 3]) -> IpAddr {
    IpAddr::from([if server.ip().is_loopback() { 127 } else { 10 }, second, third, fourth])
}

fn in_thread<T: Send>(task: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| scope.spawn(task).join().expect("it does not panic"))
}

/// Lets a thread receive the packets of this device.
fn receive_in_thread(device: &str) -> io::Result<()> {
    // `ethtool --offload DEVICE gro on tso off`: segmentation at one end must not save work at the other.
    offload(device, 0x2c, 1)?;
    offload(device, 0x1f, 0)?;
    // A sender waits while the queue is full, instead of losing packets.
    run(&["tc", "qdisc", "add", "dev", device, "root", "pfifo_fast"])?;
    // Only a /sys that was mounted in the namespace shows its devices.
    let script = format!("mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/{device}/threaded");
    run(&["unshare", "--mount", "sh", "-c", &script])
}

/// Sets an offload of a device.
fn offload(device: &str, command: u32, data: u32) -> io::Result<()> {
    /// linux/ethtool.h: `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let mut value = Value { command, data };
    // SAFETY: the structure has plain numbers and pointers, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *target = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the request has a zero-terminated name and points at a value of the command's type; both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn run(words: &[&str]) -> io::Result<()> {
    let output = Command::new(words[0]).args(&words[1..]).output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: {}", words.join(" "), text.trim())))
}
