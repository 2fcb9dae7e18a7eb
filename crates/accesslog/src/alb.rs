//! Access logs of AWS Application Load Balancers: a dozen fields separated by spaces, then the request in
//! quotes.
//!
//! `type time elb client:port target:port request_time target_time response_time elb_status target_status received sent`
//! (<https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html>). The time is
//! when the response was sent; `sent` includes the response's headers. Not for the older Classic Load
//! Balancers.

use wire::Duration;

use crate::client::ClientDefinition;
use crate::tally::Reason;
use crate::target::LoggedRequest;
use crate::{Record, SizeScope, client, clock, number};

/// Kinds of request and connection with which a line may begin.
const KINDS: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Parses one line, without its line ending.
///
/// # Errors
/// The reason why the line gives no record.
pub fn read(line: &[u8], definition: &ClientDefinition) -> Result<Record, Reason> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut next = || fields.next().ok_or(Reason::Shape);
    let (kind, time, _balancer, client, _target) = (next()?, next()?, next()?, next()?, next()?);
    let spans = [next()?, next()?, next()?];
    let (status, _target_status, _received, sent) = (next()?, next()?, next()?, next()?);
    if !KINDS.contains(&kind) {
        return Err(Reason::Shape);
    }
    let time = clock::iso_8601(time).ok_or(Reason::Time)?;
    let client = client::without_port(client);
    if matches!(client, b"-" | b"") {
        return Err(Reason::Client);
    }
    // A time of -1 was never measured: the request was not dispatched.
    let taken = spans.into_iter().map(number::seconds).sum::<Option<Duration>>();
    let (status, size) = (number::status(status)?, number::size(sent)?);
    Ok(Record { time, client: definition.client(client), status, size, covers: SizeScope::Whole, taken })
}

/// The request of a line; `None` where it is not recorded.
pub(super) fn request(line: &[u8]) -> Option<LoggedRequest<'_>> {
    LoggedRequest::quoted(line, b" \"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    const LINE: &str = "h2 2018-07-02T22:23:00.186641Z app/my-lb/50dc6c495c0c9188 10.0.1.252:48160 10.0.0.66:9000 \
                        0.000 0.002 0.001 200 200 5 257 \"GET https://10.0.2.105:773/ HTTP/2.0\" \"curl/7.46.0\"";

    #[test]
    fn a_line_of_the_documentation_is_read() {
        let record = read(LINE.as_bytes(), &ClientDefinition::default()).unwrap();
        assert_eq!((record.client, record.status), (Client::of(b"10.0.1.252"), 200));
        assert_eq!((record.size.unwrap().get(), record.taken), (257, Some(Duration::from_millis(3))));
        let request = request(LINE.as_bytes()).unwrap();
        assert_eq!((request.method, request.path), (Some(&b"GET"[..]), &b"https://10.0.2.105:773/"[..]));
    }

    #[test]
    fn request_that_was_not_dispatched_has_no_duration() {
        let line = LINE.replace("0.000 0.002 0.001", "-1 -1 -1");
        assert_eq!(read(line.as_bytes(), &ClientDefinition::default()).unwrap().taken, None);
    }
}
