//! Networks in flags and files: permitted clients, and permitted sources of responses.
//!
//! `dhttp_proto` enforces them.

use dhttp_proto::Prefix;
use dhttp_proto::client::Responders;
use dhttp_proto::prefix::{PrefixError, Prefixes};
use quantity::names::Quoted;

use crate::failure::Failure;

/// Parses networks; an error names the flag.
pub fn networks<'a>(flag: &str, texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<Prefix>, Failure> {
    let read = |text: &str| {
        let error = |error: PrefixError| Failure::Value(format!("--{flag}: {}: {error}", Quoted(text)));
        text.trim().parse().map_err(error)
    };
    texts.into_iter().map(read).collect()
}

/// Parses permitted sources of responses: `none`, `any`, or caches in networks.
pub fn caches(text: &str) -> Result<Responders, Failure> {
    match text {
        "none" => Ok(Responders::Server),
        "any" => Ok(Responders::AnyHost),
        list => caches_in(list),
    }
}

/// Parses networks of permitted caches.
pub fn caches_in(list: &str) -> Result<Responders, Failure> {
    let prefixes = Prefixes::new(&networks("caches", list.split(','))?);
    prefixes.map(Responders::Caches).ok_or_else(|| {
        Failure::Value(format!(
            "--caches: there are more than {} networks; give fewer",
            Prefixes::MAX_PREFIXES
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_refused_or_allowed_all_or_by_network() {
        assert_eq!(caches("none").unwrap(), Responders::Server);
        assert_eq!(caches("any").unwrap(), Responders::AnyHost);
        let in_networks = caches("192.0.2.0/24, 2001:db8::/32").unwrap();
        for (address, expected) in [("192.0.2.9", true), ("192.0.3.1", false), ("2001:db8::1", true)] {
            assert_eq!(in_networks.include(address.parse().unwrap()), expected, "{address}");
        }
        let many = ["192.0.2.1"; 9].join(",");
        for (text, expected) in
            [("some", "neither an address nor a network"), ("", "neither"), (&many, "more than 8")]
        {
            let reported = caches(text).unwrap_err().to_string();
            assert!(reported.contains("--caches") && reported.contains(expected), "{reported}");
        }
    }
}
