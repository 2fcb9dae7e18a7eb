//! Messages by themselves, and responses split at any byte.

use proptest::prelude::*;
use wire::{Bytes, Time};

use super::opened::{Event, OpenedConnection};
use super::*;
use crate::Mark;

#[test]
fn other_datagrams_are_ignored() {
    for payload in
        [&b"\0\0\0\0\0\0\0\x01\0\0\0GET / HTTP/2\r\n"[..], b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0", b""]
    {
        assert_eq!(Request::read(payload), None);
    }
}

fn events(stream: &[u8], cuts: &[usize]) -> Vec<Event> {
    let mut opened = OpenedConnection::new(Mark { at: Time::ZERO, frame: 1 }, 0);
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    let pieces = places.windows(2).flat_map(|pair| {
        let piece = &stream[pair[0]..pair[1]];
        let seq = u32::try_from(pair[0]).unwrap();
        opened.read(seq, piece, Bytes::new(piece.len() as u64), |id| id == 3)
    });
    pieces.collect()
}

proptest! {
    #[test]
    fn responses_are_read_the_same_at_every_split(cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        let stream = b"\0\0\0\0\0\0\0\x01HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
            \0\0\0\0\0\0\0\x02HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n0\r\nT: 1\r\n\r\n\
            \0\0\0\0\0\0\0\x03HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\0\0\0\0\0\0\0\x04HTTP/1.1 304 Not\r\n\r\n";
        let began = |id| Event::Began { id };
        let ended = |id, status| Event::Ended { id, status };
        let expected = [
            began(1), ended(1, 200), began(2), ended(2, 200), began(3), ended(3, 200), began(4), ended(4, 304),
        ];
        prop_assert_eq!(events(stream, &cuts), expected);
    }

    #[test]
    fn any_bytes_are_read_to_an_end(
        stream in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let _ = (events(&stream, &cuts), Request::read(&stream));
        let head = [&b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], &stream].concat();
        let _ = events(&head, &cuts);
    }
}
