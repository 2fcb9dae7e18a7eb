//! What is remembered of each client: the numbers of its last uses, for as long as one of them matters.
//!
//! A table with open addressing, 8 bytes for the client and 4 for each use, at most 80% and at least 50% full after it
//! has grown: with three thresholds and three connections, at most 88 bytes a client. Clients whose uses no longer
//! matter are left behind when it is rebuilt, so that memory follows active clients. Not a general map: nothing is
//! ever taken out, and nothing depends on its order.

use scenario::access_log::Client;

/// The table.
#[derive(Clone, Debug)]
pub struct ClientTable {
    /// [`EMPTY`], or a client.
    keys: Vec<u64>,
    /// `stride` numbers for each key.
    uses: Vec<u32>,
    stride: usize,
    filled: usize,
}

const EMPTY: u64 = 0;
/// Places of a table that has just begun.
const FEWEST: usize = 1_024;
/// Stands in for a client that is numbered as an empty place is.
const NOT_EMPTY: u64 = 0x9e37_79b9_7f4a_7c15;

impl ClientTable {
    /// An empty table with so many uses a client.
    pub fn new(stride: usize) -> Self {
        Self { keys: vec![EMPTY; FEWEST], uses: vec![0; FEWEST * stride], stride, filled: 0 }
    }

    /// Whether so many new clients may come before the table is [rebuilt](Self::rebuild).
    #[inline]
    pub fn has_room(&self, clients: usize) -> bool {
        (self.filled + clients) * 5 <= self.keys.len() * 4
    }

    /// Where a client is, until the table is rebuilt; for a new one, `fresh` makes its uses.
    #[inline]
    pub fn place(&mut self, client: Client, fresh: impl FnOnce(&mut [u32])) -> usize {
        let key = if client.bits() == EMPTY { NOT_EMPTY } else { client.bits() };
        let mut place = self.home(key);
        while self.keys[place] != key && self.keys[place] != EMPTY {
            place = if place + 1 == self.keys.len() { 0 } else { place + 1 };
        }
        if self.keys[place] == EMPTY {
            self.keys[place] = key;
            self.filled += 1;
            fresh(self.at(place));
        }
        place
    }

    /// The uses of the client at a place.
    #[inline]
    pub fn at(&mut self, place: usize) -> &mut [u32] {
        &mut self.uses[place * self.stride..(place + 1) * self.stride]
    }

    /// Builds the table anew with the clients that `keep` says still matter, and room for as many again; `keep` may
    /// change their uses.
    pub fn rebuild(&mut self, mut keep: impl FnMut(&mut [u32]) -> bool) {
        let kept: Vec<usize> = (0..self.keys.len())
            .filter(|place| self.keys[*place] != EMPTY && keep(self.at(*place)))
            .collect();
        let places = (kept.len() * 2).max(FEWEST);
        let mut table = Self {
            keys: vec![EMPTY; places],
            uses: vec![0; places * self.stride],
            stride: self.stride,
            filled: 0,
        };
        for place in kept {
            let new = table.place(Client::from_bits(self.keys[place]), |_| {});
            table.at(new).copy_from_slice(self.at(place));
        }
        *self = table;
    }

    /// Where a client is looked for first: its number is spread, then scaled to the table's length.
    #[inline]
    fn home(&self, key: u64) -> usize {
        let scaled = u128::from(key.wrapping_mul(NOT_EMPTY)) * self.keys.len() as u128;
        // Below the length.
        #[expect(clippy::cast_possible_truncation)]
        let place = (scaled >> 64) as usize;
        place
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.keys.len() * 8 + self.uses.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_found_again_after_the_table_has_grown_and_shrunk() {
        let mut table = ClientTable::new(2);
        for number in 0..50_000_u32 {
            if !table.has_room(1) {
                table.rebuild(|_| true);
            }
            let place = table.place(Client::from_bits(u64::from(number)), |_| {});
            table.at(place).fill(number);
        }
        assert!(table.bytes() <= 50_000 * 32, "{}", table.bytes());
        table.rebuild(|uses| uses[0].is_multiple_of(100));
        assert!(table.bytes() <= FEWEST * 16, "{}", table.bytes());
        for number in (0..50_000_u32).step_by(100) {
            let place = table.place(Client::from_bits(u64::from(number)), |_| panic!("{number} is lost"));
            assert_eq!(table.at(place), [number, number]);
        }
    }
}
