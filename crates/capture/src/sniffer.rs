//! Packets on this host's interfaces: TCP and UDP over IPv4 and IPv6, each with the kernel's timestamp.
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Sniffer`]: a packet socket, filled by the kernel and emptied by the caller |
//! | `filter` | the kernel's packet filter |
//! | `ring` | the memory that is shared with the kernel |
//!
//! Not the capture of the emulated link (that is `emulator`): these are the host's interfaces, in the network namespace
//! of the caller. Nothing is sent, and no interface becomes promiscuous: only this host's own packets are captured.
//! From packet(7) and the kernel's Documentation/networking/packet_mmap.rst.

mod filter;
mod ring;

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};

use libc::{sockaddr_ll, tpacket3_hdr};
use nix::errno::Errno;
use nix::net::if_::{if_indextoname, if_nametoindex};
use socket2::{Domain, Socket, Type};
use wire::{Duration, Time};

use ring::Ring;

use crate::Error;

/// Captures every packet of this host's network until it is dropped.
#[derive(Debug)]
pub struct Sniffer {
    ring: Ring,
    lost: u64,
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SniffedPacket<'a> {
    /// Time at which the kernel captured it, since 1 January 1970, UTC.
    pub at: Time,
    /// Index of the interface.
    pub interface: u32,
    /// Pseudo-header that libpcap puts before the packets of all interfaces (LINKTYPE_LINUX_SLL2).
    pub cooked: [u8; COOKED],
    /// The packet from the IP header on.
    pub ip: &'a [u8],
    /// Original length, from the IP header on.
    pub original_length: usize,
}

/// The length of a header of LINKTYPE_LINUX_SLL2 (<https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html>).
pub const COOKED: usize = 20;

impl Sniffer {
    /// Starts capturing, on all interfaces or on one; if `port` is given, only packets from or to it.
    ///
    /// # Errors
    /// The missing privilege, and the remedy.
    pub fn open(port: Option<u16>, interface: Option<&str>) -> Result<Self, Error> {
        // Protocol 0: no packet arrives before the filter and the ring are set.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None).map_err(|error| refused(&error))?;
        socket
            .attach_filter(&filter::program(port))
            .map_err(linux::Error::io("filter the packets of a capture"))?;
        let ring = Ring::new(socket)?;
        let index = interface.map(if_nametoindex).transpose();
        ring.listen(index.map_err(linux::Error::kernel("find an interface"))?)?;
        Ok(Self { ring, lost: 0 })
    }

    /// Passes every packet that the kernel has ready to `each`, in order. A packet is ready when its block of
    /// the ring is full, or 20 ms old; until then the descriptor is not readable.
    pub fn read(&mut self, mut each: impl FnMut(SniffedPacket<'_>)) {
        while let Some(block) = self.ring.block() {
            packets(block).for_each(&mut each);
            self.ring.release();
        }
    }

    /// Number of packets that were dropped because they were not read soon enough.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn lost(&mut self) -> Result<u64, Error> {
        self.lost += self.ring.dropped_since_last_call()?;
        Ok(self.lost)
    }
}

impl AsFd for Sniffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// Returns the name of an interface; its index if it no longer exists.
pub fn interface_name(interface: u32) -> String {
    let name = if_indextoname(interface).ok().and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| format!("interface {interface}"))
}

fn refused(error: &std::io::Error) -> Error {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) => Error::Forbidden {
            missing: "this process may not capture packets (it lacks CAP_NET_RAW)".to_owned(),
            remedy: "add --isolated to run the command in a private network, or watch its sockets by `roundtrip watch`: both work \
                     without root; or run as root, give the program the right with `setcap cap_net_raw+ep FILE`, or let an \
                     administrator run `tcpdump -w FILE` and diagnose that"
                .to_owned(),
        },
        Some(Errno::EAFNOSUPPORT) => Error::Forbidden {
            missing: "this kernel has no packet sockets (CONFIG_PACKET)".to_owned(),
            remedy: "load them with `modprobe af_packet`".to_owned(),
        },
        _another_reason => Error::Forbidden {
            missing: format!("a packet socket was refused: {error}"),
            remedy: "run outside the sandbox that forbids it".to_owned(),
        },
    }
}

/// Iterates over the packets of a block (`struct tpacket_block_desc`), limited by the count in its header and by its
/// bytes.
fn packets(block: &[u8]) -> impl Iterator<Item = SniffedPacket<'_>> {
    const HEAD: usize = offset_of!(libc::tpacket_block_desc, hdr);
    let count = word(block, HEAD + offset_of!(libc::tpacket_hdr_v1, num_pkts)).unwrap_or(0);
    let first = word(block, HEAD + offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt)).unwrap_or(0);
    let mut rest = block.get(first as usize..);
    (0..count).map_while(move |_| {
        let bytes = rest?;
        let next = word(bytes, offset_of!(tpacket3_hdr, tp_next_offset))?;
        rest = bytes.get(next as usize..).filter(|_| next > 0);
        packet(bytes)
    })
}

/// Parses the first packet (`struct tpacket3_hdr`, then `struct sockaddr_ll`).
fn packet(bytes: &[u8]) -> Option<SniffedPacket<'_>> {
    const ADDRESS: usize = size_of::<tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
    let seconds = u64::from(word(bytes, offset_of!(tpacket3_hdr, tp_sec))?);
    let nanoseconds = u64::from(word(bytes, offset_of!(tpacket3_hdr, tp_nsec))?);
    let retained = word(bytes, offset_of!(tpacket3_hdr, tp_snaplen))? as usize;
    let original_length = word(bytes, offset_of!(tpacket3_hdr, tp_len))? as usize;
    let start = usize::from(half(bytes, offset_of!(tpacket3_hdr, tp_mac))?);
    let address = bytes.get(ADDRESS..ADDRESS + size_of::<sockaddr_ll>())?;
    let interface = word(address, offset_of!(sockaddr_ll, sll_ifindex))?;
    Some(SniffedPacket {
        at: Time::ZERO + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds),
        interface,
        cooked: cooked(address, interface)?,
        ip: bytes.get(start..start + retained)?,
        original_length,
    })
}

/// Converts the fields of a `struct sockaddr_ll` to the order and byte order of a file.
fn cooked(address: &[u8], interface: u32) -> Option<[u8; COOKED]> {
    const RESERVED: [u8; 2] = [0; 2];
    let protocol = address.get(offset_of!(sockaddr_ll, sll_protocol)..)?.get(..2)?;
    let hardware = half(address, offset_of!(sockaddr_ll, sll_hatype))?;
    let kind_and_length = address.get(offset_of!(sockaddr_ll, sll_pkttype)..)?.get(..2)?;
    let sender = address.get(offset_of!(sockaddr_ll, sll_addr)..)?.get(..8)?;
    let fields =
        [protocol, &RESERVED, &interface.to_be_bytes(), &hardware.to_be_bytes(), kind_and_length, sender];
    fields.concat().try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|half| u16::from_ne_bytes(*half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inconsistent_block_gives_the_packets_within_its_bounds() {
        let mut block = vec![0; 4_096];
        let mut put = |at: usize, word: u32| block[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        put(8 + 4, 1_000);
        put(8 + 8, 48);
        put(48 + 12, 40);
        put(48, 96);
        put(48 + 96 + 12, 1 << 31);
        assert_eq!(packets(&block).count(), 1);
        for length in 0..block.len() {
            assert!(packets(&block[..length]).count() <= 1);
        }
    }

    #[test]
    fn missing_right_is_reported_with_its_remedy() {
        let reported = refused(&std::io::Error::from_raw_os_error(libc::EPERM)).to_string();
        assert!(
            reported.starts_with("cannot capture here: ") && reported.contains("run as root"),
            "{reported}"
        );
    }
}
