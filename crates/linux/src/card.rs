//! Offloads of a network device: segmentation, receive merging (GRO), packet processing in a thread.
//!
//! Set for one end of a cable ([`Netlink::add_cable`](crate::netlink::Netlink::add_cable)), in the calling
//! thread's network namespace. Not for a TUN device, which is given whole packets.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use crate::Error;
use crate::mounts;

/// An offload (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Offload {
    /// TCP segmentation offload: the device splits large segments (`ETHTOOL_STSO`).
    CutSegments = 0x1f,
    /// Generic segmentation offload: segments are split just before the device (`ETHTOOL_SGSO`).
    CutSegmentsLate = 0x24,
    /// Generic receive offload: consecutive segments are merged (`ETHTOOL_SGRO`).
    MergeSegments = 0x2c,
}

/// Switches an offload on or off for a device.
///
/// # Errors
/// If there is no such device, or it does not support the offload.
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
    for (target, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *target = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(Error::io(doing()))?;
    // SAFETY: the request has a NUL-terminated name and points at a value of the command's type; both outlive
    // the call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
    Errno::result(result).map(drop).map_err(Error::kernel(doing()))
}

/// Makes a kernel thread process packets received by a device (Documentation/networking/napi.rst,
/// "threaded").
///
/// # Errors
/// If the device does not support threaded NAPI.
pub fn receive_in_thread(device: &str) -> Result<(), Error> {
    let doing = format!("start the thread that reads from {device}");
    mounts::apart(|| {
        // Only a /sys mounted in a namespace shows that namespace's devices.
        mounts::mount("sysfs", "/sys", "")?;
        fs::write(format!("/sys/class/net/{device}/threaded"), "1").map_err(Error::io(doing))
    })
}
