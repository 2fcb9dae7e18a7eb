//! Servers known to speak DHTTP, by `HOST` or `HOST:PORT`, their ports for it, and their tokens.
//!
//! The text format has a line for each server, `HOST PORT`, and for each token,
//! `@token ADDRESS:PORT TOKEN CLIENT-PORT EXPIRY`. Tokens are valid for the TCP port on which the client accepted connections,
//! so the next client must bind it again. Not proof: if a server no longer speaks DHTTP, the first request finds that out and
//! then goes over plain HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use dhttp_proto::token::is_token;

/// The known servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownServers {
    ports: BTreeMap<String, u16>,
    tokens: BTreeMap<SocketAddr, StoredToken>,
}

/// A token of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredToken {
    /// The token, visible ASCII.
    pub(super) token: String,
    /// TCP port of the client for which it was issued.
    pub(super) port: u16,
    /// End of its lifetime, in seconds since 1970.
    pub(super) expires: u64,
}

/// Lifetime of a token at a client, in seconds (`docs/dhttp.md`, Tokens). A server may accept it for a shorter time.
pub(super) const TOKEN_LIFETIME_SECONDS: u64 = 600;

/// Maximum number of servers that are remembered.
const MAX_SERVERS: usize = 10_000;
/// Maximum number of tokens that are remembered, as many as a client has.
const MAX_TOKENS: usize = 1_024;
/// First word of a line with a token: no host contains `@`.
const TOKEN_MARK: &str = "@token ";

/// Line that is neither a server nor a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0}: neither a server nor a token")]
pub struct DamagedLine(
    /// Number of the line, from 1.
    pub usize,
);

impl KnownServers {
    /// Reads the output of [`KnownServers::text`].
    ///
    /// # Errors
    /// The first invalid line.
    pub fn from_text(text: &str) -> Result<Self, DamagedLine> {
        let mut known = Self::default();
        for (line, number) in text.lines().zip(1..) {
            known.read(line).ok_or(DamagedLine(number))?;
        }
        Ok(known)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        if let Some(token) = line.strip_prefix(TOKEN_MARK) {
            let (server, stored) = StoredToken::read(token)?;
            if self.tokens.len() < MAX_TOKENS {
                self.tokens.insert(server, stored);
            }
            return Some(());
        }
        let (server, port) = line.split_once(' ')?;
        let port = port.parse().ok().filter(|_| server.bytes().all(|byte| byte.is_ascii_graphic()))?;
        if self.ports.len() < MAX_SERVERS {
            self.ports.insert(server.to_owned(), port);
        }
        Some(())
    }

    /// Returns the text format, a line for each server and each token. Tokens are secrets of this client and its servers.
    pub fn text(&self) -> String {
        let servers = self.ports.iter().map(|(server, port)| format!("{server} {port}\n"));
        let tokens = self.tokens.iter().map(|(server, StoredToken { token, port, expires })| {
            format!("{TOKEN_MARK}{server} {token} {port} {expires}\n")
        });
        servers.chain(tokens).collect()
    }

    /// Returns the port on which this server speaks DHTTP.
    pub fn port(&self, server: &str) -> Option<u16> {
        self.ports.get(server).copied()
    }

    /// Applies a server's field `Alt-Svc` (RFC 7838): `dhttp=":PORT"` on its own host, or `clear`.
    pub fn apply_alt_svc(&mut self, server: &str, field: &[u8]) {
        let Ok(field) = std::str::from_utf8(field) else { return };
        if field.trim() == "clear" {
            self.ports.remove(server);
        }
        for entry in field.split(',') {
            let entry = entry.split(';').next().unwrap_or_default().trim();
            let port = entry.strip_prefix("dhttp=\":").and_then(|rest| rest.strip_suffix('"'));
            if let Some(port) = port.and_then(|port| port.parse().ok())
                && (self.ports.len() < MAX_SERVERS || self.ports.contains_key(server))
            {
                self.ports.insert(server.to_owned(), port);
            }
        }
    }

    /// Removes a server that no longer speaks DHTTP.
    pub(super) fn forget(&mut self, server: &str) {
        self.ports.remove(server);
    }

    /// Returns the tokens that are valid at `now`, in seconds since 1970. One that claims a longer lifetime than tokens have was
    /// stored before the calendar was set back.
    pub(super) fn tokens(&self, now: u64) -> impl Iterator<Item = (SocketAddr, &StoredToken)> {
        let valid = now + 1..=now.saturating_add(TOKEN_LIFETIME_SECONDS);
        self.tokens
            .iter()
            .filter(move |(_, stored)| valid.contains(&stored.expires))
            .map(|(of, stored)| (*of, stored))
    }

    /// Replaces all tokens.
    pub(super) fn set_tokens(&mut self, tokens: impl Iterator<Item = (SocketAddr, StoredToken)>) {
        self.tokens = tokens.take(MAX_TOKENS).collect();
    }
}

impl StoredToken {
    fn read(text: &str) -> Option<(SocketAddr, Self)> {
        let mut words = text.split(' ');
        let (server, token) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        let (port, expires) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let is_one = is_token(token.as_bytes()) && port > 0 && words.next().is_none();
        is_one.then_some((server, Self { token, port, expires }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_support_is_stored_as_text() {
        let mut known = KnownServers::default();
        known.apply_alt_svc("h", b"h2=\":443\", dhttp=\":8080\"; ma=60");
        known.apply_alt_svc("i:81", b"dhttp=\":81\"");
        known.apply_alt_svc("other", b"dhttp=\"elsewhere:80\"");
        assert_eq!(known.text(), "h 8080\ni:81 81\n");
        assert_eq!(KnownServers::from_text(&known.text()), Ok(known.clone()));
        known.apply_alt_svc("h", b"clear");
        assert_eq!(known.port("h"), None);
    }

    #[test]
    fn tokens_are_stored_as_text_until_they_expire() {
        let text = "h 8080\n@token 192.0.2.1:8080 00ff 40001 1600\n@token [2001:db8::1]:80 0100 40001 1700\n";
        let known = KnownServers::from_text(text).unwrap();
        assert_eq!(known.text(), text);
        let valid = |now| known.tokens(now).map(|(_, stored)| stored.token.as_str()).collect::<Vec<_>>();
        assert_eq!(valid(999), [""; 0], "the calendar was set back");
        assert_eq!(valid(1_000), ["00ff"]);
        assert_eq!(valid(1_100), ["00ff", "0100"]);
        assert_eq!(valid(1_600), ["0100"]);
        assert_eq!(valid(1_700), [""; 0]);
    }

    #[test]
    fn damaged_lines_are_reported() {
        for line in [
            "",
            "nonsense",
            "x y",
            "h 65536",
            "\u{1}h 80",
            "@token",
            "@token 192.0.2.1 00ff 1 1",
            "@token 192.0.2.1:80 ? 1 1",
            "@token 192.0.2.1:80 00ff 0 1",
            "@token 192.0.2.1:80 00ff 1",
            "@token 192.0.2.1:80 00ff 1 -1",
            "@token 192.0.2.1:80 00ff 1 1 1",
        ] {
            let text = format!("h 80\n{line}\n");
            assert_eq!(KnownServers::from_text(&text), Err(DamagedLine(2)), "{line}");
        }
    }
}
