//! HPACK's tables (RFC 7541, section 2.3): the static one, and the dynamic one of a connection's direction.

use std::collections::VecDeque;

/// Entries of the static table, numbered from 1 (RFC 7541, appendix A).
pub(super) static STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Places of the static table's names of each length, as bits.
const STATIC_OF_LENGTH: [u64; 32] = {
    let mut places = [0; 32];
    let mut place = 0;
    while place < STATIC.len() {
        places[STATIC[place].0.len()] |= 1 << place;
        place += 1;
    }
    places
};

/// Bytes that an entry counts beyond its name and value (RFC 7541, section 4.1).
pub(super) const ENTRY_BYTES: usize = 32;

/// Fields that both ends remember, the newest first.
#[derive(Clone, Debug)]
pub(super) struct DynamicTable {
    entries: VecDeque<Entry>,
    bytes: usize,
    max: usize,
}

/// A field in one piece of memory: its name, and its value.
#[derive(Clone, Debug)]
struct Entry {
    text: Box<[u8]>,
    name_bytes: usize,
}

impl Entry {
    fn new(name: &[u8], value: &[u8]) -> Self {
        Self { text: [name, value].concat().into(), name_bytes: name.len() }
    }

    fn field(&self) -> (&[u8], &[u8]) {
        self.text.split_at(self.name_bytes)
    }
}

impl DynamicTable {
    pub(super) const fn new(max: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, max }
    }

    /// The maximum number of bytes.
    pub(super) const fn max(&self) -> usize {
        self.max
    }

    /// Changes the maximum; the oldest entries leave.
    pub(super) fn set_max(&mut self, max: usize) {
        self.max = max;
        self.evict(0);
    }

    /// Adds a field; an entry larger than the table empties it.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let bytes = name.len() + value.len() + ENTRY_BYTES;
        self.evict(bytes);
        if bytes <= self.max {
            self.bytes += bytes;
            self.entries.push_front(Entry::new(name, value));
        }
    }

    /// The field with this index; the static table comes first.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let place = index.checked_sub(1)?;
        match STATIC.get(place) {
            Some(field) => Some(*field),
            None => self.entries.get(place - STATIC.len()).map(Entry::field),
        }
    }

    /// Index of the field, and whether its value is the same; `None` if no entry has its name.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
        let mut named = None;
        // Fields of the static table that have one name follow each other.
        let places = STATIC_OF_LENGTH.get(name.len()).copied().unwrap_or_default();
        let first =
            (0..STATIC.len()).filter(|place| places >> place & 1 == 1).find(|place| STATIC[*place].0 == name);
        let of_name = first.into_iter().flat_map(|first| STATIC[first..].iter().zip(first + 1..));
        for ((_, known), index) in of_name.take_while(|((other, _), _)| *other == name) {
            if *known == value {
                return Some((index, true));
            }
            named = named.or(Some((index, false)));
        }
        for (place, entry) in self.entries.iter().enumerate() {
            // Lengths differ more often than bytes.
            if entry.name_bytes == name.len() && entry.field().0 == name {
                if entry.field().1 == value {
                    return Some((STATIC.len() + place + 1, true));
                }
                named = named.or(Some((STATIC.len() + place + 1, false)));
            }
        }
        named
    }

    /// Removes the oldest entries until this number of bytes fits.
    fn evict(&mut self, bytes: usize) {
        while self.bytes + bytes > self.max {
            let Some(entry) = self.entries.pop_back() else { return };
            self.bytes -= entry.text.len() + ENTRY_BYTES;
        }
    }
}
