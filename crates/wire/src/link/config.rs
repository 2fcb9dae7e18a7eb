//! What a link is told to be. Not a network of the papers: an engine makes a link from that
//! (`papers/heidemann-model#table-2`).

use std::collections::BTreeSet;
use std::fmt;

use crate::{Bytes, Duration, Probability, Rate, modem};

/// One direction of a link. The default is a perfect one: no queueing, no delay, no loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// How fast packets are sent; `None`: they take no time to send.
    pub rate: Option<Rate>,
    /// Bytes that every packet takes on the link beyond its own: 38 on an Ethernet (preamble, header, check
    /// sequence, gap); -40 where the rate is meant to count TCP payload only, as the papers measured theirs. A
    /// packet never takes less than nothing. At most 65,535 either way.
    pub framing: i32,
    /// A modem before the line: what a packet takes is then what its bytes compress to, and `framing` is its own
    /// affair. Packets must be offered with their bytes ([`Pipe::handle_with`](super::Pipe::handle_with)).
    pub modem: Option<modem::Config>,
    /// How much may wait for the transmitter.
    pub queue: QueueLimit,
    /// Propagation: from the last bit sent to the packet's arrival.
    pub delay: Duration,
    /// Delay that varies.
    pub jitter: Option<Jitter>,
    /// Which packets never arrive.
    pub loss: Loss,
    /// Packets that fall behind others.
    pub reordering: Option<Reordering>,
    /// How likely a packet arrives twice, both at the same time. The copy takes no time to send.
    pub duplication: Probability,
}

/// How much may wait, at most; `None`: without limit. What does not fit is dropped from the tail.
///
/// The packet being sent does not wait and does not count, so an idle link takes any packet, and a limit of
/// nothing is a link without a buffer. Bytes are counted without framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Bytes that may wait.
    pub bytes: Option<Bytes>,
    /// Packets that may wait.
    pub packets: Option<u64>,
}

/// Delay in addition to the propagation delay, drawn for each packet, uniform from nothing to `up_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The most that is added.
    pub up_to: Duration,
    /// Whether packets may overtake one another.
    pub order: Order,
}

/// What jitter does to the order of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A packet that would overtake arrives with the one before it. (Where packets are closer together than
    /// the jitter, their delays therefore gather at its upper end.)
    #[default]
    Kept,
    /// Each packet arrives at its own time.
    Free,
}

/// Packets that fall behind: each with this probability is held back, and what follows overtakes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// How likely a packet is held back.
    pub probability: Probability,
    /// How much later than otherwise it arrives; above zero.
    pub by: Duration,
}

/// Which packets are lost. Packets are counted as they are offered, those that the queue drops included.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet.
    #[default]
    None,
    /// Each with the same probability, whatever became of the others.
    Independent(Probability),
    /// In bursts: Gilbert's two states, with Elliott's loss in each. The link starts good; a packet meets the
    /// state as it is, then the state may change.
    GilbertElliott {
        /// From good to bad, per packet (`p`).
        to_bad: Probability,
        /// From bad to good, per packet (`r`); the mean burst lasts 1/r packets.
        to_good: Probability,
        /// Loss while good (`1-k`).
        loss_in_good: Probability,
        /// Loss while bad (`1-h`).
        loss_in_bad: Probability,
    },
    /// Exactly these: 1 is the first packet offered.
    Exactly(BTreeSet<u64>),
}

/// The largest framing that makes sense: the size of the largest IP packet.
const FRAMING_MOST: u32 = 65_535;

impl Config {
    /// Whether a link can be like this. [`super::Pipe::new`] asks the same.
    ///
    /// # Errors
    /// The first thing that is wrong, and how to mend it.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { rate: _, framing, modem, queue: _, delay: _, jitter: _, loss, reordering, duplication: _ } =
            self;
        if modem.and_then(|modem| modem.dictionary).is_some_and(|dictionary| !dictionary.is_possible()) {
            return Err(ConfigError::Dictionary);
        }
        if framing.unsigned_abs() > FRAMING_MOST {
            return Err(ConfigError::Framing(*framing));
        }
        if let Loss::Exactly(packets) = loss
            && packets.contains(&0)
        {
            return Err(ConfigError::LossOfPacketZero);
        }
        if reordering.is_some_and(|reordering| reordering.by == Duration::ZERO) {
            return Err(ConfigError::ReorderingByNothing);
        }
        Ok(())
    }
}

/// Why a link cannot be like that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// More framing than the largest packet has bytes.
    Framing(i32),
    /// A list of packets to lose that names packet 0.
    LossOfPacketZero,
    /// A modem's dictionary that V.42 bis does not know.
    Dictionary,
    /// Packets held back for no time.
    ReorderingByNothing,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Framing(bytes) => write!(
                f,
                "framing of {bytes} bytes per packet is out of range: give -{FRAMING_MOST} to {FRAMING_MOST} \
                 (38 for Ethernet, -40 where the rate counts TCP payload only)"
            ),
            Self::LossOfPacketZero => f.write_str(
                "packet 0 cannot be lost: packets are counted from 1, so remove the 0 or add one to each",
            ),
            Self::Dictionary => f.write_str(
                "a modem's dictionary has 512 codewords or more, and strings of 6 to 250 characters: give such ones",
            ),
            Self::ReorderingByNothing => f.write_str(
                "reordering by 0ms moves no packet: give a time above zero, or leave reordering out",
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_link_is_perfect_and_possible() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_remedy() {
        let reordering = Some(Reordering { probability: Probability::ALWAYS, by: Duration::ZERO });
        let small = modem::Dictionary { codewords: 256, ..modem::Dictionary::default() };
        let refused = [
            Config { framing: i32::MIN, ..Config::default() },
            Config { loss: Loss::Exactly([0, 3].into()), ..Config::default() },
            Config { reordering, ..Config::default() },
            Config {
                modem: Some(modem::Config { dictionary: Some(small), port: None }),
                ..Config::default()
            },
        ];
        for (config, remedy) in
            refused.iter().zip(["give -65535 to 65535", "remove the 0", "above zero", "512"])
        {
            let sentence = config.check().unwrap_err().to_string();
            assert!(sentence.contains(remedy), "{sentence}");
        }
    }
}
