//! Configuration of a link, which an engine derives from a network (`papers/heidemann-model#table-2`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::schedule::DeliverySchedule;
use crate::{Bytes, Duration, Probability, Rate, modem};

/// Configuration of one direction of a link. The default is a perfect link: no queueing, no delay, no loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Transmission rate; `None`: transmission takes no time.
    pub rate: Option<Rate>,
    /// Delivery opportunities in place of a rate.
    pub schedule: Option<Arc<DeliverySchedule>>,
    /// Bytes that every packet takes on the link beyond its own size: 38 on Ethernet (preamble, header, check sequence,
    /// gap); -40 where the rate counts TCP payload only, as measured by the papers. A packet never takes less than zero
    /// bytes. At most 65,535 in either direction.
    pub framing: i32,
    /// Modem of the line: the packet's size on the line is then its compressed size, and `framing` does not apply.
    /// Packets must be offered with their bytes ([`Pipe::handle_with`](super::Pipe::handle_with)).
    pub modem: Option<modem::Config>,
    /// Limit of the transmitter's queue.
    pub queue: QueueLimit,
    /// Which packets the queue drops, and which it sends first.
    pub discipline: QueueDiscipline,
    /// Propagation delay: from the last bit sent to the packet's arrival.
    pub delay: Duration,
    /// Jitter.
    pub jitter: Option<Jitter>,
    /// Packet loss.
    pub loss: Loss,
    /// Reordering.
    pub reordering: Option<Reordering>,
    /// Probability that a packet is duplicated. The copy arrives at the same time and takes no transmission
    /// time.
    pub duplication: Probability,
}

/// Queue discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// First in, first out; packets beyond the limit are dropped.
    #[default]
    DropTail,
    /// CoDel (RFC 8289): also drops from the head of a queue whose delay stays above a target.
    CoDel(CoDel),
    /// FQ-CoDel (RFC 8290): CoDel for each flow, and flows take turns. A full queue drops from the flow with the most bytes.
    /// Packets must be offered with their bytes ([`Pipe::handle_with`](super::Pipe::handle_with)); others are one flow.
    FqCoDel(CoDel),
}

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable delay in the queue; above zero.
    pub target: Duration,
    /// Time for which the delay may exceed the target before a drop, about the longest round trip; at least the target, at most
    /// an hour.
    pub interval: Duration,
}

impl Default for CoDel {
    /// RFC 8289, section 4.4: 5 ms and 100 ms.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

/// Limits of the queue; `None`: unlimited. Packets beyond the limit are dropped from the tail.
///
/// The packet in transmission is not in the queue, so an idle link accepts any packet, and a limit of zero is
/// a link without a buffer. Bytes are counted without framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Maximum bytes in the queue.
    pub bytes: Option<Bytes>,
    /// Maximum packets in the queue.
    pub packets: Option<u64>,
}

/// Delay in addition to the propagation delay, sampled for each packet, uniform from zero to `up_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Maximum additional delay.
    pub up_to: Duration,
    /// Whether packets may be reordered.
    pub order: Order,
}

/// Effect of jitter on the order of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Packets keep their order: one that would arrive early arrives together with the previous one. Where packets are
    /// closer together than the jitter, their delays therefore concentrate at its upper end.
    #[default]
    Preserved,
    /// Each packet arrives at its own time, possibly out of order.
    Free,
}

/// Reordering: each packet is delayed with this probability, and later ones arrive before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is delayed.
    pub probability: Probability,
    /// Additional delay; above zero.
    pub by: Duration,
}

/// Loss model. Packets are numbered as they are offered, including those that the queue drops.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with the same probability, independently of the others.
    Independent(Probability),
    /// Bursts: Gilbert's two states, with Elliott's loss in each. The link starts good; a packet is subject
    /// to the current state, then the state may change.
    GilbertElliott {
        /// Probability of the change from good to bad, per packet (`p`).
        to_bad: Probability,
        /// Probability of the change from bad to good, per packet (`r`); the mean burst lasts 1/r packets.
        to_good: Probability,
        /// Loss probability while good (`1-k`).
        loss_in_good: Probability,
        /// Loss probability while bad (`1-h`).
        loss_in_bad: Probability,
    },
    /// Exactly these packets are lost: 1 is the first packet offered.
    Exactly(BTreeSet<u64>),
}

/// Maximum framing: the size of the largest IP packet.
const MAX_FRAMING: u32 = 65_535;

impl Config {
    /// Validates the configuration. [`super::Pipe::new`] does the same.
    ///
    /// # Errors
    /// The first invalid value, and its remedy.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { rate, schedule, framing, modem, queue: _, discipline, loss, reordering, .. } = self;
        let Self { delay: _, jitter: _, duplication: _, .. } = self;
        if schedule.is_some() && rate.is_some() {
            return Err(ConfigError::RateAndSchedule);
        }
        if let QueueDiscipline::CoDel(codel) | QueueDiscipline::FqCoDel(codel) = discipline
            && !codel.is_valid()
        {
            return Err(ConfigError::CoDel(*codel));
        }
        if modem.is_some() && (schedule.is_some() || *discipline != QueueDiscipline::DropTail) {
            return Err(ConfigError::ModemQueue);
        }
        if modem.and_then(|modem| modem.dictionary).is_some_and(|dictionary| !dictionary.is_valid()) {
            return Err(ConfigError::Dictionary);
        }
        if framing.unsigned_abs() > MAX_FRAMING {
            return Err(ConfigError::Framing(*framing));
        }
        if let Loss::Exactly(packets) = loss
            && packets.contains(&0)
        {
            return Err(ConfigError::LossOfPacketZero);
        }
        if reordering.is_some_and(|reordering| reordering.by == Duration::ZERO) {
            return Err(ConfigError::ReorderingDelayZero);
        }
        Ok(())
    }
}

impl CoDel {
    /// Maximum interval: an hour.
    pub const MAX_INTERVAL: Duration = Duration::from_secs(3_600);

    fn is_valid(self) -> bool {
        self.target > Duration::ZERO && self.interval >= self.target && self.interval <= Self::MAX_INTERVAL
    }
}

/// Invalid configuration value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Framing beyond the size of the largest packet.
    #[error(
        "framing of {0} bytes per packet: out of range; give -{MAX_FRAMING} to {MAX_FRAMING} (38 for \
         Ethernet, -40 where the rate counts TCP payload only)"
    )]
    Framing(i32),
    /// A list of packets to lose that includes packet 0.
    #[error("lost packet 0: packets are counted from 1; remove the 0 or add one to each")]
    LossOfPacketZero,
    /// A modem's dictionary outside the limits of V.42 bis.
    #[error(
        "modem dictionary: out of range; give at least 512 codewords, and strings of 6 to 250 characters"
    )]
    Dictionary,
    /// Reordering with a delay of zero.
    #[error("reordering by 0ms: no effect; give a time above zero, or omit reordering")]
    ReorderingDelayZero,
    /// A rate and delivery opportunities.
    #[error("a rate and delivery opportunities: both set the capacity; give one of them")]
    RateAndSchedule,
    /// A target of zero, or above the interval; or an interval above an hour.
    #[error(
        "CoDel with a target of {} and an interval of {}: out of range; give a target above zero and an \
         interval from that to 1h, such as 5ms/100ms",
        .0.target,
        .0.interval
    )]
    CoDel(CoDel),
    /// A modem, which compresses packets in order of arrival, with a queue that decides later.
    #[error("a modem compresses packets in order of arrival; omit it, or the network trace and CoDel")]
    ModemQueue,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_link_is_valid() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn rejects_invalid_links_with_a_remedy() {
        let reordering = Some(Reordering { probability: Probability::ALWAYS, by: Duration::ZERO });
        let schedule = Some(Arc::new(DeliverySchedule::new(vec![1]).unwrap()));
        let discipline = QueueDiscipline::CoDel(CoDel { target: Duration::ZERO, ..CoDel::default() });
        let modem = Some(modem::Config::default());
        let small = modem::Dictionary { codewords: 256, ..modem::Dictionary::default() };
        let invalid = [
            Config { framing: i32::MIN, ..Config::default() },
            Config { loss: Loss::Exactly([0, 3].into()), ..Config::default() },
            Config { reordering, ..Config::default() },
            Config {
                modem: Some(modem::Config { dictionary: Some(small), ..modem::Config::default() }),
                ..Config::default()
            },
            Config { schedule: schedule.clone(), rate: Rate::from_bits_per_second(1), ..Config::default() },
            Config { discipline, ..Config::default() },
            Config { modem, schedule, ..Config::default() },
        ];
        let remedies =
            ["give -65535 to 65535", "remove the 0", "above zero", "512", "one of them", "5ms/100ms", "omit"];
        for (config, remedy) in invalid.iter().zip(remedies) {
            let sentence = config.check().unwrap_err().to_string();
            assert!(sentence.contains(remedy), "{sentence}");
        }
    }
}
