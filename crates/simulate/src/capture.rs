//! The packets of a run as pcapng: whole IP packets with valid checksums, captured at one end or at both.
//!
//! Virtual time zero is 1 January 1970, and sequence numbers start at 0. Hosts get 10.0.0.1 and up in the
//! order in which they were added. Nothing depends on the computer: the same run gives the same bytes.
//!
//! The endpoints of QUIC have no ciphers, only sizes. Their packets are encrypted here, and the capture has the key log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use packets::writer::{Packet, Writer};
use quic::sealer::{KnownSecrets, Sealer};
use tcp::{Payload, Segment};
use tls::decrypt::Sender;
use wire::Time;

use crate::page::flow::Flow;

use crate::world::encoding::packet;
use crate::world::{CLIENT, ObservationPoint, Record};

/// Point at which packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// At the client, as a user's own capture.
    Client,
    /// At the server.
    Server,
    /// At both, an interface each. A reader that joins the interfaces sees every packet twice, as a retransmission.
    Both,
}

impl CapturePoint {
    pub(crate) const fn has(self, is_at_client: bool) -> bool {
        match self {
            Self::Client => is_at_client,
            Self::Server => !is_at_client,
            Self::Both => true,
        }
    }
}

/// Writes the packets of one end or both, with a comment on the capture. Packets that the link lost are commented, too.
///
/// # Errors
/// Errors of `out`.
pub fn write(records: &[Record], at: CapturePoint, out: impl Write, comment: &str) -> io::Result<()> {
    let application = concat!("roundtrip ", env!("CARGO_PKG_VERSION"));
    let mut writer = Writer::new(out, application, Some(comment))?;
    let mut sealers = Sealers::default();
    if records.iter().any(|record| Flow::of(record).has_quic()) {
        writer.key_log(&sealers.known.key_log)?;
    }
    let mut interface = |name, is_at_client| at.has(is_at_client).then(|| writer.interface(name)).transpose();
    let [client, server] = [interface("client", true)?, interface("server", false)?];
    let lost = lost(records);
    let mut bytes = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let end = match record.seen {
            ObservationPoint::Sent => record.from,
            ObservationPoint::Received => record.to,
            // The comment is attached to the record of sending.
            ObservationPoint::Lost => continue,
        };
        let Some(interface) = (if end.host == CLIENT { client } else { server }) else { continue };
        let comment = lost.contains(&index).then_some(LOST);
        bytes.clear();
        let sealed = sealers.seal(record);
        packet(record.from, record.to, sealed.as_ref().unwrap_or(&record.segment), &mut bytes)?;
        let at = record.at.since(Time::ZERO);
        writer.packet(&Packet { interface, at, bytes: &bytes, original_length: bytes.len(), comment })?;
    }
    writer.finish().map(drop)
}

/// Encryption of QUIC's connections.
#[derive(Default)]
pub(crate) struct Sealers {
    pub(crate) known: KnownSecrets,
    connections: BTreeMap<Flow, Sealer>,
}

impl Sealers {
    /// Returns the segment with its packets encrypted, if it is of QUIC.
    pub(crate) fn seal(&mut self, record: &Record) -> Option<Segment> {
        let flow = Flow::of(record);
        if !flow.has_quic() {
            return None;
        }
        let sealer = self.connections.entry(flow).or_insert_with(|| Sealer::new(self.known.secrets));
        let sender = if record.from.host == CLIENT { Sender::Client } else { Sender::Server };
        let mut payload = record.segment.payload.to_vec();
        sealer.seal(sender, &mut payload);
        Some(Segment { payload: Payload::from(payload), ..record.segment.clone() })
    }
}

/// Indices of the lost packets' records of sending.
fn lost(records: &[Record]) -> BTreeSet<usize> {
    let mut lost = BTreeSet::new();
    for (index, record) in
        records.iter().enumerate().filter(|(_, record)| record.seen == ObservationPoint::Lost)
    {
        let is_it = |sent: &Record| {
            sent.seen == ObservationPoint::Sent
                && (sent.from, sent.to) == (record.from, record.to)
                && sent.segment == record.segment
        };
        let known = &records[..index];
        let index = (0..index).rev().find(|index| !lost.contains(index) && is_it(&known[*index]));
        lost.extend(index);
    }
    lost
}

const LOST: &str = "never arrives: lost on the link, or its queue was full";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Address, HostId};

    const ADDRESSES: [Address; 2] =
        [Address { host: HostId(0), port: 1025 }, Address { host: HostId(1), port: 80 }];

    #[test]
    fn each_end_has_its_own_packets_and_a_lost_one_has_a_comment_where_it_was_sent() {
        let record = |seen| Record {
            at: Time::from_nanos(5),
            seen,
            from: ADDRESSES[0],
            to: ADDRESSES[1],
            segment: Segment::datagram(Payload::from(&b"odd"[..])),
        };
        let records = [
            ObservationPoint::Sent,
            ObservationPoint::Received,
            ObservationPoint::Sent,
            ObservationPoint::Lost,
        ]
        .map(record);
        let counted = |at| {
            let mut file = Vec::new();
            write(&records, at, &mut file, "a run").unwrap();
            let text = String::from_utf8_lossy(&file).into_owned();
            (text.matches("odd").count(), text.matches(LOST).count())
        };
        assert_eq!(counted(CapturePoint::Client), (2, 1));
        assert_eq!(counted(CapturePoint::Server), (1, 0));
        assert_eq!(counted(CapturePoint::Both), (3, 1));
    }
}
