//! Messages of DHTTP (docs/dhttp.md) in captured datagrams, and on the TCP connections that servers open for responses.
//!
//! Not a strict reader (`dhttp-proto` has one).

pub mod opened;

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The id that its responses repeat.
    pub id: u64,
    /// The TCP port at which the client accepts connections; 0 if it accepts none.
    pub port: u16,
    /// Whether the client resends it, and not to bypass a cache.
    pub is_retransmission: bool,
    /// Its method, in upper case.
    pub method: &'a str,
    /// Its target, as sent.
    pub target: &'a str,
}

impl<'a> Request<'a> {
    /// Parses a request; `None` for every other datagram.
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        let (id, rest) = split_id(payload)?;
        let ([high, low, flags], http) = rest.split_first_chunk::<3>()?;
        let line = http.split(|byte| *byte == b'\r').next()?;
        let (line, version) = std::str::from_utf8(line).ok()?.rsplit_once(' ')?;
        let (method, target) = line.split_once(' ')?;
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let port = u16::from_be_bytes([*high, *low]);
        // A request resent to bypass a cache: nothing was lost.
        let is_past = http.windows(PAST.len()).any(|bytes| bytes == PAST);
        (*flags <= 1 && version == "HTTP/1.1" && is_method).then_some(Self {
            id,
            port,
            is_retransmission: *flags == 1 && !is_past,
            method,
            target,
        })
    }
}

/// Beginning of the `DHTTP-Past` field.
const PAST: &[u8] = b"\r\nDHTTP-Past:";

/// Splits off the id with which every message begins.
pub fn split_id(payload: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = payload.split_first_chunk()?;
    Some((u64::from_be_bytes(*id), rest))
}

/// Returns the status code of an HTTP response.
pub fn status(response: &[u8]) -> Option<u16> {
    let rest = response.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(rest).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
