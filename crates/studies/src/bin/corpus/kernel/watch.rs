//! Observations of a run: packets at either host's card, and TCP_INFO of the server's sockets.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use capture::sniffer::Sniffer;
use linux::clock::Clock;
use linux::sockets::{Sockets, TcpInfo};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use wire::{Duration, Time};

use super::hosts::reported;
use super::programs::wait;

/// Packet captured at a host, from its IP header on.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) at: Time,
    pub(crate) bytes: Vec<u8>,
}

/// Set when a run is over.
pub(crate) type StopFlag = Arc<AtomicBool>;

/// Starts a capture on the calling thread's interfaces.
pub(crate) fn sniff(clock: Clock, over: StopFlag) -> Result<JoinHandle<Vec<Frame>>, String> {
    let (begun, begins) = mpsc::channel();
    // A thread inherits the network namespace of its parent; the memory shared with the kernel stays with its thread.
    let thread = std::thread::spawn(move || {
        let opened = Sniffer::open(None, None).map_err(reported);
        let (mut sniffer, begun_with) = match opened {
            Ok(sniffer) => (Some(sniffer), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // The parent waits for this.
        let _ = begun.send(begun_with);
        sniffer.as_mut().map_or_else(Vec::new, |sniffer| frames(sniffer, clock, &over))
    });
    begins.recv().map_err(reported)??;
    Ok(thread)
}

fn frames(sniffer: &mut Sniffer, clock: Clock, over: &StopFlag) -> Vec<Frame> {
    let mut frames = Vec::new();
    // A packet becomes visible when its block is 20 ms old.
    let mut after_it = 4;
    while after_it > 0 {
        if over.load(Ordering::Acquire) {
            after_it -= 1;
        }
        let _ = poll(&mut [PollFd::new(sniffer.as_fd(), PollFlags::POLLIN)], PollTimeout::from(20_u8));
        sniffer.read(|packet| {
            let at = Time::ZERO + (packet.at.since(Time::ZERO) - clock.zero_since_1970());
            frames.push(Frame { at, bytes: packet.ip.to_vec() });
        });
    }
    frames
}

/// A sender's TCP_INFO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Time,
    /// The client's port.
    pub(crate) port: u16,
    pub(crate) info: TcpInfo,
}

/// Samples the latest connection every millisecond, in the calling thread's network namespace.
pub(crate) fn sample(
    clock: Clock,
    over: StopFlag,
    connections: Receiver<(SocketAddr, SocketAddr)>,
) -> Result<JoinHandle<Vec<Sample>>, String> {
    let mut sockets = Sockets::open().map_err(reported)?;
    Ok(std::thread::spawn(move || {
        let mut samples = Vec::new();
        let mut current = None;
        while !over.load(Ordering::Acquire) {
            current = connections.try_iter().last().or(current);
            if let Some((local, peer)) = current
                && let Ok(Some(socket)) = sockets.find(local, peer)
            {
                samples.push(Sample { at: clock.now(), port: peer.port(), info: socket.info });
            }
            wait(Duration::from_millis(1));
        }
        samples
    }))
}
