//! Opening of a page's connections, from the client's packets.

use std::collections::BTreeMap;

use wire::Time;

use super::Flow;
use crate::stalls::ends_handshake;
use crate::world::{CLIENT, ObservationPoint, Record};

/// A connection's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// First packet of the client.
    pub requested: Time,
    /// First packet of the server that the client received.
    pub opened: Option<Time>,
    /// End of the handshake of TLS: the client's first protected packet. `None` without TLS.
    pub secured: Option<Time>,
}

/// The connections in the order in which the client opened them.
pub fn openings(records: &[Record]) -> Vec<Opening> {
    let mut openings: Vec<Opening> = Vec::new();
    let mut by_port: BTreeMap<u16, usize> = BTreeMap::new();
    for record in records {
        let is_client = record.from.host == CLIENT;
        match record.seen {
            ObservationPoint::Sent if is_client => {
                let index = *by_port.entry(record.from.port).or_insert_with(|| {
                    openings.push(Opening { requested: record.at, opened: None, secured: None });
                    openings.len() - 1
                });
                if Flow::of(record).has_tls() && ends_handshake(&record.segment.payload) {
                    openings[index].secured.get_or_insert(record.at);
                }
            }
            ObservationPoint::Received if !is_client => {
                if let Some(index) = by_port.get(&record.to.port) {
                    openings[*index].opened.get_or_insert(record.at);
                }
            }
            ObservationPoint::Sent | ObservationPoint::Received | ObservationPoint::Lost => {}
        }
    }
    openings
}
