//! Ring buffer shared with the kernel, which fills it with packets while this process reads: a sequence of
//! blocks, each owned by one of the two at a time (TPACKET_V3).
//!
//! Contents of blocks are parsed elsewhere. The only place of the sniffer with `unsafe`: options that no
//! crate supports, the mapping, and the word in each block that holds its owner.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_void, sockaddr_ll, tpacket_req3, tpacket_stats_v3};
use linux::Error;
use nix::errno::Errno;
use socket2::Socket;

/// Block size: a packet of the loopback has up to 64 KiB, and must lie in one block.
const BLOCK: usize = 1 << 18;
/// Number of blocks, 32 MiB together: a third of a second at 100 MB/s.
const BLOCKS: usize = 128;

/// The mapping, and its socket.
#[derive(Debug)]
pub(super) struct Ring {
    socket: Socket,
    memory: NonNull<u8>,
    /// Index of the block that the kernel fills next.
    next: usize,
}

impl Ring {
    /// Creates a ring for `socket`, which must not yet be bound.
    pub(super) fn new(socket: Socket) -> Result<Self, Error> {
        /// Blocks that are not full are released after this time, too.
        const BLOCK_TIMEOUT_MS: u32 = 20;
        /// Only a divisor of the block's size: in this version frames are as long as their packets.
        const FRAME: u32 = 2_048;
        let error = Error::kernel("map the kernel's packet ring");
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        let request = tpacket_req3 {
            tp_block_size: small(BLOCK),
            tp_block_nr: small(BLOCKS),
            tp_frame_size: FRAME,
            tp_frame_nr: small(BLOCKS * BLOCK) / FRAME,
            tp_retire_blk_tov: BLOCK_TIMEOUT_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        let result = set(&socket, libc::PACKET_VERSION, &version)
            .and_then(|()| set(&socket, libc::PACKET_RX_RING, &request))
            .and_then(|()| map(&socket));
        Ok(Self { socket, memory: result.map_err(error)?, next: 0 })
    }

    /// Starts the capture, from the interface with this index or from all.
    pub(super) fn listen(&self, interface: Option<u32>) -> Result<(), Error> {
        let every = u16::try_from(libc::ETH_P_ALL).expect("the kernel's numbers of protocols have 16 bits");
        let address = sockaddr_ll {
            sll_family: u16::try_from(libc::AF_PACKET).expect("the kernel's families have 16 bits"),
            sll_protocol: every.to_be(),
            sll_ifindex: interface.and_then(|index| i32::try_from(index).ok()).unwrap_or(0),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the descriptor is open, and the address is a whole `struct sockaddr_ll` of the given length;
        // the kernel only reads it.
        let result = unsafe {
            let length = libc::socklen_t::try_from(size_of::<sockaddr_ll>()).unwrap_or_default();
            libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length)
        };
        Errno::result(result).map(drop).map_err(Error::kernel("start to capture packets"))
    }

    /// The next block, if the kernel has released it.
    pub(super) fn block(&self) -> Option<&[u8]> {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the block lies within the mapping, which lives as long as `self`; its status shows that the kernel
        // has released it, and the kernel does not write to it again before `release`, which needs `&mut self`.
        Some(unsafe { slice::from_raw_parts(self.start().as_ptr(), BLOCK) })
    }

    /// Returns the block to the kernel.
    pub(super) fn release(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
    }

    /// Returns the number of packets dropped because the ring was full, since the last call.
    pub(super) fn dropped_since_last_call(&self) -> Result<u64, Error> {
        let mut reported = tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = libc::socklen_t::try_from(size_of::<tpacket_stats_v3>()).unwrap_or_default();
        // SAFETY: the descriptor is open; the kernel writes at most `length` bytes, which is the size of `reported`.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut reported).cast(),
                &raw mut length,
            )
        };
        Errno::result(result).map_err(Error::kernel("read the number of dropped packets"))?;
        Ok(u64::from(reported.tp_drops))
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: `next` is below `BLOCKS`, so that the block lies within the mapping.
        unsafe { self.memory.add(self.next * BLOCK) }
    }

    /// Returns the word that holds the owner of the block.
    fn status(&self) -> &AtomicU32 {
        const STATUS: usize = std::mem::offset_of!(libc::tpacket_block_desc, hdr)
            + std::mem::offset_of!(libc::tpacket_hdr_v1, block_status);
        const _: () = assert!(STATUS.is_multiple_of(align_of::<AtomicU32>()));
        // SAFETY: the word lies within the mapping and is aligned, because blocks are; the kernel and this process both
        // write it, and only as a whole, which is what an atomic is for.
        unsafe { AtomicU32::from_ptr(self.start().add(STATUS).cast().as_ptr()) }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and nothing borrows from it any more. It cannot fail then.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCKS * BLOCK) };
    }
}

fn set<T>(socket: &Socket, option: c_int, value: &T) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default();
    // SAFETY: the descriptor is open, and the value is of the given length; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            ptr::from_ref(value).cast::<c_void>(),
            length,
        )
    };
    Errno::result(result).map(drop)
}

fn map(socket: &Socket) -> Result<NonNull<u8>, Errno> {
    // SAFETY: the kernel chooses where; the descriptor is open and has a ring of this length.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            BLOCKS * BLOCK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            socket.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error().raw_os_error().map_or(Errno::EIO, Errno::from_raw));
    }
    NonNull::new(memory.cast()).ok_or(Errno::EFAULT)
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("the ring is far smaller than 4 GiB")
}
