//! Answers that are ready to be sent: of what is asked for again and again, as it is given in this second.
//!
//! Each thread has its own. What is kept is looked up every time all the same: nothing is given that has been dropped.

use proto::cache::Asked;
use wire::Time;

use super::memory::Found;
use super::record::Record;
use super::{given, seconds};
use crate::handler::Answer;

/// As many as there are places.
#[derive(Debug)]
pub(super) struct Ready {
    places: Vec<Option<Place>>,
}

#[derive(Debug)]
struct Place {
    record: Record,
    second: u64,
    answer: Answer,
}

/// A power of two.
const PLACES: usize = 512;

impl Default for Ready {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| None).collect() }
    }
}

impl Ready {
    /// The answer that is made of what was found, for a GET that says nothing about caches.
    pub(super) fn answer(&mut self, hash: u64, found: &Found, now: Time) -> Option<&Answer> {
        let place = self.places.get_mut(usize::try_from(hash).unwrap_or(0) % PLACES)?;
        let second = seconds(now);
        let is_there =
            place.as_ref().is_some_and(|place| place.second == second && place.record.is(&found.record));
        if !is_there {
            let answer = given(found, &Asked::new("GET", []), now, "hit");
            *place = Some(Place { record: found.record.clone(), second, answer });
        }
        place.as_ref().map(|place| &place.answer)
    }
}
