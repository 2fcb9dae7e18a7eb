//! Protocols of directories, files, remote calls, message brokers and industrial control, whose messages name what they respond to.

use super::Responds;

pub(super) const RESPONDS: [Responds; 13] = [
    ldap,
    kerberos,
    smb1,
    smb2,
    dce_rpc,
    onc_rpc,
    dnp3,
    modbus,
    fast_cgi,
    mqtt,
    amqp,
    socks5,
    remote_desktop,
];

/// Returns whether a request waits for an event by design, or acknowledges one.
pub(super) fn awaits_event(request: &[u8]) -> bool {
    match request {
        // AMQP 0-9-1: a consumer's `basic.ack`, `basic.reject` or `basic.nack` has no reply, and a heartbeat has none.
        [1, _, _, _, _, _, _, 0, 60, 0, 80 | 90 | 120, ..] | [8, 0, 0, 0, 0, 0, 0, 0xce] => true,
        // MQTT (version 3.1.1, sections 3.4 and 3.7): a subscriber's PUBACK and PUBCOMP end an exchange.
        [0x40 | 0x70, 2, _, _] => true,
        // RFB (RFC 6143, section 7.5.3): an incremental update is sent when the screen has changed.
        [3, 1, rest @ ..] if rest.len() == 8 => true,
        [0, _, _, _, 0xff, b'S', b'M', b'B', SMB1_LOCKING | SMB1_NOTIFYING, ..] => true,
        _ => matches!(smb2_command(request), Some((SMB2_LOCK | SMB2_CHANGE_NOTIFY, false))),
    }
}

const SMB1_LOCKING: u8 = 0x24;
const SMB1_NOTIFYING: u8 = 0xa0;
const SMB2_LOCK: u16 = 0x0a;
const SMB2_CHANGE_NOTIFY: u16 = 0x0f;

/// LDAP (RFC 4511, section 4.1.1): the same message ID, and an operation that only a server sends.
fn ldap(request: &[u8], response: &[u8]) -> bool {
    const REQUESTS: [u8; 8] = [0x60, 0x63, 0x66, 0x68, 0x4a, 0x6c, 0x6e, 0x77];
    const RESPONSES: [u8; 9] = [0x61, 0x64, 0x65, 0x67, 0x69, 0x6b, 0x6d, 0x6f, 0x78];
    let (Some((asked, operation)), Some((id, result))) = (ldap_message(request), ldap_message(response))
    else {
        return false;
    };
    asked == id && REQUESTS.contains(&operation) && RESPONSES.contains(&result)
}

/// Returns the message ID and the operation of a message of LDAP.
fn ldap_message(message: &[u8]) -> Option<(&[u8], u8)> {
    let content = match message {
        [0x30, 0..=0x7f, content @ ..]
        | [0x30, 0x81, _, content @ ..]
        | [0x30, 0x82, _, _, content @ ..]
        | [0x30, 0x83, _, _, _, content @ ..]
        | [0x30, 0x84, _, _, _, _, content @ ..] => content,
        _ => return None,
    };
    let [2, length @ 1..=4, rest @ ..] = content else { return None };
    let (id, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((id, *rest.first()?))
}

/// Kerberos over TCP (RFC 4120, section 7.2.2): a request for a ticket, and the ticket or an error.
fn kerberos(request: &[u8], response: &[u8]) -> bool {
    let ([0, 0, _, _, asked, ..], [0, 0, _, _, result, ..]) = (request, response) else { return false };
    matches!((asked, result), (0x6a, 0x6b) | (0x6c, 0x6d) | (0x6a | 0x6c, 0x7e))
}

/// SMB 1 (MS-CIFS, section 2.2.3.1): the same command, with the flag of a reply. A notification of changes, and a lock, wait by design.
fn smb1(request: &[u8], response: &[u8]) -> bool {
    const REPLY: u8 = 0x80;
    const NEGOTIATE: u8 = 0x72;
    let [0, _, _, _, 0xff, b'S', b'M', b'B', command, _, _, _, _, flags, ..] = request else { return false };
    let is_request = flags & REPLY == 0 && ![SMB1_LOCKING, SMB1_NOTIFYING].contains(command);
    match response {
        [0, _, _, _, 0xff, b'S', b'M', b'B', of, _, _, _, _, flags, ..] => {
            is_request && of == command && flags & REPLY != 0
        }
        // The server may choose SMB 2 at once (MS-SMB2, section 3.3.5.3).
        _ => *command == NEGOTIATE && smb2_command(response) == Some((0, true)),
    }
}

/// SMB 2 and 3 (MS-SMB2, section 2.2.1): the same command, with the flag of a response. A notification of changes, and a lock, wait by
/// design.
fn smb2(request: &[u8], response: &[u8]) -> bool {
    let Some((command, false)) = smb2_command(request) else { return false };
    ![SMB2_LOCK, SMB2_CHANGE_NOTIFY].contains(&command) && smb2_command(response) == Some((command, true))
}

/// Returns the command of a message of SMB 2, and whether it is a response.
fn smb2_command(message: &[u8]) -> Option<(u16, bool)> {
    let [0, _, _, _, 0xfe, b'S', b'M', b'B', ..] = message else { return None };
    let (command, flags) = (message.get(16..18)?, message.get(20)?);
    Some((u16::from_le_bytes([command[0], command[1]]), flags & 1 != 0))
}

/// Returns the code of a command of SMB, of whatever version.
pub(super) fn smb_command(message: &[u8]) -> Option<u64> {
    match message {
        [0, _, _, _, 0xff, b'S', b'M', b'B', command, ..] => Some(u64::from(*command)),
        _ => smb2_command(message).map(|(command, _)| 0x100 + u64::from(command)),
    }
}

/// DCE/RPC (C706, section 12.6): the same call, and a response, a fault, or what answers a bind.
fn dce_rpc(request: &[u8], response: &[u8]) -> bool {
    let ([5, _, asked, ..], [5, _, result, ..]) = (request, response) else { return false };
    let is_same = request.get(12..16).is_some_and(|call| response.get(12..16) == Some(call));
    is_same && matches!((asked, result), (0, 2 | 3) | (11, 12 | 13) | (14, 15 | 13))
}

/// ONC RPC, as NFS (RFC 5531, sections 9 and 11): the same transaction, a call and a reply.
fn onc_rpc(request: &[u8], response: &[u8]) -> bool {
    const CALL: [u8; 4] = [0; 4];
    const REPLY: [u8; 4] = [0, 0, 0, 1];
    let kinds = (request.get(8..12), response.get(8..12));
    kinds == (Some(&CALL), Some(&REPLY))
        && request[4..8] == response[4..8]
        && request[0] & response[0] & 0x80 != 0
}

/// DNP3 (IEEE 1815): a response with the request's sequence number, from the station to which that went; not an unsolicited one.
fn dnp3(request: &[u8], response: &[u8]) -> bool {
    const RESPONSE: u8 = 0x81;
    const SEQUENCE: u8 = 0x0f;
    let ([5, 0x64, ..], [5, 0x64, ..]) = (request, response) else { return false };
    let (Some(asked), Some(result)) = (request.get(..13), response.get(..13)) else { return false };
    let is_back = asked[4..6] == result[6..8] && asked[6..8] == result[4..6];
    is_back
        && (1..0x80).contains(&asked[12])
        && result[12] == RESPONSE
        && (asked[11] ^ result[11]) & SEQUENCE == 0
}

/// Modbus over TCP: the same transaction, unit and function, or that function's exception.
fn modbus(request: &[u8], response: &[u8]) -> bool {
    let (Some(asked), Some(result)) = (request.first_chunk::<8>(), response.first_chunk::<8>()) else {
        return false;
    };
    let is_header = |header: &[u8; 8]| header[2..5] == [0; 3] && header[5] >= 2;
    let is_same = asked[..2] == result[..2] && asked[6] == result[6] && asked[7] == result[7] & 0x7f;
    is_header(asked) && is_header(result) && is_same
}

/// FastCGI (section 3.3): records of the request that `FCGI_BEGIN_REQUEST` began.
fn fast_cgi(request: &[u8], response: &[u8]) -> bool {
    let ([1, 1, a, b, 0, 8, ..], [1, kind, c, d, ..]) = (request, response) else { return false };
    (a, b) == (c, d) && matches!(kind, 3 | 6 | 7)
}

/// MQTT (version 3.1.1, section 2.2): a control packet that only follows another; subscriptions have the same packet identifier.
fn mqtt(request: &[u8], response: &[u8]) -> bool {
    match (request, response) {
        ([0x10, _, 0, 4 | 6, b'M', b'Q', ..] | [0x10, _, _, 0, 4 | 6, b'M', b'Q', ..], [0x20, ..]) => true,
        ([0xc0, 0], [0xd0, 0]) => true,
        ([0x82, 0..=0x7f, a, b, ..], [0x90, 0..=0x7f, c, d, ..])
        | ([0xa2, 0..=0x7f, a, b, ..], [0xb0, 0..=0x7f, c, d, ..])
        | ([0x62, 2, a, b, ..], [0x70, _, c, d, ..]) => (a, b) == (c, d),
        _ => false,
    }
}

/// AMQP 0-9-1: the beginning of a connection, and methods whose reply has the next number (`declare`, `declare-ok`).
fn amqp(request: &[u8], response: &[u8]) -> bool {
    const METHOD: u8 = 1;
    let [METHOD, a, b, _, _, _, _, class_high, class, 0, method, ..] = response else { return false };
    match request {
        [b'A', b'M', b'Q', b'P', ..] => (*class, *method) == (10, 10),
        [METHOD, c, d, _, _, _, _, high, low, 0, asked, ..] => {
            (a, b, class_high, class) == (c, d, high, low)
                && *method == asked.saturating_add(1)
                && method % 10 == 1
        }
        _ => false,
    }
}

/// SOCKS 5 (RFC 1928, sections 3 to 6): the choice of a method, and the reply to a request.
fn socks5(request: &[u8], response: &[u8]) -> bool {
    match (request, response) {
        ([5, 1..=3, 0, 1 | 3 | 4, _, ..], [5, 0..=8, 0, 1 | 3 | 4, ..]) => true,
        ([5, count, methods @ ..], [5, chosen]) => {
            methods.len() == usize::from(*count) && (methods.contains(chosen) || *chosen == 0xff)
        }
        _ => false,
    }
}

/// The opening of a remote desktop (RFC 2126, X.224): a request for a connection, and its confirmation.
fn remote_desktop(request: &[u8], response: &[u8]) -> bool {
    matches!((request, response), ([3, 0, _, _, _, 0xe0, ..], [3, 0, _, _, _, 0xd0, ..]))
}

#[cfg(test)]
mod tests {
    use super::super::is_pair;

    /// Whether each of two messages of a server responds to a request.
    fn responds(request: &[u8], responses: [&[u8]; 2]) -> [bool; 2] {
        responses.map(|response| is_pair(request, response))
    }

    #[test]
    fn message_with_the_id_of_the_request_is_its_response() {
        let search = b"\x30\x25\x02\x01\x07\x63\x20";
        assert_eq!(
            responds(search, [b"\x30\x84\0\0\0\x10\x02\x01\x07\x64", b"\x30\x0c\x02\x01\x00\x78"]),
            [true, false]
        );
        let call = |kind: u8, id: u8| [5, 0, kind, 3, 16, 0, 0, 0, 24, 0, 0, 0, id, 0, 0, 0];
        assert_eq!(responds(&call(0, 2), [&call(2, 2), &call(2, 1)]), [true, false]);
        let nfs = |id: u8, kind: u8| [0x80, 0, 0, 40, 0, 0, 0, id, 0, 0, 0, kind];
        assert_eq!(responds(&nfs(9, 0), [&nfs(9, 1), &nfs(8, 1)]), [true, false]);
        let modbus = |id: u8, function: u8| [0, id, 0, 0, 0, 6, 1, function, 0, 1];
        assert_eq!(responds(&modbus(1, 3), [&modbus(1, 0x83), &modbus(2, 3)]), [true, false]);
        let record = |kind: u8, id: u8| [1, kind, 0, id, 0, 8, 0, 0];
        assert_eq!(responds(&record(1, 1), [&record(6, 1), &record(6, 2)]), [true, false]);
        let subscription = |kind: u8, id: u8| [kind, 9, 0, id, 0, 4];
        assert_eq!(
            responds(&subscription(0x82, 1), [&subscription(0x90, 1), &subscription(0x30, 1)]),
            [true, false]
        );
    }

    #[test]
    fn unsolicited_response_of_a_station_is_no_response() {
        let message = |to: u8, from: u8, sequence: u8, function: u8| {
            [5, 0x64, 20, 0xc4, to, 0, from, 0, 0xaa, 0xbb, 0xc0, 0xc0 | sequence, function]
        };
        let request = message(4, 3, 5, 1);
        assert_eq!(responds(&request, [&message(3, 4, 5, 0x81), &message(3, 4, 5, 0x82)]), [true, false]);
        assert_eq!(responds(&request, [&message(3, 4, 6, 0x81), &message(4, 3, 5, 0x81)]), [false, false]);
    }

    #[test]
    fn reply_of_a_file_server_has_the_command_of_its_request() {
        let smb2 = |command: u8, flags: u8| {
            let header = [0, 0, 0, 68, 0xfe, b'S', b'M', b'B', 64, 0, 0, 0, 0, 0, 0, 0, command, 0, 1, 0];
            [&header[..], &[flags, 0, 0, 0]].concat()
        };
        assert_eq!(responds(&smb2(5, 0), [&smb2(5, 1), &smb2(6, 1)]), [true, false]);
        assert_eq!(
            responds(&smb2(15, 0), [&smb2(15, 1), &smb2(15, 0)]),
            [false, false],
            "a notification waits"
        );
        let smb1 = |command: u8, flags: u8| [0, 0, 0, 35, 0xff, b'S', b'M', b'B', command, 0, 0, 0, 0, flags];
        assert_eq!(responds(&smb1(0x72, 0x18), [&smb1(0x72, 0x98), &smb2(0, 1)]), [true, true]);
        assert_eq!(responds(&smb1(0xa0, 0x18), [&smb1(0xa0, 0x98), &smb1(0xa0, 0x18)]), [false, false]);
    }

    #[test]
    fn message_that_only_follows_a_request_is_its_response() {
        let method = |class: u8, number: u8| [1, 0, 1, 0, 0, 0, 4, 0, class, 0, number];
        assert_eq!(responds(&method(50, 10), [&method(50, 11), &method(60, 60)]), [true, false]);
        assert_eq!(responds(b"AMQP\0\0\x09\x01", [&method(10, 10), &method(60, 60)]), [true, false]);
        assert_eq!(responds(b"\x10\x10\0\x04MQTT\x04", [b"\x20\x02\0\0", b"\x30\x02\0\0"]), [true, false]);
        assert_eq!(responds(b"\x05\x01\x00", [b"\x05\x00", b"\x05\x02"]), [true, false]);
        assert_eq!(
            responds(b"\x05\x01\0\x01\x7f\0\0\x01\0\x50", [b"\x05\0\0\x01", b"\x04\0\0\x01"]),
            [true, false]
        );
        assert_eq!(
            responds(b"\0\0\0\x90\x6a\x81", [b"\0\0\0\x90\x7e\x81", b"\0\0\0\x90\x6d\x81"]),
            [true, false]
        );
        assert_eq!(
            responds(b"\x03\0\0\x13\x0e\xe0", [b"\x03\0\0\x13\x0e\xd0", b"\x03\0\0\x13\x02\xf0"]),
            [true, false]
        );
    }
}
