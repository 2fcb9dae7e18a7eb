//! Invariants for any key log, and any records of both sides: the plaintext is the same at every cut, and what is peeked at is what is
//! read next. Holes never panic, and no more comes out than went in.
//!
//! Input: lines of a key log, and lines of hexadecimal digits that begin with C or S, for what each side sent.

use tls::decrypt::{Opened, Sender};
use tls::{Decryption, KeyLog};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    let mut log = KeyLog::default();
    log.read(bytes);
    assert!(log.len() as u64 + log.malformed + log.unknown <= bytes.len() as u64);
    assert_eq!(log.malformed > 0, log.left_out().is_some());
    let sent: Vec<(Sender, Vec<u8>)> = bytes.split(|byte| *byte == b'\n').filter_map(sent).collect();
    let whole = read(&log, &sent, usize::MAX);
    for size in [1, 5, 100] {
        let pieces = read(&log, &sent, size);
        // Readers that have lost the records stop at another byte.
        assert!(whole.is_lost || pieces == whole, "pieces of {size}");
    }
    let hole = bytes.first().copied().unwrap_or_default().into();
    let (mut decryption, mut total) = (Decryption::default(), 0);
    for (sender, bytes) in &sent {
        let (head, rest) = bytes.split_at(bytes.len() / 2);
        let mut count =
            |opened: Opened<'_>| total += if let Opened::Missing(missing) = opened { missing } else { 0 };
        decryption.read(*sender, head, &log, &mut count);
        decryption.skip(*sender, hole, &mut count);
        decryption.read(*sender, rest, &log, &mut count);
    }
    assert!(total <= hole * sent.len() as u64);
}

fn sent(line: &[u8]) -> Option<(Sender, Vec<u8>)> {
    let sender = match line {
        [b'C', b' ', ..] => Sender::Client,
        [b'S', b' ', ..] => Sender::Server,
        _ => return None,
    };
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = line[2..].iter().filter_map(digit).collect();
    Some((sender, digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
}

/// Everything that was decrypted: of each side the data, and the number of other events.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    data: [Vec<u8>; 2],
    others: [u64; 2],
    is_lost: bool,
}

fn read(log: &KeyLog, sent: &[(Sender, Vec<u8>)], size: usize) -> Read {
    let (mut decryption, mut read) = (Decryption::default(), Read::default());
    for (sender, bytes) in sent {
        let side = usize::from(*sender == Sender::Server);
        for piece in bytes.chunks(size.min(bytes.len()).max(1)) {
            let peeked = decryption.peek(*sender, piece);
            let before = read.data[side].len();
            decryption.read(*sender, piece, log, &mut |opened| match opened {
                Opened::Data(data) => read.data[side].extend(data),
                _ => read.others[side] += 1,
            });
            let new = &read.data[side][before..];
            assert!(new.len() <= piece.len() + (1 << 15));
            if let Some(peeked) = peeked.filter(|_| decryption.unread().is_none()) {
                assert_eq!(peeked.data, new);
            }
        }
    }
    read.is_lost = decryption.unread().is_some();
    read
}
