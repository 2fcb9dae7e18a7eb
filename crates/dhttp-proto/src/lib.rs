//! DHTTP: small responses in one datagram, large ones over TCP that the server opens (`papers/dhttp#section-iii`).
//!
//! Inputs are datagrams and the bytes of connections; outputs are datagrams, responses and decisions. Read in this
//! order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`message`] | wire format: requests, responses, the bare id of eight bytes |
//! | [`parts`] | a response in several datagrams |
//! | [`client`] | sends and resends requests, matches responses on any channel in any order, falls back to plain HTTP |
//! | [`server`] | validates requests, chooses a channel for each response, manages connections to clients |
//! | [`extension`] | extensions beyond the paper, each optional, by its name |
//! | [`token`] | proof, without state on the server, that a client can receive at its address |
//! | [`address`] | addresses and ports to which no response and no connection may go |
//! | [`prefix`] | a network by the first bits of its addresses |
//! | [`limiter`] | response rate limiting per prefix |
//! | [`shares`] | shares of a limited resource, by network |
//! | [`translator`] | DHTTP support of a router that translates addresses, or of a firewall |
//! | `secret` | the key of tables that are looked up by bytes from peers |
//!
//! ```
//! use http1::message::Limits;
//! use roundtrip_dhttp_proto::message::Request;
//!
//! let mut datagram = 1_u64.to_be_bytes().to_vec(); // the request's id
//! datagram.extend([0x9c, 0x41, 0]); // the client accepts TCP connections on port 40,001; not a resend
//! datagram.extend(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
//! let request = Request::read(&datagram, &Limits::default())?;
//! assert_eq!((request.header.id.0, request.header.port), (1, 40_001));
//! # Ok::<(), roundtrip_dhttp_proto::Malformed>(())
//! ```
//!
//! It opens no socket, stores no body and speaks no plain HTTP; its outputs tell the driver where those are needed.
//! `docs/dhttp.md` specifies the protocol; its tables are checked against this code.

pub mod address;
pub mod client;
pub mod extension;
pub mod limiter;
pub mod message;
pub mod parts;
pub mod prefix;
mod secret;
pub mod server;
pub mod shares;
pub mod token;
pub mod translator;

pub use client::{Client, ClientConfig};
pub use extension::Extension;
pub use message::{Id, Malformed};
pub use prefix::Prefix;
pub use server::{Server, ServerConfig};
pub use token::{Key, Tokens};
pub use translator::{Translator, TranslatorConfig};

/// State transition table as in `docs/dhttp.md`: a row per state, a column per event, and the next state in each cell.
#[cfg(test)]
pub(crate) fn specified_table<State: std::fmt::Debug, Event: std::fmt::Debug + Copy>(
    states: &[State],
    events: &[Event],
    next: impl Fn(&State, Event) -> Option<State>,
) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let heads = events.iter().map(|event| format!("{event:?}"));
    let mut table = row(std::iter::once("state".to_owned()).chain(heads).collect());
    table += &row(vec!["---".to_owned(); events.len() + 1]);
    for state in states {
        let cells =
            events.iter().map(|event| next(state, *event).map_or("-".to_owned(), |next| format!("{next:?}")));
        table += &row(std::iter::once(format!("**{state:?}**")).chain(cells).collect());
    }
    table
}

/// The same table as the Mermaid diagram in `docs/dhttp.md`: an arrow between two states, labelled with the events that
/// lead from one to the other. Events that change nothing are omitted.
#[cfg(test)]
pub(crate) fn specified_figure<State: std::fmt::Debug, Event: std::fmt::Debug + Copy>(
    begins: &State,
    states: &[State],
    events: &[Event],
    next: impl Fn(&State, Event) -> Option<State>,
) -> String {
    let mut figure = format!("```mermaid\nstateDiagram-v2\n    [*] --> {begins:?}\n");
    for from in states {
        for to in states {
            let leads = |event: &&Event| next(from, **event).is_some_and(|next| name(&next) == name(to));
            let labels: Vec<String> = events.iter().filter(leads).map(|event| format!("{event:?}")).collect();
            if name(from) != name(to) && !labels.is_empty() {
                figure += &format!("    {from:?} --> {to:?}: {}\n", labels.join(", "));
            }
        }
        if events.iter().all(|event| next(from, *event).is_none()) {
            figure += &format!("    {from:?} --> [*]\n");
        }
    }
    figure + "```\n"
}

#[cfg(test)]
fn name(state: &impl std::fmt::Debug) -> String {
    format!("{state:?}")
}
