//! Lists of values: each of several values of a key makes scenarios of its own.
//!
//! [`Spec::set`] replaces a value, [`Spec::add`] makes a list of it. Keys that are lists by nature (networks, pages,
//! protocols, ...) have a field each; the values of every other key are here.

use std::collections::BTreeSet;

use quantity::{ValueError, print, range};

use super::Key;
use super::key::{DirectionKey, PathDirection, PathKey};
use crate::Spec;
use crate::network::changes::{Changes, DirectionChanges};

/// Several values of a key that is not a list by nature. The specification's field has the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key.
    pub key: Key,
    /// At least two different values, as texts.
    pub values: Vec<String>,
}

impl Spec {
    /// Adds a value, or a range of them (`10ms..200ms*8`), to those of a key, without repetition.
    ///
    /// # Errors
    /// An invalid text for this key; nothing is changed then.
    pub fn add(&mut self, key: Key, text: &str) -> Result<(), ValueError> {
        self.add_all(key, [text])
    }

    /// Adds several values or ranges, as [`Spec::add`] does.
    ///
    /// # Errors
    /// The first invalid text for this key; nothing is changed then.
    pub fn add_all<'a>(
        &mut self,
        key: Key,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ValueError> {
        let mut values = Vec::new();
        for text in texts {
            match range::expand(text).filter(|_| !key.is_name()) {
                Some(range) => values.extend(range?),
                None => values.push(text.to_owned()),
            }
        }
        let mut extended = self.clone();
        extended.add_values(key, &values)?;
        *self = extended;
        Ok(())
    }

    fn add_values(&mut self, key: Key, texts: &[String]) -> Result<(), ValueError> {
        if key.is_field_list() {
            return texts.iter().try_for_each(|text| self.set(key, text));
        }
        let mut values: Vec<String> = match self.axes.iter().find(|axis| axis.key == key) {
            Some(axis) => axis.values.clone(),
            None => self.text_of(key).into_iter().collect(),
        };
        let mut known: BTreeSet<String> = values.iter().cloned().collect();
        for text in texts {
            let mut alone = Self::default();
            alone.set(key, text)?;
            values.extend(alone.text_of(key).filter(|value| known.insert(value.clone())));
        }
        if let Some(first) = values.first() {
            self.set(key, first)?;
        }
        if values.len() > 1 {
            let at = self.axes.partition_point(|axis| axis.key < key);
            self.axes.insert(at, Axis { key, values });
        }
        Ok(())
    }

    /// The text of a key's value that is set; of several, the first.
    fn text_of(&self, key: Key) -> Option<String> {
        self.values().into_iter().find_map(|(set, text)| (set == key).then_some(text))
    }

    /// Keys that are set, but for those that name something (networks, pages, protocols, TLS, stacks, engines).
    pub fn set_keys(&self) -> Vec<Key> {
        let lists = [
            (Key::Path(PathKey::Rtt), self.rtts.is_empty()),
            (Key::Path(PathKey::Rate), self.rates.is_empty()),
        ];
        let lists = lists.into_iter().filter(|(_, is_empty)| !is_empty).map(|(key, _)| key);
        lists.chain(self.values().into_iter().map(|(key, _)| key)).collect()
    }

    /// Values that are set of keys that are no lists by nature, as texts that parse to the same values.
    pub fn values(&self) -> Vec<(Key, String)> {
        let Self {
            visit,
            request,
            requests,
            parallel,
            connection,
            processing,
            programs,
            sharing,
            acks,
            runs,
            seed,
            ..
        } = self;
        let programs = programs.reported().map(|(key, value)| (Key::Program(key), Some(value)));
        let path = changes(&self.path).into_iter().map(|(key, value)| (Key::Path(key), Some(value)));
        let before = [
            (Key::Visit, visit.map(|visit| visit.name().to_owned())),
            (Key::Requests, requests.map(|requests| requests.name().to_owned())),
            (Key::RequestSize, request.map(|size| size.get().to_string())),
            (Key::Parallel, parallel.map(|parallel| parallel.to_string())),
            (Key::Connection, connection.map(|connection| connection.name().to_owned())),
            (Key::Processing, processing.map(|processing| processing.to_string())),
        ];
        let after = [
            (Key::Sharing, sharing.map(|sharing| sharing.name().to_owned())),
            (Key::Acks, acks.map(|acks| acks.name().to_owned())),
            (Key::Runs, runs.map(|runs| runs.to_string())),
            (Key::Seed, seed.map(|seed| seed.get().to_string())),
        ];
        let all = before.into_iter().chain(programs).chain(after).chain(path);
        all.filter_map(|(key, value)| Some((key, value?))).collect()
    }

    /// Axes of paths, or those of everything else.
    pub(super) fn axes_of(&self, of_paths: bool) -> Vec<&Axis> {
        self.axes.iter().filter(|axis| axis.key.is_of_path() == of_paths).collect()
    }
}

impl Key {
    /// Whether its values are names, texts of which may contain two points.
    const fn is_name(self) -> bool {
        matches!(
            self,
            Self::Network
                | Self::Page
                | Self::Protocol
                | Self::Tls
                | Self::Stack
                | Self::Engine
                | Self::Visit
                | Self::Requests
                | Self::Path(PathKey::NetworkTrace)
        )
    }

    /// Whether a text with a comma is several values.
    pub const fn is_divided_at_commas(self) -> bool {
        !matches!(self, Self::Path(PathKey::NetworkTrace))
    }

    /// Whether a specification has a list of its values in a field.
    const fn is_field_list(self) -> bool {
        matches!(
            self,
            Self::Network
                | Self::Page
                | Self::Protocol
                | Self::Tls
                | Self::Stack
                | Self::Engine
                | Self::Path(PathKey::Rtt | PathKey::Rate)
        )
    }

    /// Whether it is a setting of a path.
    pub const fn is_of_path(self) -> bool {
        matches!(self, Self::Path(_))
    }
}

/// Number of combinations of the axes' values; saturates.
pub(super) fn combinations(axes: &[&Axis]) -> usize {
    axes.iter().fold(1, |count, axis| count.saturating_mul(axis.values.len()))
}

/// The combination of that number, the last axis fastest.
pub(super) fn combination<'a>(axes: &[&'a Axis], mut number: usize) -> Vec<(Key, &'a str)> {
    let mut values = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        let count = axis.values.len().max(1);
        values.extend(axis.values.get(number % count).map(|value| (axis.key, value.as_str())));
        number /= count;
    }
    values.reverse();
    values
}

/// Changes to every path, key by key.
fn changes(changes: &Changes) -> Vec<(PathKey, String)> {
    let Changes { rtt, rate, rate_up, traces, delay_up, mss, mtu, modem, both, up, down } = changes;
    let path = [
        (PathKey::Rtt, rtt.map(|rtt| rtt.to_string())),
        (PathKey::Rate, rate.map(|rate| rate.to_string())),
        (PathKey::RateUp, rate_up.map(|rate| rate.to_string())),
        (PathKey::NetworkTrace, traces.as_ref().map(ToString::to_string)),
        (PathKey::DelayUp, delay_up.map(|delay| delay.to_string())),
        (PathKey::Mss, mss.map(|mss| mss.get().to_string())),
        (PathKey::Mtu, mtu.map(|mtu| mtu.get().to_string())),
        (PathKey::Modem, modem.map(print::modem)),
    ];
    let packets = [(PathDirection::Both, both), (PathDirection::Up, up), (PathDirection::Down, down)];
    let packets = packets.into_iter().flat_map(|(towards, changes)| {
        direction(changes).map(|(key, value)| (PathKey::Packets(towards, key), value))
    });
    path.into_iter().chain(packets).filter_map(|(key, value)| Some((key, value?))).collect()
}

fn direction(changes: &DirectionChanges) -> [(DirectionKey, Option<String>); 6] {
    let DirectionChanges { queue, discipline, loss, jitter, reordering, duplication } = changes;
    [
        (DirectionKey::Queue, queue.map(print::queue)),
        (DirectionKey::QueueDiscipline, discipline.map(print::queue_discipline)),
        (DirectionKey::Loss, loss.as_ref().map(print::loss)),
        (DirectionKey::Jitter, jitter.map(print::jitter)),
        (DirectionKey::Reordering, reordering.map(print::reordering)),
        (DirectionKey::Duplication, duplication.map(print::probability)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_value_makes_a_list_without_repetition() {
        let mut spec = Spec::default();
        for text in ["0%", "0.5%", "0.50%", "0%"] {
            spec.add(Key::named("loss").unwrap(), text).unwrap();
        }
        let [axis] = spec.axes.as_slice() else { panic!("{:?}", spec.axes) };
        assert_eq!(axis.values, ["none", "0.5%"]);
        assert_eq!(spec.set_keys(), [Key::named("loss").unwrap()]);
    }

    #[test]
    fn ranges_expand_and_an_invalid_value_changes_nothing() {
        let mut spec = Spec::default();
        spec.add(Key::Seed, "1..3").unwrap();
        assert_eq!(spec.axes[0].values, ["1", "2", "3"]);
        spec.add(Key::named("rtt").unwrap(), "10ms..1s*3").unwrap();
        assert_eq!(spec.rtts.len(), 3);
        let before = spec.clone();
        assert!(spec.add(Key::Parallel, "1..1001+2").is_err());
        assert!(spec.add(Key::named("loss").unwrap(), "1%..x").is_err());
        assert_eq!(spec, before);
    }

    #[test]
    fn combinations_come_in_order_the_last_axis_fastest() {
        let axis = |key, values: [&str; 2]| Axis { key, values: values.map(str::to_owned).into() };
        let axes = [axis(Key::Parallel, ["1", "6"]), axis(Key::Seed, ["1", "2"])];
        let axes: Vec<&Axis> = axes.iter().collect();
        let texts =
            |number| combination(&axes, number).iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ");
        assert_eq!((0..combinations(&axes)).map(texts).collect::<Vec<_>>(), ["1 1", "1 2", "6 1", "6 2"]);
    }
}
