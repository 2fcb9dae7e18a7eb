//! The work that a network device does for its host: segments cut, segments merged, packets taken by a thread.
//!
//! Set for one end of a cable ([`Netlink::add_cable`](crate::netlink::Netlink::add_cable)), in the calling thread's network
//! namespace. Not for a TUN device, which is given whole packets.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use crate::Error;
use crate::mounts;

/// A kind of work (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Offload {
    /// Segments that were sent as one are cut by the device (`ETHTOOL_STSO`).
    CutSegments = 0x1f,
    /// Segments that arrive one after the other are merged (`ETHTOOL_SGRO`).
    MergeSegments = 0x2c,
}

/// Switches it on or off for a device.
///
/// # Errors
/// When there is no such device, or it cannot.
pub fn set_offload(device: &str, offload: Offload, is_on: bool) -> Result<(), Error> {
    /// linux/ethtool.h: `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let doing = || format!("switch {offload:?} of {device}");
    if device.len() >= libc::IFNAMSIZ {
        return Err(Error::kernel(doing())(Errno::ENODEV));
    }
    let mut value = Value { command: offload as u32, data: u32::from(is_on) };
    // SAFETY: plain numbers and pointers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(Error::io(doing()))?;
    // SAFETY: the request has a name that ends with zero and points at a value of the command's kind; both outlive the call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
    Errno::result(result).map(drop).map_err(Error::kernel(doing()))
}

/// Lets a kernel thread take what arrives at a device (Documentation/networking/napi.rst, "threaded").
///
/// # Errors
/// When the device has nothing of which the kernel could make a thread.
pub fn receive_in_thread(device: &str) -> Result<(), Error> {
    let doing = format!("take what arrives at {device} by a thread");
    mounts::apart(|| {
        // Only a /sys that was mounted in a namespace shows its devices.
        mounts::mount("sysfs", "/sys", "")?;
        fs::write(format!("/sys/class/net/{device}/threaded"), "1").map_err(Error::io(doing))
    })
}
