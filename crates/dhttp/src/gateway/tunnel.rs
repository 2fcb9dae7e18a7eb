//! Bytes both ways, untouched, until both sides have ended (RFC 9110, section 9.3.6).
//!
//! Nothing is read out of them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use super::incoming::Incoming;

/// Carries them. What the program sent behind its request goes first.
pub(super) fn carry(program: &Incoming<impl AsRef<TcpStream>>, server: &TcpStream) {
    let stream = program.stream.as_ref();
    // A connection that says nothing for hours is no fault here: those inside know when it is one.
    let _ = stream.set_read_timeout(None).and_then(|()| server.set_read_timeout(None));
    let mut first = server;
    if first.write_all(program.unread()).is_err() {
        return;
    }
    thread::scope(|scope| {
        let _up = scope.spawn(|| one_way(stream, server));
        one_way(server, stream);
    });
}

fn one_way(mut from: &TcpStream, mut to: &TcpStream) {
    let mut room = vec![0; 32 << 10];
    let copied = loop {
        match from.read(&mut room) {
            Ok(0) => break Ok(()),
            Ok(length) => {
                if let Err(error) = to.write_all(room.get(..length).unwrap_or_default()) {
                    break Err(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    match copied {
        // An end is passed on as an end: the other direction goes on.
        Ok(()) => drop(to.shutdown(Shutdown::Write)),
        Err(_) => {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        }
    }
}
