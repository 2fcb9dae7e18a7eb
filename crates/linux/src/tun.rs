//! A TUN device: a network interface whose other end is a file descriptor.
//!
//! Opened in the calling thread's network namespace. It has no vnet headers, so checksums are complete and no packet
//! exceeds the MTU. It has no packet information: a packet begins with its IP header. It is not made persistent:
//! it vanishes with its descriptor. It sets no address and no route; `netlink` does.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;

use crate::Error;
use crate::netlink::Netlink;
use crate::privilege;

/// A TUN device, held by its descriptor. Reads and writes never block.
#[derive(Debug)]
pub struct Tun {
    name: String,
    device: File,
    /// Opened together with the device: it keeps using that namespace, whichever thread calls.
    netlink: Netlink,
}

impl Tun {
    /// Creates the interface `name` (1 to 15 bytes, no slash, no white space) in the calling thread's network
    /// namespace.
    ///
    /// # Errors
    /// The missing device node, right to open it, or right to create an interface; and the remedy.
    pub fn open(name: &str) -> Result<Self, Error> {
        let path = Path::new("/dev/net/tun");
        let request = Request::new(name).ok_or_else(|| invalid_name(name))?;
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| privilege::tun_unavailable(path, &error))?;
        request.attach(&device).map_err(|errno| creation_error(name, errno))?;
        Ok(Self { name: name.to_owned(), device, netlink: Netlink::open()? })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet the kernel sends through the interface, truncated to `buffer`; `None` if there is none
    /// now.
    ///
    /// # Errors
    /// The kernel's error, for instance when the interface is down.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.device).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Passes one packet to the kernel, as if it had just arrived at the interface. The kernel's receiving side
    /// runs within this call.
    ///
    /// # Errors
    /// The kernel's error: the interface is down, or the packet does not begin with an IP header.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.device).write(packet).map(drop)
    }

    /// Number of packets that the kernel has sent to this interface and dropped before they could be read,
    /// since the interface was created (`tx_dropped`: its queue was full, or it was down).
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn lost(&mut self) -> Result<u64, Error> {
        self.netlink.dropped(&self.name)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn invalid_name(name: &str) -> Error {
    Error::InterfaceName(name.to_owned())
}

fn creation_error(name: &str, errno: Errno) -> Error {
    if errno == Errno::EPERM {
        return Error::Forbidden {
            missing: format!(
                "the right to create the interface {name} (CAP_NET_ADMIN in its network namespace)"
            ),
            remedy: "run as root, or where user namespaces are allowed".to_owned(),
        };
    }
    Error::Kernel { doing: format!("create the interface {name}"), errno }
}

const REST_OF_UNION: usize = size_of::<libc::ifreq>() - libc::IFNAMSIZ - size_of::<libc::c_short>();

/// The kernel's `struct ifreq` (netdevice(7)) with the member that TUNSETIFF reads.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest_of_union: [u8; REST_OF_UNION],
}

impl Request {
    /// `None` for an invalid interface name (`dev_valid_name` in the kernel; `%` would make it a pattern).
    fn new(name: &str) -> Option<Self> {
        let is_valid = (1..libc::IFNAMSIZ).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte))
            && !matches!(name, "." | "..");
        let mut padded = [0; libc::IFNAMSIZ];
        padded.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "the kernel reads the field as 16 bits: 0x9001")]
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as libc::c_short;
        is_valid.then_some(Self { name: padded, flags, rest_of_union: [0; REST_OF_UNION] })
    }

    /// Binds the open device to the interface, which is created if it does not exist.
    fn attach(&self, device: &File) -> Result<(), Errno> {
        // SAFETY: the descriptor is open for the length of the call, and TUNSETIFF reads and writes one `struct
        // ifreq`, whose size and layout this type has (asserted below); the kernel's reply in it is not needed, so
        // a copy is passed.
        let result = unsafe {
            let mut copy = Self { ..*self };
            libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &raw mut copy)
        };
        Errno::result(result).map(drop)
    }
}

const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_name_is_refused_before_the_kernel_sees_it() {
        for name in ["", ".", "..", "a/b", "a b", "tun%d", "sixteen_letters_"] {
            let refusal = Tun::open(name).expect_err("no interface has such a name").to_string();
            assert!(refusal.contains("printable characters"), "{name}: {refusal}");
        }
    }

    #[test]
    fn missing_right_is_reported_with_its_remedy() {
        let forbidden = creation_error("client", Errno::EPERM).to_string();
        assert!(forbidden.contains("client") && forbidden.contains("run as root"), "{forbidden}");
    }
}
