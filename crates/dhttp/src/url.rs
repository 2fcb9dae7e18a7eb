//! URLs: `http://HOST:PORT/PATH`, `dhttp://HOST:PORT/PATH`, `dhttp+tcp://HOST:PORT/PATH`.
//!
//! Only what this client can fetch: no users, no encryption. The scheme `dhttp` states that the server speaks DHTTP, and
//! `dhttp+tcp` that the request must go by TCP all the same (`papers/dhttp#section-iii-a`).

use std::str::FromStr;

/// A URL that this client can fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether the scheme is `dhttp`.
    pub is_dhttp: bool,
    /// Whether the scheme is `dhttp+tcp`: the request goes over plain HTTP, whatever the server speaks.
    pub is_by_tcp: bool,
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The port, for both UDP and TCP.
    pub port: u16,
    /// Path and query.
    pub target: String,
}

impl Url {
    /// Returns the value of the field `Host`.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        if self.port == 80 { host } else { format!("{host}:{}", self.port) }
    }

    /// Returns the file name for saving: the last segment of the path.
    pub fn file_name(&self) -> &str {
        let path = self.target.split('?').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.is_empty() || name == "." || name == ".." { "index.html" } else { name }
    }

    /// Resolves a location relative to this URL: an absolute URL or a path.
    ///
    /// # Errors
    /// If the result cannot be fetched.
    pub fn join(&self, location: &str) -> Result<Self, UrlError> {
        if location.contains("://") {
            return location.parse();
        }
        let target = match location.strip_prefix('/') {
            Some(rest) if !rest.starts_with('/') => location.to_owned(),
            Some(_) => return Err(UrlError::Scheme(location.to_owned())),
            None => {
                let directory = self.target.split('?').next().unwrap_or_default().rsplit_once('/');
                format!("{}/{location}", directory.map_or("", |(directory, _)| directory))
            }
        };
        Self { target, ..self.clone() }.checked()
    }

    fn checked(self) -> Result<Self, UrlError> {
        let target = self.target.split('#').next().unwrap_or_default().to_owned();
        if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Target(target));
        }
        Ok(Self { target, ..self })
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let (is_dhttp, is_by_tcp) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (false, false),
            "dhttp" => (true, false),
            "dhttp+tcp" => (false, true),
            _ => return Err(UrlError::Scheme(text.to_owned())),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (host, port) = match authority.strip_prefix('[') {
            Some(inside) => {
                let (host, port) =
                    inside.split_once(']').ok_or_else(|| UrlError::Host(authority.to_owned()))?;
                (host, port.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            return Err(UrlError::Host(authority.to_owned()));
        }
        let port = match port {
            None | Some("") => 80,
            Some(port) => {
                port.parse().ok().filter(|port| *port > 0).ok_or_else(|| UrlError::Port(port.to_owned()))?
            }
        };
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Self { is_dhttp, is_by_tcp, host: host.to_owned(), port, target }.checked()
    }
}

/// Reason why a URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Neither `http` nor `dhttp`.
    #[error("{0:?} cannot be fetched; give an address that begins with http:// or dhttp://")]
    Scheme(String),
    /// No host, or an invalid one.
    #[error("{0:?} is not a host; give a name or an address, IPv6 in brackets")]
    Host(String),
    /// Invalid port.
    #[error("{0:?} is not a port; give 1 to 65535")]
    Port(String),
    /// A character that must be percent-encoded.
    #[error("{0:?} has characters that must be percent-encoded; encode them")]
    Target(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let url: Url = "dhttp://[::1]:8080/a/b?c#d".parse().unwrap();
        assert_eq!(
            (url.is_dhttp, url.host.as_str(), url.port, url.target.as_str()),
            (true, "::1", 8_080, "/a/b?c")
        );
        assert_eq!((url.authority(), url.file_name()), ("[::1]:8080".to_owned(), "b"));
        let url: Url = "example.org".parse().unwrap();
        assert_eq!((url.authority().as_str(), url.target.as_str()), ("example.org", "/"));
        let url: Url = "dhttp+tcp://h/a".parse().unwrap();
        assert!(url.is_by_tcp && !url.is_dhttp && url.join("b").unwrap().is_by_tcp);
        assert_eq!("http://h?x".parse::<Url>().unwrap().target, "/?x");
    }

    #[test]
    fn rejects_urls_that_cannot_be_fetched() {
        for text in [
            "https://h/",
            "http://",
            "http://h:0/",
            "http://h:x/",
            "http://h/a b",
            "http://u@h/",
            "http://[::1/",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_location_is_followed_from_where_it_was_given() {
        let url: Url = "http://h:81/a/b".parse().unwrap();
        assert_eq!(url.join("/c/").unwrap().target, "/c/");
        assert_eq!(url.join("c").unwrap().target, "/a/c");
        assert_eq!(url.join("http://i/d").unwrap().host, "i");
        assert!(url.join("//evil/x").is_err() && url.join("https://h/").is_err());
    }
}
