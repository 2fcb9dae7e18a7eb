//! Connections that one user has opened to the server, with pipelined requests (`papers/dhttp#section-vi-b`: three).

use std::collections::VecDeque;

use dhttp_proto::token::TOKEN_FIELD;
use http1::message::{Event, Limits, Method, ResponseReader};

use super::Request;
use crate::world::SocketId;

/// Maximum number of a user's connections.
const MAX_CONNECTIONS: usize = 3;

/// A user's connections, in the order in which they were opened.
#[derive(Default)]
pub(super) struct UserConnections(Vec<Http1Connection>);

/// An HTTP/1.1 connection.
struct Http1Connection {
    /// Absent until it is being opened.
    socket: Option<SocketId>,
    is_open: bool,
    reader: ResponseReader,
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
    /// Whether the user opened this connection.
    pub(super) fn has(&self, socket: SocketId) -> bool {
        self.0.iter().any(|line| line.socket == Some(socket))
    }

    /// Chooses a connection for a request: one without requests, else a new one, else that with the fewest.
    pub(super) fn request(&mut self, request: Request, bytes: Vec<u8>) -> ConnectionChoice {
        let is_full = self.0.len() >= MAX_CONNECTIONS;
        let fewest = self.0.iter_mut().min_by_key(|line| line.requests.len());
        let Some(line) = fewest.filter(|line| is_full || line.requests.is_empty()) else {
            let (socket, reader) = (None, ResponseReader::new(Limits::default()));
            let requests = [request].into();
            self.0.push(Http1Connection { socket, is_open: false, reader, requests, unsent: bytes });
            return ConnectionChoice::Open;
        };
        line.requests.push_back(request);
        match line.socket.filter(|_| line.is_open) {
            Some(socket) => ConnectionChoice::Write(socket, bytes),
            None => {
                line.unsent.extend(bytes);
                ConnectionChoice::Wait
            }
        }
    }

    /// Gives the next connection without a socket this one.
    pub(super) fn name(&mut self, socket: SocketId) {
        if let Some(line) = self.0.iter_mut().find(|line| line.socket.is_none()) {
            line.socket = Some(socket);
        }
    }

    /// Records that a connection was established; returns the bytes to write.
    pub(super) fn open(&mut self, socket: SocketId) -> Option<Vec<u8>> {
        let line = self.0.iter_mut().find(|line| line.socket == Some(socket))?;
        line.is_open = true;
        Some(std::mem::take(&mut line.unsent))
    }

    /// Removes a connection; returns the requests whose responses are missing.
    pub(super) fn remove(&mut self, socket: SocketId) -> VecDeque<Request> {
        let place = self.0.iter().position(|line| line.socket == Some(socket));
        place.map(|place| self.0.remove(place).requests).unwrap_or_default()
    }

    /// Reads received bytes; returns the requests whose responses are complete, and the tokens in their headers.
    pub(super) fn read(&mut self, socket: SocketId, mut bytes: &[u8]) -> (Vec<Request>, Vec<Vec<u8>>) {
        let (mut ended, mut tokens) = (Vec::new(), Vec::new());
        let Some(line) = self.0.iter_mut().find(|line| line.socket == Some(socket)) else {
            return (ended, tokens);
        };
        while let Ok(Some(event)) = line.reader.read(&mut bytes, &Method::Get) {
            match event {
                Event::Head(head, _) => {
                    tokens.extend(head.fields.get(TOKEN_FIELD).map(<[u8]>::to_vec));
                }
                Event::Body(_) => {}
                Event::End => ended.extend(line.requests.pop_front()),
            }
        }
        (ended, tokens)
    }
}
