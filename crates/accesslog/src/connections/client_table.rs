//! Table of each client's last uses, as numbers, for as long as one of them matters.
//!
//! A table with open addressing: 8 bytes for the client and 4 for each use. It is at most 80% full, and at least 62%
//! after it has grown, which it does in place. With three thresholds and three connections, a client takes at most 71
//! bytes. Clients whose uses no longer matter are dropped when it is rebuilt, so that memory follows active clients.
//! Not a general map: nothing is removed one by one, and nothing depends on its order.

use crate::Client;

/// Hash table with open addressing.
#[derive(Clone, Debug)]
pub struct ClientTable {
    /// For each slot a client as two halves, or [`EMPTY`], and its uses. Adjacent, because counting waits for
    /// this memory.
    rows: Vec<u32>,
    /// Numbers per row.
    row: usize,
    slots: usize,
    filled: usize,
    /// Number of clients that mattered when the table was last rebuilt.
    active: Option<usize>,
}

const EMPTY: u64 = 0;
/// Numbers that hold a client.
const KEY: usize = 2;
/// Slots of a new table.
const INITIAL_SLOTS: usize = 1_024;
/// Substitute for a client whose number is that of an empty slot.
const NOT_EMPTY: u64 = 0x9e37_79b9_7f4a_7c15;

impl ClientTable {
    /// An empty table with `stride` uses per client.
    pub fn new(stride: usize) -> Self {
        Self::with_slots(KEY + stride, INITIAL_SLOTS)
    }

    fn with_slots(row: usize, slots: usize) -> Self {
        Self { rows: vec![0; slots * row], row, slots, filled: 0, active: None }
    }

    /// Whether this number of new clients fits before the table must be [rebuilt](Self::rebuild).
    #[inline]
    pub fn fits(&self, clients: usize) -> bool {
        (self.filled + clients) * 5 <= self.slots * 4
    }

    /// First slot to probe for a client, and its content. Called for several clients before
    /// [`slot`](Self::slot), so that the CPU waits for memory once.
    #[inline]
    pub fn probe(&self, client: Client) -> ClientLookup {
        let key = if client.bits() == EMPTY { NOT_EMPTY } else { client.bits() };
        let index = self.home_slot(key);
        ClientLookup { key, index, found_key: self.key(index) }
    }

    /// Slot of a client, valid until the table is rebuilt; for a new client, `initialise` sets its uses.
    #[inline]
    pub fn slot(&mut self, lookup: ClientLookup, initialise: impl FnOnce(&mut [u32])) -> usize {
        let ClientLookup { key, mut index, found_key } = lookup;
        if found_key == key {
            return index;
        }
        // Another client may have taken the slot since it was seen empty.
        let mut found_key = self.key(index);
        while found_key != key && found_key != EMPTY {
            index = if index + 1 == self.slots { 0 } else { index + 1 };
            found_key = self.key(index);
        }
        if found_key == EMPTY {
            self.rows[index * self.row..][..KEY].copy_from_slice(&halves(key));
            self.filled += 1;
            initialise(self.at(index));
        }
        index
    }

    /// The uses of the client in a slot.
    #[inline]
    pub fn at(&mut self, index: usize) -> &mut [u32] {
        &mut self.rows[index * self.row..][KEY..self.row]
    }

    /// Rebuilds the table with the clients for which `keep` returns true, and space for a quarter more. `keep` may change
    /// their uses.
    pub fn rebuild(&mut self, mut keep: impl FnMut(&mut [u32]) -> bool) {
        // Dropped clients leave an empty slot, so that no list of the others takes memory beside the table.
        let mut retained = 0;
        for index in 0..self.slots {
            if self.key(index) != EMPTY {
                match keep(self.at(index)) {
                    true => retained += 1,
                    false => self.rows[index * self.row..][..KEY].fill(0),
                }
            }
        }
        self.resize((retained + retained * 3 / 5).max(INITIAL_SLOTS));
        self.active = Some(self.filled);
    }

    /// Changes the number of slots in place. The table is most of the memory of a count, and another one beside it would
    /// double that.
    fn resize(&mut self, slots: usize) {
        let (row, before) = (self.row, self.slots);
        let mut first = 0;
        if slots > before {
            self.rows.reserve_exact((slots - before) * row);
            self.rows.resize(slots * row, 0);
            // All clients to the end, in order.
            first = slots;
            for index in (0..before).rev() {
                if self.key(index) != EMPTY {
                    first -= 1;
                    self.rows.copy_within(index * row..(index + 1) * row, first * row);
                    if first > index {
                        self.rows[index * row..][..KEY].fill(0);
                    }
                }
            }
        }
        (self.slots, self.filled) = (slots, 0);
        // Each client to its home slot, which is at or before the one that it leaves; but for a few.
        let (mut moved, mut late) = (vec![0; row], Vec::new());
        for index in first..before.max(slots) {
            if self.key(index) == EMPTY {
                continue;
            }
            moved.copy_from_slice(&self.rows[index * row..][..row]);
            let is_late = self.home_slot(self.key(index)) > index;
            self.rows[index * row..][..KEY].fill(0);
            if is_late {
                late.extend_from_slice(&moved);
            } else {
                self.put(&moved);
            }
        }
        late.chunks_exact(row).for_each(|moved| self.put(moved));
        self.rows.truncate(slots * row);
        self.rows.shrink_to_fit();
    }

    /// Inserts a row, whose client is not in the table.
    fn put(&mut self, row: &[u32]) {
        let (key, uses) = row.split_at(KEY);
        let lookup = self.probe(Client::from_bits(u64::from(key[0]) | u64::from(key[1]) << 32));
        let index = self.slot(lookup, |_| {});
        self.at(index).copy_from_slice(uses);
    }

    /// Home slot of a client: its number is hashed, then scaled to the table's length.
    #[inline]
    fn home_slot(&self, key: u64) -> usize {
        let scaled = u128::from(key.wrapping_mul(NOT_EMPTY)) * self.slots as u128;
        // Below the length.
        #[expect(clippy::cast_possible_truncation)]
        let index = (scaled >> 64) as usize;
        index
    }

    #[inline]
    fn key(&self, index: usize) -> u64 {
        let row = &self.rows[index * self.row..][..KEY];
        u64::from(row[0]) | u64::from(row[1]) << 32
    }

    /// Approximate number of clients that matter at a time.
    pub fn active(&self) -> usize {
        self.active.unwrap_or(self.filled)
    }

    /// Makes an empty table for about this number of clients. It need not grow, and is no larger than that,
    /// so that it stays in the CPU's cache.
    pub fn reserve(&mut self, clients: usize) {
        if self.filled == 0 {
            *self = Self::with_slots(self.row, (clients + clients / 2).max(INITIAL_SLOTS));
        }
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        self.rows.len() * 4
    }
}

/// A client, and the content of its home slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientLookup {
    key: u64,
    index: usize,
    found_key: u64,
}

/// The low half first.
fn halves(key: u64) -> [u32; KEY] {
    // The two halves.
    #[expect(clippy::cast_possible_truncation)]
    let (low, high) = (key as u32, (key >> 32) as u32);
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(table: &mut ClientTable, number: u32) -> usize {
        let lookup = table.probe(Client::from_bits(u64::from(number)));
        table.slot(lookup, |_| {})
    }

    #[test]
    fn clients_are_found_after_the_table_has_grown_and_shrunk() {
        let mut table = ClientTable::new(2);
        for number in 0..50_000_u32 {
            if !table.fits(1) {
                table.rebuild(|_| true);
                for earlier in 0..number {
                    let index = placed(&mut table, earlier);
                    assert_eq!(
                        (table.filled, table.at(index)[1]),
                        (number as usize, earlier),
                        "{earlier} is lost"
                    );
                }
            }
            let index = placed(&mut table, number);
            table.at(index).fill(number);
        }
        assert!(table.bytes() <= 50_000 * 16 * 8 / 5, "{}", table.bytes());
        table.rebuild(|uses| uses[0].is_multiple_of(100));
        assert!(table.bytes() <= INITIAL_SLOTS * 16, "{}", table.bytes());
        for number in (0..50_000_u32).step_by(100) {
            let filled = table.filled;
            let index = placed(&mut table, number);
            assert_eq!(filled, table.filled, "{number} is lost");
            assert_eq!(table.at(index), [number, number]);
        }
    }
}
