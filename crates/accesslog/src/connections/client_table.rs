//! What is remembered of each client: the numbers of its last uses, for as long as one of them matters.
//!
//! A table with open addressing, 8 bytes for the client and 4 for each use, at most 80% and at least 50% full after it
//! has grown: with three thresholds and three connections, at most 88 bytes a client. Clients whose uses no longer
//! matter are left behind when it is rebuilt, so that memory follows active clients. Not a general map: nothing is
//! ever taken out, and nothing depends on its order.

use crate::Client;

/// The table.
#[derive(Clone, Debug)]
pub struct ClientTable {
    /// For each place a client, or [`EMPTY`], in two halves, and its uses: side by side, because it is memory that
    /// counting waits for.
    rows: Vec<u32>,
    /// Numbers in a row.
    row: usize,
    places: usize,
    filled: usize,
    /// How many mattered when it was last rebuilt.
    active: Option<usize>,
}

const EMPTY: u64 = 0;
/// Numbers that a client takes.
const KEY: usize = 2;
/// Places of a table that has just begun.
const FEWEST: usize = 1_024;
/// Stands in for a client that is numbered as an empty place is.
const NOT_EMPTY: u64 = 0x9e37_79b9_7f4a_7c15;

impl ClientTable {
    /// An empty table with so many uses a client.
    pub fn new(stride: usize) -> Self {
        Self::with_places(KEY + stride, FEWEST)
    }

    fn with_places(row: usize, places: usize) -> Self {
        Self { rows: vec![0; places * row], row, places, filled: 0, active: None }
    }

    /// Whether so many new clients may come before the table is [rebuilt](Self::rebuild).
    #[inline]
    pub fn has_room(&self, clients: usize) -> bool {
        (self.filled + clients) * 5 <= self.places * 4
    }

    /// Where to begin to look for a client, and who is there. Ask it for several before [`place`](Self::place), so
    /// that the processor waits for memory once.
    #[inline]
    pub fn look(&self, client: Client) -> Look {
        let key = if client.bits() == EMPTY { NOT_EMPTY } else { client.bits() };
        let place = self.home(key);
        Look { key, place, there: self.key(place) }
    }

    /// Where a client is, until the table is rebuilt; for a new one, `fresh` makes its uses.
    #[inline]
    pub fn place(&mut self, look: Look, fresh: impl FnOnce(&mut [u32])) -> usize {
        let Look { key, mut place, there } = look;
        if there == key {
            return place;
        }
        // Another may have come to where it was empty.
        let mut there = self.key(place);
        while there != key && there != EMPTY {
            place = if place + 1 == self.places { 0 } else { place + 1 };
            there = self.key(place);
        }
        if there == EMPTY {
            self.rows[place * self.row..][..KEY].copy_from_slice(&halves(key));
            self.filled += 1;
            fresh(self.at(place));
        }
        place
    }

    /// The uses of the client at a place.
    #[inline]
    pub fn at(&mut self, place: usize) -> &mut [u32] {
        &mut self.rows[place * self.row..][KEY..self.row]
    }

    /// Builds the table anew with the clients that `keep` says still matter, and room for as many again; `keep` may
    /// change their uses.
    pub fn rebuild(&mut self, mut keep: impl FnMut(&mut [u32]) -> bool) {
        let kept: Vec<usize> =
            (0..self.places).filter(|place| self.key(*place) != EMPTY && keep(self.at(*place))).collect();
        let mut table = Self::with_places(self.row, (kept.len() * 2).max(FEWEST));
        for place in kept {
            let look = table.look(Client::from_bits(self.key(place)));
            let new = table.place(look, |_| {});
            table.at(new).copy_from_slice(self.at(place));
        }
        table.active = Some(table.filled);
        *self = table;
    }

    /// Where a client is looked for first: its number is spread, then scaled to the table's length.
    #[inline]
    fn home(&self, key: u64) -> usize {
        let scaled = u128::from(key.wrapping_mul(NOT_EMPTY)) * self.places as u128;
        // Below the length.
        #[expect(clippy::cast_possible_truncation)]
        let place = (scaled >> 64) as usize;
        place
    }

    #[inline]
    fn key(&self, place: usize) -> u64 {
        let row = &self.rows[place * self.row..][..KEY];
        u64::from(row[0]) | u64::from(row[1]) << 32
    }

    /// About how many clients matter at a time.
    pub fn active(&self) -> usize {
        self.active.unwrap_or(self.filled)
    }

    /// Makes an empty table large enough for about so many clients, so that it need not grow; no larger, so that it
    /// stays near the processor.
    pub fn reserve(&mut self, clients: usize) {
        if self.filled == 0 {
            *self = Self::with_places(self.row, (clients + clients / 2).max(FEWEST));
        }
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.rows.len() * 4
    }
}

/// A client, and who is at the first place where it may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    key: u64,
    place: usize,
    there: u64,
}

/// The lower first.
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
        let look = table.look(Client::from_bits(u64::from(number)));
        table.place(look, |_| {})
    }

    #[test]
    fn clients_are_found_again_after_the_table_has_grown_and_shrunk() {
        let mut table = ClientTable::new(2);
        for number in 0..50_000_u32 {
            if !table.has_room(1) {
                table.rebuild(|_| true);
            }
            let place = placed(&mut table, number);
            table.at(place).fill(number);
        }
        assert!(table.bytes() <= 50_000 * 32, "{}", table.bytes());
        table.rebuild(|uses| uses[0].is_multiple_of(100));
        assert!(table.bytes() <= FEWEST * 16, "{}", table.bytes());
        for number in (0..50_000_u32).step_by(100) {
            let filled = table.filled;
            let place = placed(&mut table, number);
            assert_eq!(filled, table.filled, "{number} is lost");
            assert_eq!(table.at(place), [number, number]);
        }
    }
}
