//! A link that carries one message at a time, in the time that earlier ones have left free.

use std::collections::BTreeMap;

use wire::Duration;

/// Times at which the link is in use: begin and end of each.
#[derive(Debug, Default)]
pub(super) struct Link(BTreeMap<Duration, Duration>);

impl Link {
    /// Carries a message that may begin at `from` and takes `length` alone; returns its end. It fills the gaps between others.
    pub(super) fn carry(&mut self, from: Duration, length: Duration) -> Duration {
        let before = self.0.range(..=from).next_back().map(|(begin, end)| (*begin, *end));
        let (begin, mut at) = match before {
            Some((begin, end)) if end >= from => (begin, end),
            Some(_) | None => (from, from),
        };
        let mut rest = length;
        while let Some((next, end)) = self.0.range(at..).next().map(|(next, end)| (*next, *end)) {
            let gap = next - at;
            if gap >= rest {
                break;
            }
            rest = rest - gap;
            self.0.remove(&next);
            at = end;
        }
        let end = at + rest;
        self.0.insert(begin, end);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_messages_fill_the_gaps_between_earlier_ones() {
        let ms = Duration::from_millis;
        let mut link = Link::default();
        assert_eq!(link.carry(ms(50), ms(10)), ms(60));
        assert_eq!(link.carry(ms(0), ms(20)), ms(20));
        // From 20 to 50, and 10 more after what comes at 50.
        assert_eq!(link.carry(ms(10), ms(40)), ms(70));
        assert_eq!(link.carry(ms(0), ms(1)), ms(71));
        assert_eq!(link.carry(ms(80), ms(5)), ms(85));
        assert_eq!(link.carry(ms(60), ms(9)), ms(80));
        assert_eq!(link.0, [(ms(0), ms(80)), (ms(80), ms(85))].into());
    }
}
