//! ICMP errors about datagrams that a socket sent.
//!
//! Not the result of a system call: these arrive later, in the socket's error queue.

use std::mem::zeroed;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use super::field_length;
use super::name::{self, NAME_BYTES};

/// Returns a peer of this socket whose port is unreachable, as reported by ICMP; `None` when there are no more reports.
/// Other errors are skipped: a path that is broken now may recover soon.
pub fn refused(socket: &UdpSocket) -> Option<SocketAddr> {
    loop {
        let (name, error) = next_error(socket)?;
        if error == libc::ECONNREFUSED {
            return name::read(&name);
        }
    }
}

/// Returns the next entry of a socket's error queue: the destination address, and the error number.
fn next_error(socket: &UdpSocket) -> Option<(libc::sockaddr_storage, i32)> {
    // SAFETY: both are plain numbers and pointers, for which zero is a value.
    let (mut name, mut header): (libc::sockaddr_storage, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
    // An array of words, aligned as control messages are.
    let mut control = [0_u64; 64];
    header.msg_name = (&raw mut name).cast();
    header.msg_namelen = NAME_BYTES;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = field_length(size_of_val(&control));
    // SAFETY: the header points at a name and at control bytes of the lengths given, which outlive the call. It has
    // no part for the datagram itself, whose bytes are truncated.
    let result = unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    };
    if result < 0 {
        return None;
    }
    // SAFETY: the kernel has filled in the header and its control bytes, which are still there.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    // SAFETY: not null, so it points at a whole control message.
    while let Some(control_header) = unsafe { message.as_ref() } {
        let kind = (control_header.cmsg_level, control_header.cmsg_type);
        if kind == (libc::SOL_IP, libc::IP_RECVERR) || kind == (libc::SOL_IPV6, libc::IPV6_RECVERR) {
            // SAFETY: a message of this kind holds this structure, at any alignment.
            let error =
                unsafe { libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned() };
            return Some((name, i32::try_from(error.ee_errno).unwrap_or(0)));
        }
        // SAFETY: the header and the message are those of above.
        message = unsafe { libc::CMSG_NXTHDR(&raw const header, message) };
    }
    Some((name, 0))
}
