//! Servers known to speak DHTTP, by `HOST` or `HOST:PORT`, and their ports for it.
//!
//! The text format has a line for each: server, port. Not proof: if a server no longer speaks DHTTP, the first request finds
//! that out and then goes over plain HTTP.

use std::collections::BTreeMap;

/// The known servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownServers {
    ports: BTreeMap<String, u16>,
}

/// Maximum number of servers that are remembered.
const MAX_SERVERS: usize = 10_000;

impl KnownServers {
    /// Reads the output of [`KnownServers::text`]; invalid lines are skipped.
    pub fn from_text(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| {
            let (server, port) = line.split_once(' ')?;
            Some((server.to_owned(), port.parse().ok()?))
        });
        Self { ports: lines.take(MAX_SERVERS).collect() }
    }

    /// Returns the text format, a line for each server.
    pub fn text(&self) -> String {
        self.ports.iter().map(|(server, port)| format!("{server} {port}\n")).collect()
    }

    /// Returns the port on which this server speaks DHTTP.
    pub fn port(&self, server: &str) -> Option<u16> {
        self.ports.get(server).copied()
    }

    /// Applies a server's field `Alt-Svc` (RFC 7838): `dhttp=":PORT"` on its own host, or `clear`.
    pub fn hear(&mut self, server: &str, field: &[u8]) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_support_is_stored_as_text() {
        let mut known = KnownServers::default();
        known.hear("h", b"h2=\":443\", dhttp=\":8080\"; ma=60");
        known.hear("i:81", b"dhttp=\":81\"");
        known.hear("other", b"dhttp=\"elsewhere:80\"");
        assert_eq!(known.text(), "h 8080\ni:81 81\n");
        assert_eq!(KnownServers::from_text(&known.text()), known);
        assert_eq!(KnownServers::from_text("nonsense\nx y\n").text(), "");
        known.hear("h", b"clear");
        assert_eq!(known.port("h"), None);
    }
}
