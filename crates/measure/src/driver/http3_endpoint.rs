//! HTTP/3 part of the laboratory's server: the UDP socket of an origin, and its QUIC connections.
//!
//! QUIC has the sizes of TLS 1.3 and no keys (`http3`), so the kernel carries the datagrams that the simulator counts.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use fetch::serving::{Http3Request, Http3Server};
use http1::message::RequestHead;
use nix::poll::{PollFd, PollFlags};
use wire::Time;

use super::datagram_socket;
use super::service::Service;
use crate::Error;

/// The socket, the state machine, and its work in progress.
#[derive(Debug)]
pub(super) struct Http3Endpoint {
    datagrams: UdpSocket,
    http3: Http3Server,
    /// Requests that wait for their processing time, by its end.
    due: BTreeMap<(Time, u64), (Http3Request, RequestHead)>,
    serial: u64,
    /// A datagram for which the kernel had no room.
    unsent: Option<(SocketAddr, Vec<u8>)>,
}

impl Http3Endpoint {
    pub(super) fn open(address: SocketAddr, config: http3::ServerConfig) -> Result<Self, Error> {
        let http3 = Http3Server::new(config)
            .map_err(|reason| Error::Unsuited { part: reason.to_string(), remedy: "use http2".to_owned() })?;
        let datagrams = datagram_socket(address)?;
        Ok(Self { datagrams, http3, due: BTreeMap::new(), serial: 0, unsent: None })
    }

    /// The socket, and the events to wait for.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        let mut interest = PollFlags::POLLIN;
        interest.set(PollFlags::POLLOUT, self.unsent.is_some());
        PollFd::new(self.datagrams.as_fd(), interest)
    }

    /// Time of the next response.
    pub(super) fn next_response(&self) -> Option<Time> {
        self.due.keys().next().map(|(due, _)| *due)
    }

    /// Next deadline of the state machine.
    pub(super) fn wakes(&self) -> Option<Time> {
        self.http3.timeout()
    }

    /// Reads pending datagrams, handles what is due, and sends what can be sent. Returns the number of new connections.
    pub(super) fn proceed(&mut self, now: Time, service: &Service, buffer: &mut [u8]) -> Result<u64, Error> {
        self.receive(now, buffer)?;
        if self.http3.timeout().is_some_and(|due| due <= now) {
            self.http3.expire(now);
        }
        while let Some((id, head)) = self.http3.next_request() {
            let due = now + service.processing(Some(&head.target));
            self.due.insert((due, self.serial), (id, head));
            self.serial += 1;
        }
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let (id, head) = entry.remove();
            self.http3.respond(id, &service.respond(&head, true));
        }
        self.send(now)?;
        Ok(self.http3.take_accepted())
    }

    fn receive(&mut self, now: Time, buffer: &mut [u8]) -> Result<(), Error> {
        loop {
            match self.datagrams.recv_from(buffer) {
                Ok((length, from)) => {
                    self.http3.receive(now, from, buffer.get(..length).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client is gone: ICMP's port unreachable for an earlier datagram.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(Error::io("read a datagram")(error)),
            }
        }
    }

    fn send(&mut self, now: Time) -> Result<(), Error> {
        while let Some((to, datagram)) = self.unsent.take().or_else(|| self.http3.next_datagram(now)) {
            match self.datagrams.send_to(&datagram, to) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some((to, datagram));
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(Error::io("send a datagram")(error)),
            }
        }
        Ok(())
    }
}
