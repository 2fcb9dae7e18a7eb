//! Limits of clients of `serve`, `cache` and `gateway`: the flag `--limit NAME=VALUE` and the key `limit`.
//!
//! `dhttp` and `dhttp_proxy` enforce them.

use dhttp::ServerConfig;
use dhttp_proxy::{FetchLimits, GatewayConfig};
use quantity::names::Quoted;
use scenario::dhttp::{Parameters, SERVER_PARAMETERS};

use super::cache_storage::size;
use crate::failure::Failure;

const NAMES: &str = "connections, client-connections, body, client-bodies, bodies, min-rate, tokenless-responses, token-bytes, pending, \
                     client-pending, fetches, client-fetches, origin-fetches, temporary-files, client-temporary-files, datagram, loss, idle, opened-connections, client-opened-connections";
const GATEWAY_NAMES: &str = "connections, client-connections, origin-fetches, min-rate";

/// Applies these limits to a configuration; later ones win.
pub fn limited(config: ServerConfig, limits: &[String]) -> Result<ServerConfig, Failure> {
    limits.iter().try_fold(config, |config, text| set_limit(config, text))
}

/// Parses the limits of fetches and temporary files; later ones win. `is_by_client` is false where clients may share an
/// address.
pub fn fetch_limits(limits: &[String], is_by_client: bool) -> Result<FetchLimits, Failure> {
    let default = FetchLimits::default();
    let default = if is_by_client { default } else { default.for_all_clients_together() };
    limits.iter().try_fold(default, |mut limits, text| {
        set_fetch_limit(&mut limits, &Limit::of(text)?)?;
        Ok(limits)
    })
}

/// Sets a limit of fetches or temporary files. Returns whether it is one.
fn set_fetch_limit(limits: &mut FetchLimits, limit: &Limit<'_>) -> Result<bool, Failure> {
    let number = || limit.number().map(|number| number as u64);
    match limit.name {
        "fetches" => limits.fetches = number()?,
        "client-fetches" => limits.client_fetches = Some(number()?),
        "origin-fetches" => limits.origin_fetches = Some(number()?),
        "temporary-files" => limits.file_bytes = limit.bytes()?,
        "client-temporary-files" => limits.client_file_bytes = Some(limit.bytes()?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Applies these limits to the configuration of a gateway; later ones win.
pub fn gateway_limited(config: GatewayConfig, limits: &[String]) -> Result<GatewayConfig, Failure> {
    limits.iter().try_fold(config, |mut config, text| {
        let limit = Limit::of(text)?;
        match limit.name {
            "connections" => config.connections = limit.number()?,
            "client-connections" => config.client_connections = Some(limit.number()?),
            "origin-fetches" => config.origin_exchanges = Some(limit.number()?),
            "min-rate" => config.min_upload_rate = limit.bytes()?,
            _ => return Err(limit.unknown(GATEWAY_NAMES)),
        }
        Ok(config)
    })
}

fn set_limit(mut config: ServerConfig, text: &str) -> Result<ServerConfig, Failure> {
    let limit = Limit::of(text)?;
    let clients = &mut config.clients;
    match limit.name {
        "connections" => config.accepted = limit.number()?,
        "client-connections" => clients.connections = limit.number()?,
        "body" => config.body_bytes = usize::try_from(limit.bytes()?).unwrap_or(usize::MAX),
        "client-bodies" => clients.body_bytes = limit.bytes()?,
        "bodies" => clients.total_body_bytes = limit.bytes()?,
        "min-rate" => clients.min_read_rate = limit.bytes()?,
        "pending" => config.pending = limit.number()?,
        "client-pending" => clients.pending = limit.number()?,
        "tokenless-responses" => config.dhttp.validation.limit_responses(limit.number()?),
        "token-bytes" if limit.bytes()? < 16 << 10 => {
            return Err(invalid(text, "is less than a few responses; give 16KiB or more"));
        }
        "token-bytes" => config.dhttp.validation.limit_bytes(limit.bytes()?),
        name if SERVER_PARAMETERS.contains(&name) => {
            let mut parameters = Parameters::default();
            let set = parameters.set(name, limit.value);
            set.map_err(|error| Failure::Value(format!("--limit: {name}: {error}")))?;
            config.dhttp = parameters.of_server(config.dhttp);
        }
        _ if set_fetch_limit(&mut FetchLimits::default(), &limit)? => {}
        _ => return Err(limit.unknown(NAMES)),
    }
    Ok(config)
}

/// Unparsed limit.
struct Limit<'a> {
    text: &'a str,
    name: &'a str,
    value: &'a str,
}

impl<'a> Limit<'a> {
    fn of(text: &'a str) -> Result<Self, Failure> {
        match text.split_once('=') {
            Some((name, value)) => Ok(Self { text, name, value }),
            None => Err(invalid(text, "has no value; write NAME=VALUE")),
        }
    }

    fn number(&self) -> Result<usize, Failure> {
        let number: Option<usize> = self.value.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| invalid(self.text, "is not a number; give 1 or more"))
    }

    fn bytes(&self) -> Result<u64, Failure> {
        size("limit", self.value)
    }

    fn unknown(&self, names: &str) -> Failure {
        invalid(self.text, &format!("is not a limit; choose one of {names}"))
    }
}

fn invalid(text: &str, reason: &str) -> Failure {
    Failure::Value(format!("--limit: {} {reason}", Quoted(text)))
}

#[cfg(test)]
mod tests {
    use dhttp_proto::server::Validation;

    use super::*;

    #[test]
    fn a_limit_is_a_name_and_a_value_and_the_last_one_wins() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let config = ServerConfig::internet();
        let limits = ["connections=5", "bodies=1MiB", "min-rate=0", "connections=7", "body=2KiB"];
        let config = limited(config, &texts(&limits)).unwrap();
        assert_eq!((config.accepted, config.body_bytes), (7, 2_048));
        assert_eq!((config.clients.total_body_bytes, config.clients.min_read_rate), (1 << 20, 0));
        let pending_limits = ["pending=9", "client-pending=8", "fetches=7", "client-temporary-files=1MiB"];
        let (server, fetches) =
            (limited(config, &texts(&pending_limits)), fetch_limits(&texts(&pending_limits), true));
        let (server, fetches) = (server.unwrap(), fetches.unwrap());
        assert_eq!((server.pending, server.clients.pending), (9, 8));
        let expected = FetchLimits { fetches: 7, client_file_bytes: Some(1 << 20), ..FetchLimits::default() };
        assert_eq!(fetches, expected);
        let limits = |config: ServerConfig| match config.dhttp.validation {
            Validation::Tokens { limiter, rate, .. } => (limiter.max, rate.max),
            Validation::Trusting => ([0; 3], [0; 3]),
        };
        let changed = limited(config, &texts(&["token-bytes=2MiB", "tokenless-responses=10"])).unwrap();
        assert_eq!(limits(changed), ([10, 50, 200], [32_768, 131_072, u32::MAX]));
        let invalid = "connections connections=0 connections=x body=much x=1 token-bytes=1KiB fetches=0";
        for text in invalid.split(' ') {
            assert!(limited(config, &texts(&[text])).is_err(), "{text}");
        }
        let limits = ["datagram=4kB", "loss=2%", "idle=5s", "opened-connections=9", "datagram=8kB"];
        let dhttp = limited(ServerConfig::internet(), &texts(&limits)).unwrap().dhttp;
        assert_eq!((dhttp.threshold, dhttp.loss.threshold_ppm, dhttp.connections), (8_192, 20_000, 9));
        for text in ["datagram=70000", "loss=2", "idle=soon", "opened-connections=0"] {
            assert!(limited(ServerConfig::internet(), &texts(&[text])).is_err(), "{text}");
        }
        let gateway = || GatewayConfig::new(dhttp::ClientConfig::internet());
        let limits = ["connections=9", "client-connections=3", "min-rate=1KiB"];
        let limited = gateway_limited(gateway(), &texts(&limits)).unwrap();
        assert_eq!((limited.connections, limited.client_connections), (9, Some(3)));
        assert_eq!(limited.min_upload_rate, 1_024);
        assert!(gateway_limited(gateway(), &texts(&["bodies=1MiB"])).is_err(), "a gateway buffers none");
    }
}
