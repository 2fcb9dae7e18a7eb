//! Invariants for any bytes of one direction of HTTP/2: frames are the same at every cut, payloads are bounded, and windows
//! never allow more than both of them do. Neither end of a connection panics or writes without end.

use http2::field::{message_kind, status};
use http2::frame::{Frame, FrameHeader, FrameReader, FrameType, Part};
use http2::hpack::Decoder;
use http2::settings::{Setting, error_code};
use http2::window::SendWindows;
use http2::{Endpoint, Event, PREFACE, Priority, Profile};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    endpoints(bytes);
    let _ = Decoder::default().decode(bytes);
    let whole = frames(&[bytes]);
    for cut in [1, 8, 9, 10, bytes.len() / 2] {
        let (head, rest) = bytes.split_at(cut.min(bytes.len()));
        assert_eq!(frames(&[head, rest]), whole, "cut at {cut}");
        let mut reader = FrameReader::default();
        reader.read(head, &mut |_| {});
        reader.skip(bytes.first().copied().unwrap_or_default().into(), &mut |_| {});
        reader.read(rest, &mut |_| {});
    }
    let mut windows = SendWindows::default();
    for (header, payload) in &whole {
        assert!(payload.len() <= 256 && payload.len() <= header.length as usize);
        let _ = (message_kind(*header, payload), status(*header, payload), error_code(header.kind, payload));
        match header.kind {
            FrameType::Data => windows.sent(header.stream, header.length),
            FrameType::WindowUpdate => {
                let increment = payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                windows.updated(header.stream, increment);
            }
            FrameType::Settings => {
                Setting::read(payload).for_each(|setting| windows.set_initial(setting.value));
            }
            _ => {}
        }
        let available = windows.available(header.stream);
        assert_eq!(windows.limit(header.stream).is_some(), available == 0);
    }
}

/// Passes them to either end of a connection, which responds to every request.
fn endpoints(bytes: &[u8]) {
    let mut client = Endpoint::client(Profile::CHROMIUM);
    let fields = [(&b":method"[..], &b"GET"[..]), (b":path", b"/")];
    client.request(fields, Priority::default(), [0; 9].into());
    let mut server = Endpoint::server(Profile::NGINX);
    server.receive(PREFACE, &mut |_| {}).expect("it is the preface");
    for end in [&mut client, &mut server] {
        let mut requests = Vec::new();
        let _ = end.receive(bytes, &mut |event| {
            if let Event::Fields { stream, .. } = event {
                requests.push(stream);
            }
        });
        for stream in requests {
            end.respond(stream, [(&b":status"[..], &b"200"[..])], Priority::default(), [0; 99].into());
        }
        while end.next_write().is_some() {}
    }
}

fn frames(chunks: &[&[u8]]) -> Vec<(FrameHeader, Vec<u8>)> {
    let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
    for chunk in chunks {
        reader.read(chunk, &mut |part| {
            if let Part::Frame(Frame { header, payload }) = part {
                frames.push((header, payload.to_vec()));
            }
        });
    }
    frames
}
