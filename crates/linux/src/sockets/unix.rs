//! Pairs of connected Unix sockets, by the inodes of their files. From sock_diag(7) and `linux/unix_diag.h`.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, NetlinkAddr, sendto};

use super::{NLM_F_DUMP, REPLY, SOCK_DIAG_BY_FAMILY, open_socket, read};
use crate::Error;
use crate::netlink_message::{Attributes, Message};

/// Length of `struct unix_diag_msg`.
const HEADER: usize = 16;
const UNIX_DIAG_PEER: u16 = 2;

/// Lists the connected Unix sockets of this network namespace: for the inode of each that of the other end.
///
/// # Errors
/// The kernel's error, such as that it has no `unix_diag`.
pub fn unix_pairs() -> Result<BTreeMap<u64, u64>, Error> {
    let refused = || Error::kernel("list the kernel's Unix sockets");
    let socket = open_socket()?;
    sendto(socket.as_raw_fd(), &request().finish(1), &NetlinkAddr::new(0, 0), MsgFlags::empty())
        .map_err(refused())?;
    let mut pairs = BTreeMap::new();
    read(&socket, &mut vec![0; REPLY], &mut |body| pairs.extend(pair(body))).map_err(refused())?;
    Ok(pairs)
}

/// `struct unix_diag_req`: all sockets in any state, with their peers.
fn request() -> Message {
    const AF_UNIX: u8 = 1;
    const ANY_STATE: u32 = u32::MAX;
    const UDIAG_SHOW_PEER: u32 = 4;
    let mut message = Message::new(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
    message.put(&[AF_UNIX, 0, 0, 0]);
    // The inode, which a list ignores, is third, the cookie last.
    for word in [ANY_STATE, 0, UDIAG_SHOW_PEER, u32::MAX, u32::MAX] {
        message.put(&word.to_ne_bytes());
    }
    message
}

fn pair(body: &[u8]) -> Option<(u64, u64)> {
    let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from(u32::from_ne_bytes(*bytes)));
    let peer = Attributes::after(body, HEADER).find(|(kind, _)| *kind == UNIX_DIAG_PEER)?;
    // Of one that waits to be accepted the peer has no inode yet.
    Some((number(body.get(4..)?)?, number(peer.1)?)).filter(|(_, peer)| *peer > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_listed() {
        let (one, other) = UnixStream::pair().unwrap();
        let inode = |descriptor: i32| {
            let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
            link.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
        };
        let [one, other]: [u64; 2] = [one.as_raw_fd(), other.as_raw_fd()].map(inode);
        let pairs = unix_pairs().unwrap();
        assert_eq!((pairs.get(&one), pairs.get(&other)), (Some(&other), Some(&one)));
    }

    #[test]
    fn a_socket_without_a_peer_or_a_truncated_message_is_no_pair() {
        let mut body = vec![1, 1, 1, 0];
        body.extend([7_u32, 0, 0].map(u32::to_ne_bytes).concat());
        assert_eq!(pair(&body), None);
        body.extend([8, 0, 2, 0, 9, 0, 0, 0]);
        assert_eq!(pair(&body), Some((7, 9)).filter(|_| cfg!(target_endian = "little")));
        for cut in 0..body.len() {
            assert_eq!(pair(&body[..cut]), None);
        }
    }
}
