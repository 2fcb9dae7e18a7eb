//! Limits of clients of `serve` and `cache`, by name: the flag `--limit NAME=VALUE` and the key `limit`.
//!
//! Not what they do: that is `dhttp`'s.

use dhttp::ServerConfig;
use quantity::names::Quoted;

use super::keeping::size;
use crate::failure::Failure;

const NAMES: &str = "connections, client-connections, body, client-bodies, bodies, min-rate";

/// The configuration with these limits; later ones win.
pub fn limited(config: ServerConfig, limits: &[String]) -> Result<ServerConfig, Failure> {
    limits.iter().try_fold(config, |config, text| one(config, text))
}

fn one(mut config: ServerConfig, text: &str) -> Result<ServerConfig, Failure> {
    let wrong = |what: &str| Failure::Value(format!("--limit: {} {what}", Quoted(text)));
    let (name, value) = text.split_once('=').ok_or_else(|| wrong("has no value; write NAME=VALUE"))?;
    let number = || {
        let number: Option<usize> = value.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| wrong("is not a number from 1 on"))
    };
    let bytes = || size("limit", value);
    let clients = &mut config.clients;
    match name {
        "connections" => config.accepted = number()?,
        "client-connections" => clients.connections = number()?,
        "body" => config.body_bytes = usize::try_from(bytes()?).unwrap_or(usize::MAX),
        "client-bodies" => clients.body_bytes = bytes()?,
        "bodies" => clients.total_body_bytes = bytes()?,
        "min-rate" => clients.min_read_rate = bytes()?,
        _ => return Err(wrong(&format!("is not a limit; there are {NAMES}"))),
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_name_and_a_value_and_the_last_one_wins() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let config = ServerConfig::internet();
        let limits = ["connections=5", "bodies=1MiB", "min-rate=0", "connections=7", "body=2KiB"];
        let config = limited(config, &texts(&limits)).unwrap();
        assert_eq!((config.accepted, config.body_bytes), (7, 2_048));
        assert_eq!((config.clients.total_body_bytes, config.clients.min_read_rate), (1 << 20, 0));
        for text in ["connections", "connections=0", "connections=x", "body=much", "x=1"] {
            assert!(limited(config, &texts(&[text])).is_err(), "{text}");
        }
    }
}
