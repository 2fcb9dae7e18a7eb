//! One JSON object per line: nginx with its usual names, Caddy, Traefik.
//!
//! Not a JSON library: it finds members of the object and of objects in it, by name, and checks only as
//! much as that takes. Escapes in strings are not decoded; addresses and numbers have none.

use wire::Duration;

use crate::client::ClientDefinition;
use crate::clock::Clock;
use crate::field::{CLIENTS, METHODS, SIZES, STATUSES, TARGETS, TIMES};
use crate::tally::Reason;
use crate::target::LoggedRequest;
use crate::{Record, client, number};

/// Parses one line, without its line ending.
///
/// # Errors
/// The reason why the line gives no record.
pub fn read(line: &[u8], clock: &mut Clock, definition: &ClientDefinition) -> Result<Record, Reason> {
    let mut members = BestMembers::default();
    let mut scan = Scan { rest: line };
    scan.object(&[], 0, &mut |object, name, value| members.member(object, name, value, definition))
        .ok_or(Reason::Shape)?;
    let BestMembers { client, time: when, status, size, taken } = members;
    let (_, client) = client.filter(|(_, text)| !text.is_empty()).ok_or(Reason::Client)?;
    let time = when.and_then(|(_, text)| clock.any(text)).ok_or(Reason::Time)?;
    let (index, size) = size.unwrap_or((0, b"-"));
    Ok(Record {
        time,
        client: definition.client(client::without_port(client)),
        status: number::status(status.map_or(b"-", |(_, text)| text))?,
        size: number::size(if size == b"null" { b"-" } else { size })?,
        covers: SIZES[index].1,
        taken,
    })
}

/// The request of a line; `None` where it is not recorded.
pub(super) fn request(line: &[u8]) -> Option<LoggedRequest<'_>> {
    let (mut best, mut method) = (None, None);
    let mut scan = Scan { rest: line };
    scan.object(&[], 0, &mut |object, name, value| {
        better(&mut best, TARGETS.iter().position(|wanted| is_called(wanted, object, name)), value);
        better(&mut method, METHODS.iter().position(|wanted| is_called(wanted, object, name)), value);
    })?;
    let (_, text) = best?;
    let request = LoggedRequest::of_line(text).or_else(|| LoggedRequest::of_path(text))?;
    Some(request.with_method(method.map(|(_, method)| method)))
}

/// Whether a member of an object, which is itself a member of another, has this name.
fn is_called(wanted: &[u8], object: &[u8], name: &[u8]) -> bool {
    match object {
        [] => wanted == name,
        _ => wanted
            .strip_prefix(object)
            .and_then(|rest| rest.strip_prefix(b"."))
            .is_some_and(|wanted| wanted == name),
    }
}

/// Best members found so far: the rank of each name (0 is best), and the text.
#[derive(Default)]
struct BestMembers<'a> {
    client: Option<(usize, &'a [u8])>,
    time: Option<(usize, &'a [u8])>,
    status: Option<(usize, &'a [u8])>,
    size: Option<(usize, &'a [u8])>,
    taken: Option<Duration>,
}

impl<'a> BestMembers<'a> {
    fn member(&mut self, object: &[u8], name: &[u8], value: &'a [u8], definition: &ClientDefinition) {
        let called = |wanted: &[u8]| is_called(wanted, object, name);
        match &definition.field {
            Some(field) if called(field.as_bytes()) => self.client = Some((0, value)),
            Some(_) => {}
            None => better(&mut self.client, CLIENTS.iter().position(|wanted| called(wanted)), value),
        }
        better(&mut self.time, TIMES.iter().position(|wanted| called(wanted)), value);
        better(&mut self.status, STATUSES.iter().position(|wanted| called(wanted)), value);
        better(&mut self.size, SIZES.iter().position(|(wanted, _)| called(wanted)), value);
        if called(b"request_time") || called(b"duration") {
            self.taken = number::seconds(value);
        } else if called(b"Duration") {
            self.taken = number::whole(value).map(Duration::from_nanos);
        }
    }
}

fn better<'a>(retained: &mut Option<(usize, &'a [u8])>, index: Option<usize>, value: &'a [u8]) {
    if let Some(index) = index
        && retained.is_none_or(|(before, _)| index < before)
    {
        *retained = Some((index, value));
    }
}

/// Unparsed rest of a line.
struct Scan<'a> {
    rest: &'a [u8],
}

/// Maximum depth of nested objects that are searched.
const MAX_DEPTH: usize = 1;

impl<'a> Scan<'a> {
    /// Calls `members` for every member of an object with a text or a number: the object's name, the member's,
    /// and the value. `None` if it is not an object.
    fn object(
        &mut self,
        name: &'a [u8],
        depth: usize,
        members: &mut impl FnMut(&'a [u8], &'a [u8], &'a [u8]),
    ) -> Option<()> {
        self.take(b'{')?;
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let member = self.string()?;
            self.take(b':')?;
            match self.peek()? {
                b'"' => members(name, member, self.string()?),
                b'{' if depth < MAX_DEPTH => erased(self, member, depth + 1, members)?,
                b'{' | b'[' => self.skip()?,
                _ => members(name, member, self.word()),
            }
            match self.peek()? {
                b',' => self.take(b',')?,
                _ => return self.take(b'}'),
            }
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.rest = &self.rest[1..];
        Some(())
    }

    /// Text between the quotes, escapes as they are.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let text = self.rest;
        let mut from = 0;
        loop {
            let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
            if text[at] == b'"' {
                self.rest = &text[at + 1..];
                return Some(&text[..at]);
            }
            // An escaped character is never a closing quote.
            from = (at + 2).min(text.len());
        }
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> &'a [u8] {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t');
        let end = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Skips an array or an object of any depth.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.rest = &self.rest[1..];
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// An object within an object, through a pointer: otherwise the compiler would instantiate closures of
/// closures without end.
fn erased<'a>(
    scan: &mut Scan<'a>,
    name: &'a [u8],
    depth: usize,
    members: &mut dyn FnMut(&'a [u8], &'a [u8], &'a [u8]),
) -> Option<()> {
    let mut members = members;
    scan.object(name, depth, &mut members)
}

#[cfg(test)]
mod tests {
    use wire::Time;

    use super::*;
    use crate::Client;
    use crate::SizeScope;

    fn read(line: &str) -> Result<Record, Reason> {
        super::read(line.as_bytes(), &mut Clock::default(), &ClientDefinition::default())
    }

    #[test]
    fn caddy_traefik_and_nginx_are_read_by_their_names() {
        let caddy = r#"{"level":"info","ts":1646861401.5241024,"request":{"remote_ip":"127.0.0.1","remote_port":"41342","headers":{"User-Agent":["curl/7.82.0"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}"#;
        let traefik = r#"{"ClientAddr":"127.0.0.1:5000","ClientHost":"127.0.0.1","DownstreamContentSize":10900,"DownstreamStatus":200,"Duration":929675,"StartUTC":"2022-03-09T21:30:01.5241024Z","time":"2022-03-09T22:30:02+01:00"}"#;
        let nginx = r#"{"remote_addr": "127.0.0.1", "msec": "1646861401.5241024", "request": "GET /\"x\" HTTP/1.1", "status": "200", "body_bytes_sent": "10900", "request_time": "0.000929675"}"#;
        let expected = Record {
            time: Time::from_nanos(1_646_861_401_524_102_400),
            client: Client::of(b"127.0.0.1"),
            status: 200,
            size: Some(wire::Bytes::new(10_900)),
            covers: SizeScope::Body,
            taken: Some(Duration::from_nanos(929_675)),
        };
        assert_eq!([caddy, traefik, nginx].map(read), [Ok(expected); 3]);
    }

    #[test]
    fn target_is_a_path_or_a_request_line() {
        for line in [
            r#"{"ts":1,"request":{"remote_ip":"::1","uri":"/a","method":"GET"},"path":"/b"}"#,
            r#"{"RequestMethod":"GET","RequestPath":"/a"}"#,
            r#"{"request":"GET /a HTTP/1.1"}"#,
            r#"{"request_uri":"/a"}"#,
        ] {
            let request = request(line.as_bytes()).unwrap();
            assert_eq!(request.path, b"/a", "{line}");
            assert_eq!(request.method, line.contains("GET").then_some(&b"GET"[..]), "{line}");
        }
        assert_eq!(request(br#"{"status":200}"#), None);
    }

    #[test]
    fn parses_times_in_every_format() {
        let seconds = |value: &str| {
            read(&format!(r#"{{"time":{value},"client_ip":"a"}}"#))
                .map(|record| record.time.as_nanos() / 1_000_000)
        };
        for value in [
            "1646861401.5",
            "1646861401500",
            "1646861401500000",
            "1646861401500000000",
            r#""2022-03-09T21:30:01.5Z""#,
            r#""2022-03-09T22:30:01.50+01:00""#,
        ] {
            assert_eq!(seconds(value), Ok(1_646_861_401_500), "{value}");
        }
        assert_eq!(seconds(r#""09/Mar/2022:21:30:01 +0000""#), Ok(1_646_861_401_000));
        assert_eq!(seconds(r#""2022-03-09T21:30:01+00:00""#), Ok(1_646_861_401_000));
    }

    #[test]
    fn rejects_truncated_lines_and_values_that_are_not_objects() {
        for line in
            ["", "{", "[]", "{\"a\"", "{\"a\":", "{\"a\":\"\\", "{\"a\":{\"b\":[1,2", "{\"a\":1,}", "{a:1}"]
        {
            assert_eq!(read(line), Err(Reason::Shape), "{line}");
        }
        assert_eq!(read("{}"), Err(Reason::Client));
        assert_eq!(read(r#"{"client_ip":"a"}"#), Err(Reason::Time));
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let line = format!("{{\"a\":{}", "[".repeat(1 << 20));
        assert_eq!(read(&line), Err(Reason::Shape));
    }
}
