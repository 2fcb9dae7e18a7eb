//! A user's changes to a path, value by value: by flags (`--rtt 133ms`) or in a file's `[network]`.
//!
//! The same values make a custom network (then round trip and rate are required) or change a named one.
//! Texts are parsed by `quantity`.

use quantity::print::{self, NONE};
use quantity::{ValueError, path};
use wire::link::{Jitter, Loss, QueueDiscipline, QueueLimit, Reordering};
use wire::{Bytes, Duration, Probability, Rate, modem};

use super::path_key::{DirectionKey, PathDirection, PathKey};
use super::{Direction, HEADERS, Network, NetworkError, Traces};

/// Changes to a path; `None` leaves a value unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// [`Network::rtt`].
    pub rtt: Option<Duration>,
    /// [`Network::rate`].
    pub rate: Option<Rate>,
    /// [`Network::rate_up`].
    pub rate_up: Option<Rate>,
    /// [`Network::traces`].
    pub traces: Option<Traces>,
    /// [`Network::delay_up`].
    pub delay_up: Option<Duration>,
    /// [`Network::mss`].
    pub mss: Option<Bytes>,
    /// [`Network::mtu`].
    pub mtu: Option<Bytes>,
    /// [`Network::modem`]. (`Some(None)` removes the modem.)
    pub modem: Option<Option<modem::Config>>,
    /// Impairments in both directions.
    pub both: DirectionChanges,
    /// Impairments towards the server; override `both`.
    pub up: DirectionChanges,
    /// Impairments towards the client; override `both`.
    pub down: DirectionChanges,
}

/// Changes to one direction; `None` leaves a value unchanged. (`Some(None)` removes it.)
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionChanges {
    /// [`Direction::queue`].
    pub queue: Option<QueueLimit>,
    /// [`Direction::discipline`].
    pub discipline: Option<QueueDiscipline>,
    /// [`Direction::loss`].
    pub loss: Option<Loss>,
    /// [`Direction::jitter`].
    pub jitter: Option<Option<Jitter>>,
    /// [`Direction::reordering`].
    pub reordering: Option<Option<Reordering>>,
    /// [`Direction::duplication`].
    pub duplication: Option<Probability>,
}

/// Rate of a custom path until its traces have been read; the path is invalid until then.
const UNREAD: Rate = Rate::from_bits_per_second(1_000_000).expect("a rate above zero");

/// Beginning of the names of networks of round trip and rate alone.
pub const CUSTOM: &str = "custom";

/// Maximum length of a value shown in a name; a list of lost packets may be arbitrarily long.
const MAX_VALUE_CHARS: usize = 40;

/// The two required values of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredValue {
    /// The round trip.
    Rtt,
    /// The rate.
    Rate,
}

impl RequiredValue {
    /// Both values.
    pub const ALL: [Self; 2] = [Self::Rtt, Self::Rate];

    /// Key of the value.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Rtt => "rtt",
            Self::Rate => "rate",
        }
    }
}

impl Changes {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the changes contradict each other.
    ///
    /// # Errors
    /// A rate and a trace.
    pub fn check(&self) -> Result<(), NetworkError> {
        match self.traces.is_some() && (self.rate.is_some() || self.rate_up.is_some()) {
            true => Err(NetworkError::RateAndTrace),
            false => Ok(()),
        }
    }

    /// Completes the changes with those of `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            rtt: self.rtt.or(below.rtt),
            rate: self.rate.or(below.rate),
            rate_up: self.rate_up.or(below.rate_up),
            traces: self.traces.or(below.traces),
            delay_up: self.delay_up.or(below.delay_up),
            mss: self.mss.or(below.mss),
            mtu: self.mtu.or(below.mtu),
            modem: self.modem.or(below.modem),
            both: self.both.over(below.both),
            up: self.up.over(below.up),
            down: self.down.over(below.down),
        }
    }

    /// Required values that are missing for a custom path.
    pub fn missing(&self) -> Vec<RequiredValue> {
        let is_missing = |required: &RequiredValue| match required {
            RequiredValue::Rtt => self.rtt.is_none(),
            RequiredValue::Rate => self.rate.is_none() && self.traces.is_none(),
        };
        RequiredValue::ALL.into_iter().filter(is_missing).collect()
    }

    /// A custom path with these values; `None` without round trip or rate (or traces). Its segments fill its packets. The name
    /// spells every value but round trip, rate and segment size: `custom+loss=2%`.
    pub fn network(&self, name: &str) -> Option<Network> {
        let filled = self.mtu.map(|mtu| mtu - Bytes::new(u64::from(HEADERS)));
        let mss = self.mss.or(filled).unwrap_or(Network::MSS_DEFAULT);
        let from_trace = self.traces.as_ref().and(Some(UNREAD));
        let mut network = Network::new(name.to_owned(), self.rtt?, self.rate.or(from_trace)?, mss);
        let plain = network.clone();
        self.apply(&mut network);
        network.name = network.name_as_changed_from(&plain);
        Some(network)
    }

    /// `network` with these changes, and a name that lists them: `fast-internet+rtt=133ms`.
    pub fn applied_to(&self, network: &Network) -> Network {
        let mut changed = network.clone();
        self.apply(&mut changed);
        changed.name = changed.name_as_changed_from(network);
        changed
    }

    fn apply(&self, network: &mut Network) {
        let Self { rtt, rate, rate_up, traces, delay_up, mss, mtu, modem, both, up, down } = self;
        network.rtt = rtt.unwrap_or(network.rtt);
        network.rate = rate.unwrap_or(network.rate);
        network.rate_up = rate_up.or(network.rate_up);
        network.delay_up = delay_up.or(network.delay_up);
        network.mss = mss.unwrap_or(network.mss);
        network.mtu = mtu.or(network.mtu);
        network.modem = modem.unwrap_or(network.modem);
        up.clone().over(both.clone()).apply(&mut network.up);
        down.clone().over(both.clone()).apply(&mut network.down);
        if traces.is_some() {
            network.traces.clone_from(traces);
        } else if rate.is_some() || rate_up.is_some() {
            network.traces = None;
        }
        network.set_mean_rates();
    }
}

impl DirectionChanges {
    fn over(self, below: Self) -> Self {
        Self {
            queue: self.queue.or(below.queue),
            discipline: self.discipline.or(below.discipline),
            loss: self.loss.or(below.loss),
            jitter: self.jitter.or(below.jitter),
            reordering: self.reordering.or(below.reordering),
            duplication: self.duplication.or(below.duplication),
        }
    }

    fn apply(self, direction: &mut Direction) {
        let Self { queue, discipline, loss, jitter, reordering, duplication } = self;
        direction.queue = queue.unwrap_or(direction.queue);
        direction.discipline = discipline.unwrap_or(direction.discipline);
        if let Some(loss) = loss {
            direction.loss = loss;
        }
        direction.jitter = jitter.unwrap_or(direction.jitter);
        direction.reordering = reordering.unwrap_or(direction.reordering);
        direction.duplication = duplication.unwrap_or(direction.duplication);
    }
}

/// A key and its value, as in a file.
pub type Difference = (PathKey, String);

impl Network {
    /// The other's name and every difference; long values are truncated.
    pub fn name_as_changed_from(&self, other: &Self) -> String {
        let mut name = other.name.clone();
        for (key, value) in self.differences(other) {
            let prefix: String = value.chars().take(MAX_VALUE_CHARS).collect();
            let ellipsis = if prefix.len() < value.len() { "..." } else { "" };
            name.extend(["+", key.name(), "=", &prefix, ellipsis]);
        }
        name
    }

    /// Differences from the named network that it is like; for a custom one, all its values.
    pub fn own_differences(&self) -> Vec<Difference> {
        let like = self.like.and_then(|like| Self::named(like).ok());
        if let Some(like) = like {
            return self.differences(&like);
        }
        let plain = Self::new(self.name.clone(), self.rtt, self.rate, Self::MSS_DEFAULT);
        let path = [(PathKey::Rtt, self.rtt.to_string()), (PathKey::Rate, self.rate.to_string())];
        path.into_iter().chain(self.differences(&plain)).collect()
    }

    /// Differences from `other`, except for the name.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let Self { name: _, like: _, rtt, rate, rate_up, traces, delay_up, mss, mtu, modem, up, down } = self;
        // The rates are the means of the traces.
        let has_rates = traces.is_none();
        let optional = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
        let path = [
            (*rtt != other.rtt, PathKey::Rtt, rtt.to_string()),
            (has_rates && *rate != other.rate, PathKey::Rate, rate.to_string()),
            (
                has_rates && *rate_up != other.rate_up,
                PathKey::RateUp,
                optional(rate_up.map(|rate| rate.to_string())),
            ),
            (
                *traces != other.traces,
                PathKey::NetworkTrace,
                optional(traces.as_ref().map(Traces::to_string)),
            ),
            (
                *delay_up != other.delay_up,
                PathKey::DelayUp,
                optional(delay_up.map(|delay| delay.to_string())),
            ),
            (*mss != other.mss, PathKey::Mss, mss.get().to_string()),
            (*mtu != other.mtu, PathKey::Mtu, optional(mtu.map(|mtu| mtu.get().to_string()))),
            (*modem != other.modem, PathKey::Modem, print::modem(*modem)),
        ];
        let path = path.into_iter().filter(|(differs, _, _)| *differs).map(|(_, key, value)| (key, value));
        let (up, down) = (up.differences(&other.up), down.differences(&other.down));
        let direction = |direction| move |(key, value)| (PathKey::Packets(direction, key), value);
        if up == down {
            return path.chain(up.into_iter().map(direction(PathDirection::Both))).collect();
        }
        path.chain(up.into_iter().map(direction(PathDirection::Up)))
            .chain(down.into_iter().map(direction(PathDirection::Down)))
            .collect()
    }
}

impl Direction {
    fn differences(&self, other: &Self) -> Vec<(DirectionKey, String)> {
        let Self { queue, discipline, loss, jitter, reordering, duplication } = self;
        let all = [
            (*queue != other.queue, DirectionKey::Queue, print::queue(*queue)),
            (
                *discipline != other.discipline,
                DirectionKey::QueueDiscipline,
                print::queue_discipline(*discipline),
            ),
            (*loss != other.loss, DirectionKey::Loss, print::loss(loss)),
            (*jitter != other.jitter, DirectionKey::Jitter, print::jitter(*jitter)),
            (*reordering != other.reordering, DirectionKey::Reordering, print::reordering(*reordering)),
            (*duplication != other.duplication, DirectionKey::Duplication, print::probability(*duplication)),
        ];
        all.into_iter().filter(|(differs, _, _)| *differs).map(|(_, key, value)| (key, value)).collect()
    }
}

impl Changes {
    /// Sets a value of a path.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn set(&mut self, key: PathKey, text: &str) -> Result<(), ValueError> {
        match key {
            PathKey::Rtt => self.rtt = Some(quantity::duration(text)?),
            PathKey::Rate => self.rate = Some(quantity::rate(text)?),
            PathKey::RateUp => self.rate_up = Some(quantity::rate(text)?),
            PathKey::NetworkTrace => self.traces = Some(Traces::named(text)?),
            PathKey::DelayUp => self.delay_up = Some(quantity::duration(text)?),
            PathKey::Mss => self.mss = Some(quantity::mss(text)?),
            PathKey::Mtu => self.mtu = Some(quantity::mtu(text)?),
            PathKey::Modem => self.modem = Some(path::modem(text)?),
            PathKey::Packets(PathDirection::Both, key) => self.both.set(key, text)?,
            PathKey::Packets(PathDirection::Up, key) => self.up.set(key, text)?,
            PathKey::Packets(PathDirection::Down, key) => self.down.set(key, text)?,
        }
        Ok(())
    }
}

impl DirectionChanges {
    /// Sets a value of a direction.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn set(&mut self, key: DirectionKey, text: &str) -> Result<(), ValueError> {
        match key {
            DirectionKey::Queue => self.queue = Some(path::queue(text)?),
            DirectionKey::QueueDiscipline => self.discipline = Some(path::queue_discipline(text)?),
            DirectionKey::Loss => self.loss = Some(path::loss(text)?),
            DirectionKey::Jitter => self.jitter = Some(path::jitter(text)?),
            DirectionKey::Reordering => self.reordering = Some(path::reordering(text)?),
            DirectionKey::Duplication => self.duplication = Some(quantity::probability(text)?),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_path_needs_round_trip_and_rate() {
        let changes = Changes { rtt: Some(Duration::from_millis(89)), ..Changes::default() };
        assert_eq!(changes.missing(), [RequiredValue::Rate]);
        assert_eq!(changes.network("custom"), None);
        let modem = Network::named("modem").unwrap();
        let whole = Changes { rate: Some(modem.rate), ..changes };
        assert_eq!(whole.missing(), []);
        assert_eq!(whole.network("custom").map(|network| network.rtt), whole.rtt);
    }

    #[test]
    fn segments_fill_packets_unless_their_size_is_given() {
        let size = Bytes::new;
        let mss = |mss, mtu| {
            let (rtt, rate) = (Some(Duration::ZERO), Rate::from_bits_per_second(1));
            let network = Changes { rtt, rate, mss, mtu, ..Changes::default() }.network("custom").unwrap();
            (network.mss, network.check().is_ok())
        };
        assert_eq!(mss(None, None), (size(1_460), true));
        assert_eq!(mss(Some(size(512)), None), (size(512), true));
        assert_eq!(mss(None, Some(size(9_000))), (size(8_960), true));
        assert_eq!(mss(None, Some(size(41))), (size(1), true));
        assert_eq!(mss(Some(size(1_460)), Some(size(576))), (size(1_460), false));
    }

    #[test]
    fn name_of_a_changed_network_lists_exactly_the_changes() {
        let modem = Network::named("modem").unwrap();
        let lossy = |percent| Some(Loss::Independent(Probability::new(percent).unwrap()));
        let changes = Changes {
            rtt: Some(Duration::from_millis(133)),
            mss: Some(modem.mss),
            both: DirectionChanges { loss: lossy(0.01), ..DirectionChanges::default() },
            ..Changes::default()
        };
        assert_eq!(changes.applied_to(&modem).name, "modem+rtt=133ms+loss=1%");
        assert_eq!(Changes::default().applied_to(&modem), modem);

        let one_way = Changes {
            down: DirectionChanges { loss: lossy(0.001), ..DirectionChanges::default() },
            ..changes
        };
        let changed = one_way.applied_to(&modem);
        assert_eq!(changed.name, "modem+rtt=133ms+loss-up=1%+loss-down=0.1%");
        assert_eq!((changed.up.loss, changed.down.loss), (lossy(0.01).unwrap(), lossy(0.001).unwrap()));
    }
}
