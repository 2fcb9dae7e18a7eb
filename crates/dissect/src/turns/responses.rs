//! Responses that belong to a request by the first bytes of both: an id that both have, or a kind of message that only follows a
//! request.
//!
//! Requests that wait for an event by design are none of these.

mod services;

/// Whether a response belongs to a request, by the first bytes of both.
type Responds = fn(&[u8], &[u8]) -> bool;

const RESPONDS: [Responds; 10] =
    [dns, mysql, postgresql, startup, redis, mongodb, kafka, cassandra, command_line, imap];

/// Returns whether `response` responds to `request`, by the first bytes of both.
pub(super) fn is_pair(request: &[u8], response: &[u8]) -> bool {
    RESPONDS.iter().chain(&services::RESPONDS).any(|responds| responds(request, response))
}

/// Returns whether `request` waits for an event by design, or acknowledges one, so that no response is due.
pub(super) fn awaits_event(request: &[u8]) -> bool {
    redis_command(request).is_some_and(|command| may_block(&command))
        || request.starts_with(b"reserve")
        || is_held_by_kafka(request)
        || services::awaits_event(request)
}

/// Returns whether a server's first data is the greeting for which its clients wait.
pub(super) fn is_greeting(payload: &[u8]) -> bool {
    let is_ready = matches!(payload, [b'2', b'0' | b'2', b'0' | b'1', b' ' | b'-', ..]);
    is_ready || [&b"+OK"[..], b"* OK", b"* PREAUTH"].iter().any(|greeting| payload.starts_with(greeting))
}

/// Returns whether a payload is the status of a command; not of a server that closes (421).
pub(super) fn is_status(payload: &[u8]) -> bool {
    match payload {
        [b'4', b'2', b'1', ..] => false,
        [a, b, c, b' ' | b'-' | b'\r', ..] => [a, b, c].iter().all(|byte| byte.is_ascii_digit()),
        _ => payload.starts_with(b"+OK") || payload.starts_with(b"-ERR"),
    }
}

/// Returns the word of a command line, such as `PASS` (FTP, POP3, SMTP).
pub(super) fn command_word(request: &[u8]) -> Option<&[u8]> {
    const LENGTHS: core::ops::RangeInclusive<usize> = 3..=8;
    let word = request.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_command = LENGTHS.contains(&word) && matches!(request.get(word), Some(b' ' | b'\r' | b'\n'));
    request.get(..word).filter(|_| is_command)
}

/// Returns a hash of what a message commands.
pub(super) fn command(request: &[u8]) -> Option<u64> {
    let hash = |hash: u64, byte: &u8| hash.wrapping_mul(31).wrapping_add(byte.to_ascii_uppercase().into());
    command_word(request).map(|word| word.iter().fold(0, hash)).or_else(|| services::smb_command(request))
}

/// DNS over TCP (RFC 1035, section 4.2.2): the same ID, and the QR bit.
fn dns(request: &[u8], response: &[u8]) -> bool {
    let ([_, _, a, b, query, ..], [_, _, c, d, reply, ..]) = (request, response) else { return false };
    let is_one = |bytes: &[u8]| bytes.len() >= 14 && bytes[6..8] == [0, 1];
    is_one(request) && is_one(response) && (a, b) == (c, d) && query & 0x80 == 0 && reply & 0x80 != 0
}

/// MySQL: packets are numbered from the command on, which is number 0.
fn mysql(request: &[u8], response: &[u8]) -> bool {
    const LAST_COMMAND: u8 = 0x1f;
    let ([_, _, 0, 0, command, ..], [_, _, _, 1, _, ..]) = (request, response) else { return false };
    (1..=LAST_COMMAND).contains(command)
}

/// PostgreSQL: a query, an extended one, or copied data, and a message that only follows one. Notices and notifications also come
/// unsolicited.
fn postgresql(request: &[u8], response: &[u8]) -> bool {
    let ([asks, 0, 0, _, _, ..], [replies, 0, 0, _, _, ..]) = (request, response) else { return false };
    matches!(asks, b'Q' | b'P' | b'B' | b'E' | b'D' | b'F' | b'd' | b'c')
        && matches!(replies, b'T' | b'D' | b'C' | b'1' | b'2' | b't' | b'n' | b'I' | b'E' | b'V')
}

/// PostgreSQL's session (section 53.2.1): `SSLRequest` has a response of one byte; the startup message and each password one that
/// authenticates or refuses.
fn startup(request: &[u8], response: &[u8]) -> bool {
    match request {
        [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f | 0x30] => matches!(response, [b'S' | b'N' | b'G']),
        [0, 0, _, _, 0, 3, 0, _, ..] | [b'p', 0, 0, ..] => matches!(response, [b'R' | b'E' | b'v', 0, 0, ..]),
        _ => false,
    }
}

/// Redis: an array of strings, and a reply. Blocking commands wait by design; after a subscription, arrays are pushed.
fn redis(request: &[u8], response: &[u8]) -> bool {
    redis_command(request).is_some_and(|command| !may_block(&command))
        && matches!(response.first(), Some(b'+' | b'-' | b':' | b'$' | b'*' | b'_' | b'%' | b'~' | b','))
}

fn redis_command(request: &[u8]) -> Option<Vec<u8>> {
    let mut lines = request.split(|byte| *byte == b'\n');
    let ([b'*', ..], [b'$', ..]) = (lines.next()?, lines.next()?) else { return None };
    Some(lines.next().unwrap_or_default().to_ascii_uppercase())
}

fn may_block(command: &[u8]) -> bool {
    let blocks = [&b"B"[..], b"X", b"SUB", b"PSUB", b"SSUB", b"WAIT", b"MONITOR", b"PSYNC", b"SYNC"];
    command.is_empty() || blocks.iter().any(|block| command.starts_with(block))
}

/// MongoDB: `responseTo` is the request's `requestID`.
fn mongodb(request: &[u8], response: &[u8]) -> bool {
    const OP_REPLY: [u8; 4] = 1_u32.to_le_bytes();
    const OP_MSG: [u8; 4] = 2_013_u32.to_le_bytes();
    let (Some(id), Some(to), Some(code)) = (request.get(4..8), response.get(8..12), response.get(12..16))
    else {
        return false;
    };
    id == to && (code == OP_REPLY || code == OP_MSG)
}

/// Keys of Kafka's Fetch, JoinGroup and SyncGroup: the broker holds them until there is data, or the group is complete.
const HELD_BY_KAFKA: [u8; 3] = [1, 11, 14];

/// Kafka: the same correlation id.
fn kafka(request: &[u8], response: &[u8]) -> bool {
    const LAST_KEY: u8 = 92;
    let Some(&[_, _, _, _, 0, key, 0, _, a, b, c, d]) = request.first_chunk::<12>() else { return false };
    let Some(&[_, _, _, _, e, f, g, h]) = response.first_chunk::<8>() else { return false };
    key <= LAST_KEY && !HELD_BY_KAFKA.contains(&key) && [a, b, c, d] == [e, f, g, h]
}

/// A request header of Kafka: length, key, version, correlation id, and the client's name (or none, of length -1).
fn is_held_by_kafka(request: &[u8]) -> bool {
    const VERSIONS: u8 = 20;
    let Some(&[0, _, _, _, 0, key, 0, version, _, _, _, _, a, b]) = request.first_chunk::<14>() else {
        return false;
    };
    HELD_BY_KAFKA.contains(&key) && version <= VERSIONS && (a == 0 || (a, b) == (0xff, 0xff))
}

/// Cassandra's CQL: the same version and stream, and not an event.
fn cassandra(request: &[u8], response: &[u8]) -> bool {
    const EVENT: u8 = 0x0c;
    let ([version, _, a, b, _, ..], [reply, _, c, d, code, ..]) = (request, response) else { return false };
    (3..=5).contains(version) && *reply == version | 0x80 && (a, b) == (c, d) && *code != EVENT
}

/// SMTP, FTP, POP3, NNTP: a command line, and a status.
fn command_line(request: &[u8], response: &[u8]) -> bool {
    command_word(request).is_some() && is_status(response)
}

/// IMAP (RFC 9051, section 2.2): a tag and a command; the command is pending until a response has its tag, and data before that is
/// part of it. A tag stands before a status only (section 7.1). `IDLE` waits by design.
fn imap(request: &[u8], response: &[u8]) -> bool {
    let mut words = request.splitn(3, |byte| *byte == b' ');
    let (Some(tag), Some(command)) = (words.next(), words.next()) else { return false };
    let is_tag =
        tag.len() <= 8 && tag.iter().all(u8::is_ascii_alphanumeric) && tag.iter().any(u8::is_ascii_digit);
    let command = command.trim_ascii_end();
    let is_command = command.len() >= 4 && command.iter().all(u8::is_ascii_alphabetic);
    let is_status =
        |rest: &[u8]| [&b" OK"[..], b" NO", b" BAD"].iter().any(|status| rest.starts_with(status));
    let is_tagged = response.strip_prefix(tag).is_some_and(is_status);
    let is_pending = !command.eq_ignore_ascii_case(b"IDLE");
    is_tag
        && is_command
        && is_pending
        && (is_tagged || response.starts_with(b"* ") || response.starts_with(b"+ "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responds(request: &[u8], response: &[u8]) -> bool {
        let head = &request[..request.len().min(super::super::HEAD_BYTES)];
        is_pair(head, response)
    }

    #[test]
    fn response_that_names_its_request_is_recognized() {
        let dns = |id: u8, flags: u8| [0, 12, 7, id, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!((responds(&dns(1, 1), &dns(1, 0x81)), responds(&dns(1, 1), &dns(2, 0x81))), (true, false));
        let mysql = |number| [5, 0, 0, number, 3, b'S', b'E'];
        assert_eq!((responds(&mysql(0), &mysql(1)), responds(&mysql(0), &mysql(0))), (true, false));
        let mongodb = |id: u8, to: u8| {
            [&[48, 0, 0, 0, id, 0, 0, 0, to, 0, 0, 0][..], &2_013_u32.to_le_bytes()].concat()
        };
        assert_eq!(
            (responds(&mongodb(7, 0), &mongodb(1, 7)), responds(&mongodb(7, 0), &mongodb(1, 6))),
            (true, false)
        );
        let cql = |version: u8, code: u8| [version, 0, 0, 3, code, 0, 0, 0, 0];
        assert_eq!(
            (responds(&cql(4, 7), &cql(0x84, 8)), responds(&cql(4, 7), &cql(0x84, 12))),
            (true, false)
        );
    }

    #[test]
    fn request_that_blocks_by_design_proves_nothing() {
        let kafka = |key: u8| [0, 0, 0, 40, 0, key, 0, 11, 0, 0, 1, 9];
        let reply = [0, 0, 0, 90, 0, 0, 1, 9];
        assert_eq!((responds(&kafka(3), &reply), responds(&kafka(1), &reply)), (true, false));
        let redis =
            |command: &str| format!("*2\r\n${}\r\n{command}\r\n$1\r\nk\r\n", command.len()).into_bytes();
        assert_eq!(
            (responds(&redis("GET"), b"$1\r\nv\r\n"), responds(&redis("BLPOP"), b"*2\r\n")),
            (true, false)
        );
    }

    #[test]
    fn server_that_may_speak_unasked_needs_a_reply_that_only_follows_a_request() {
        let query = b"Q\0\0\0\x0dSELECT 1\0";
        assert!(responds(query, b"T\0\0\0\x21\0\x01"));
        assert!(!responds(query, b"A\0\0\0\x10\0\0"), "a notification");
        assert!(responds(b"MAIL FROM:<a@b>\r\n", b"250 ok\r\n"));
        assert!(!responds(b"\x90\x81hello", b"\x81\x81world"));
    }

    #[test]
    fn message_of_a_session_has_a_response() {
        let startup = b"\0\0\0\x10\0\x03\0\0user\0a\0\0";
        assert!(responds(b"\0\0\0\x08\x04\xd2\x16\x2f", b"N") && responds(startup, b"R\0\0\0\x08\0\0\0\x03"));
        assert!(!responds(startup, b"N\0\0\0\x40"), "a notice");
    }

    #[test]
    fn tagged_command_is_pending_until_its_tag_comes() {
        for response in [&b"a002 OK\r\n"[..], b"* LIST () \".\" INBOX\r\n", b"+ go on\r\n"] {
            assert!(responds(b"a002 LIST \"\" *\r\n", response));
        }
        assert!(
            !responds(b"a002 LIST \"\" *\r\n", b"a003 OK\r\n")
                && !responds(b"a003 IDLE\r\n", b"* 4 EXISTS\r\n")
        );
        assert!(!responds(b"a1 TALK hello\r\n", b"a1 TALK hi\r\n"), "both sides send the same command");
    }

    #[test]
    fn command_line_has_its_word() {
        assert_eq!(
            [&b"PASS x\r\n"[..], b"QUIT\r\n", b"\x16\x03\x01"].map(command_word),
            [Some(&b"PASS"[..]), Some(b"QUIT"), None]
        );
    }
}
