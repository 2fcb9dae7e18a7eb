//! Parameters of DHTTP (`papers/dhttp#section-iii`): the thresholds S and L, resend times, the idle timeout, and limits
//! of connections, by name and value.
//!
//! | name | value | parameter |
//! | --- | --- | --- |
//! | `datagram` | 0 to 65,000 bytes | size threshold, S: larger responses go by TCP; 0: all |
//! | `loss` | a percentage | loss threshold, L |
//! | `idle` | a duration | idle timeout of the connections that the server opens |
//! | `opened-connections` | from 1 on | maximum number of these |
//! | `client-opened-connections` | from 1 on | the same for one client |
//! | `resend` | two durations: `5s/10s` | timeouts before the first and the second resend, at the client |

use std::fmt;

use dhttp_proto::ServerConfig;
use dhttp_proto::client::Resend;
use dhttp_proto::server::PerClient;
use quantity::ValueError;
use quantity::names;
use wire::{Duration, Probability};

use super::Dhttp;

/// Parameters that differ from a profile's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    datagram: Option<u64>,
    loss_ppm: Option<u32>,
    idle: Option<Duration>,
    opened: Option<usize>,
    client_opened: Option<usize>,
    resend: Option<[Duration; 2]>,
}

const DATAGRAM: &str = "datagram";
const LOSS: &str = "loss";
const IDLE: &str = "idle";
const OPENED: &str = "opened-connections";
const CLIENT_OPENED: &str = "client-opened-connections";
const RESEND: &str = "resend";

/// Names of the server's parameters.
pub const SERVER_PARAMETERS: [&str; 5] = [DATAGRAM, LOSS, IDLE, OPENED, CLIENT_OPENED];

/// Maximum size of a datagram that may be configured, in bytes; below IPv4's maximum with its options.
const MAX_DATAGRAM: u64 = 65_000;
const MILLION: u32 = 1_000_000;

impl Parameters {
    /// Sets a parameter; the last value wins.
    ///
    /// # Errors
    /// An unknown name, or a value that is not one of this parameter.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ValueError> {
        let all: Vec<&'static str> = SERVER_PARAMETERS.into_iter().chain([RESEND]).collect();
        match names::find("parameter of DHTTP", name, &all, |name| name)? {
            DATAGRAM => self.datagram = Some(datagram(value)?),
            LOSS => self.loss_ppm = Some(millionths(quantity::probability(value)?)),
            IDLE => self.idle = Some(quantity::duration(value)?),
            OPENED => self.opened = Some(count(value)?),
            CLIENT_OPENED => self.client_opened = Some(count(value)?),
            _ => self.resend = Some(resend(value)?),
        }
        Ok(())
    }

    /// Applies the server's parameters.
    #[must_use]
    pub fn of_server(&self, mut config: ServerConfig) -> ServerConfig {
        let Self { datagram, loss_ppm, idle, opened, client_opened, resend: _ } = *self;
        config.threshold = datagram.unwrap_or(config.threshold);
        config.loss.threshold_ppm = loss_ppm.unwrap_or(config.loss.threshold_ppm);
        config.timeout.idle = idle.unwrap_or(config.timeout.idle);
        config.connections = opened.unwrap_or(config.connections);
        if let Some(max) = client_opened {
            config.per_client = PerClient { max, max_when_few: max, few_below: 0 };
        }
        config
    }

    /// Applies all parameters.
    #[must_use]
    pub fn of_ends(&self, mut ends: Dhttp) -> Dhttp {
        ends.server = self.of_server(ends.server);
        if let Some(waits) = self.resend {
            ends.client.resend = Resend::Fixed { waits };
        }
        ends
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { datagram, loss_ppm, idle, opened, client_opened, resend } = self;
        let percent = |ppm: &u32| format!("{}%", f64::from(*ppm) / 10_000.0);
        let texts = [
            (DATAGRAM, datagram.map(|bytes| bytes.to_string())),
            (LOSS, loss_ppm.as_ref().map(percent)),
            (IDLE, idle.map(|idle| idle.to_string())),
            (OPENED, opened.map(|count| count.to_string())),
            (CLIENT_OPENED, client_opened.map(|count| count.to_string())),
            (RESEND, resend.map(|[first, second]| format!("{first}/{second}"))),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                write!(f, "+{name}={text}")?;
            }
        }
        Ok(())
    }
}

fn datagram(text: &str) -> Result<u64, ValueError> {
    if text.trim() == "0" {
        return Ok(0);
    }
    let bytes = quantity::object_size(text)?.get();
    let (min, max) = ("0", "65000");
    let what = "a datagram's size";
    (bytes <= MAX_DATAGRAM).then_some(bytes).ok_or(ValueError::OutOfRange {
        what,
        given: text.to_owned(),
        min,
        max,
    })
}

fn count(text: &str) -> Result<usize, ValueError> {
    let count: Option<usize> = text.trim().parse().ok().filter(|count| *count > 0);
    let example = "a whole number from 1 on, such as 150";
    count.ok_or_else(|| ValueError::NotA { what: "a number of connections", given: text.to_owned(), example })
}

fn resend(text: &str) -> Result<[Duration; 2], ValueError> {
    let example = "the times before the first and the second, such as 5s/10s";
    let invalid = || ValueError::NotA { what: "a pair of resend times", given: text.to_owned(), example };
    let (first, second) = text.split_once('/').ok_or_else(invalid)?;
    let waits = [quantity::duration(first)?, quantity::duration(second)?];
    // A client that resends without waiting would send as fast as it can.
    if waits.contains(&Duration::ZERO) { Err(invalid()) } else { Ok(waits) }
}

/// A probability in millionths, rounded.
fn millionths(share: Probability) -> u32 {
    // From 0 to a million.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ppm = (share.get() * f64::from(MILLION)).round() as u32;
    ppm
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> Parameters {
        let mut parameters = Parameters::default();
        pairs.iter().for_each(|(name, value)| parameters.set(name, value).unwrap());
        parameters
    }

    #[test]
    fn parameters_replace_those_of_the_profile_and_nothing_else() {
        assert_eq!(Parameters::default().of_ends(Dhttp::internet()), Dhttp::internet());
        let parameters = set(&[
            ("datagram", "4kB"),
            ("loss", "0.5%"),
            ("idle", "5s"),
            ("opened-connections", "200"),
            ("client-opened-connections", "3"),
            ("resend", "1s/2s"),
        ]);
        let Dhttp { client, server } = parameters.of_ends(Dhttp::paper());
        assert_eq!((server.threshold, server.loss.threshold_ppm), (4_096, 5_000));
        assert_eq!((server.timeout.idle, server.connections), (Duration::from_secs(5), 200));
        assert_eq!(server.per_client, PerClient { max: 3, max_when_few: 3, few_below: 0 });
        let waits = [Duration::from_secs(1), Duration::from_secs(2)];
        assert_eq!(client.resend, Resend::Fixed { waits });
        assert_eq!(server.remembered, Dhttp::paper().server.remembered);
    }

    #[test]
    fn last_value_wins_and_zero_sends_everything_by_tcp() {
        let parameters = set(&[("datagram", "4kB"), ("datagram", "0")]);
        assert_eq!(parameters.of_server(ServerConfig::paper()).threshold, 0);
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        for (name, value) in [
            ("datagram", "65001"),
            ("datagram", "much"),
            ("loss", "101%"),
            ("loss", "1"),
            ("idle", "5"),
            ("opened-connections", "0"),
            ("client-opened-connections", "-1"),
            ("resend", "5s"),
            ("resend", "0s/1s"),
            ("datagrams", "1"),
        ] {
            let error = Parameters::default().set(name, value).unwrap_err().to_string();
            assert!(!error.is_empty(), "{name}={value}");
        }
        let error = Parameters::default().set("datagrm", "1").unwrap_err().to_string();
        assert!(error.contains("datagram"), "{error}");
    }
}
