//! Connections that one user has opened to the server, with pipelined requests (`papers/dhttp#section-vi-b`: three).

use std::collections::VecDeque;

use http1::client::{Event, Responses};
use http1::message::{Limits, Method};

use super::Request;
use crate::world::SocketId;

/// A user's connections.
pub(super) struct UserConnections {
    /// In the order in which they were opened.
    open: Vec<Http1Connection>,
    /// Maximum number.
    limit: usize,
}

/// An HTTP/1.1 connection.
struct Http1Connection {
    /// Absent until it is being opened.
    socket: Option<SocketId>,
    is_open: bool,
    /// Whether no further request may use it.
    is_spent: bool,
    reader: Responses,
    /// Requests without a complete response, the oldest first.
    requests: VecDeque<Request>,
    /// Requests to be written as soon as it is open.
    unsent: Vec<u8>,
}

/// Transport of a request.
pub(super) enum ConnectionChoice {
    /// A new connection.
    Open,
    /// A connection that is being opened.
    Wait,
    /// An open connection, on which these bytes are to be written.
    Write(SocketId, Vec<u8>),
}

impl UserConnections {
    /// At most this number of connections, none of them open.
    pub(super) const fn new(limit: usize) -> Self {
        Self { open: Vec::new(), limit }
    }

    /// Whether the user opened this connection.
    pub(super) fn has(&self, socket: SocketId) -> bool {
        self.open.iter().any(|connection| connection.socket == Some(socket))
    }

    /// Chooses a connection for a request: one without requests, else a new one, else that with the fewest.
    pub(super) fn request(&mut self, request: Request, bytes: Vec<u8>) -> ConnectionChoice {
        let usable = || self.open.iter().filter(|connection| !connection.is_spent);
        let is_full = usable().count() >= self.limit;
        let fewest = self
            .open
            .iter_mut()
            .filter(|connection| !connection.is_spent)
            .min_by_key(|connection| connection.requests.len());
        let Some(connection) = fewest.filter(|connection| is_full || connection.requests.is_empty()) else {
            let (socket, reader) = (None, Responses::new(Limits::default()));
            let requests = [request].into();
            self.open.push(Http1Connection {
                socket,
                is_open: false,
                is_spent: false,
                reader,
                requests,
                unsent: bytes,
            });
            return ConnectionChoice::Open;
        };
        connection.requests.push_back(request);
        match connection.socket.filter(|_| connection.is_open) {
            Some(socket) => ConnectionChoice::Write(socket, bytes),
            None => {
                connection.unsent.extend(bytes);
                ConnectionChoice::Wait
            }
        }
    }

    /// Gives the next connection without a socket this one.
    pub(super) fn name(&mut self, socket: SocketId) {
        if let Some(connection) = self.open.iter_mut().find(|connection| connection.socket.is_none()) {
            connection.socket = Some(socket);
        }
    }

    /// Records that a connection was established; returns the bytes to write.
    pub(super) fn open(&mut self, socket: SocketId) -> Option<Vec<u8>> {
        let connection = self.open.iter_mut().find(|connection| connection.socket == Some(socket))?;
        connection.is_open = true;
        Some(std::mem::take(&mut connection.unsent))
    }

    /// Takes a connection's requests, to be written with the end of its stream.
    pub(super) fn spend(&mut self, socket: SocketId) -> Vec<u8> {
        let connection = self.open.iter_mut().find(|connection| connection.socket == Some(socket));
        connection.map_or_else(Vec::new, |connection| {
            connection.is_spent = true;
            std::mem::take(&mut connection.unsent)
        })
    }

    /// Removes a connection; returns the requests whose responses are missing.
    pub(super) fn remove(&mut self, socket: SocketId) -> VecDeque<Request> {
        let index = self.open.iter().position(|connection| connection.socket == Some(socket));
        index.map(|index| self.open.remove(index).requests).unwrap_or_default()
    }

    /// Removes every connection that has a socket; none of them has a request in progress.
    pub(super) fn remove_all(&mut self) -> Vec<SocketId> {
        std::mem::take(&mut self.open).into_iter().filter_map(|connection| connection.socket).collect()
    }

    /// Reads received bytes; returns the requests whose responses are complete.
    pub(super) fn read(&mut self, socket: SocketId, mut bytes: &[u8]) -> Vec<Request> {
        let mut ended = Vec::new();
        let Some(connection) = self.open.iter_mut().find(|connection| connection.socket == Some(socket))
        else {
            return ended;
        };
        while let Ok(Some(event)) = connection.reader.read(&mut bytes, &Method::Get) {
            match event {
                Event::Interim(_) | Event::Head(..) | Event::Body(_) => {}
                Event::End { .. } => ended.extend(connection.requests.pop_front()),
            }
        }
        ended
    }
}
