//! Bottleneck of a whole run: generator, its connections, network or server, with the evidence and the next command.
//!
//! Rules in order; the first that applies decides. A generator that was late is never named when the server's CPUs were
//! full: on one host the server then takes the generator's. What the evidence does not decide is `unknown`.

mod figures;
mod rules;

use serde::Serialize;

use crate::record::Record;
use figures::Figures;

/// Bottleneck of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Every response came in time.
    Nothing,
    /// A closed loop that its server follows: more users have more responses.
    Users,
    /// Each response takes as long as a delayed acknowledgement, between its header section and its body.
    DelayedAck,
    /// Each response takes a round trip of the path, whatever the load.
    RoundTrip,
    /// Each response takes the same time at the server, whatever the load.
    FixedWait,
    /// The server's CPUs.
    ServerCpu,
    /// The server, which waits for something other than its CPUs: a lock, a pool, a database, a disk, a rate limit.
    ServerWait,
    /// The server, on a host whose CPUs are not visible from here.
    Server,
    /// The server refuses requests above a rate (429, 503).
    RateLimit,
    /// The server has no more connections, or does not serve them.
    ServerConnections,
    /// The server's accept queue overflows.
    AcceptQueue,
    /// The path's rate, or its loss.
    Network,
    /// All connections of the generator are in use, though the server responds as fast as without load.
    Connections,
    /// No free port or socket at the generator.
    GeneratorSockets,
    /// The generator's CPU, or a host that left it none.
    Generator,
    /// The evidence does not decide.
    Unknown,
}

impl Kind {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Users => "users",
            Self::DelayedAck => "delayed-ack",
            Self::RoundTrip => "round-trip",
            Self::FixedWait => "fixed-wait",
            Self::ServerCpu => "server-cpu",
            Self::ServerWait => "server-wait",
            Self::Server => "server",
            Self::RateLimit => "rate-limit",
            Self::ServerConnections => "server-connections",
            Self::AcceptQueue => "accept-queue",
            Self::Network => "network",
            Self::Connections => "connections",
            Self::GeneratorSockets => "generator-sockets",
            Self::Generator => "generator",
            Self::Unknown => "unknown",
        }
    }
}

/// Bottleneck of a run, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attribution {
    /// The bottleneck.
    #[serde(rename = "name", serialize_with = "name_of")]
    pub kind: Kind,
    /// The same in a sentence, without a full stop.
    pub sentence: String,
    /// Figures that decided, a sentence each.
    pub evidence: Vec<String>,
    /// A command that shows more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

// The signature is serde's.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn name_of<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// Whether requests of an open schedule queued, or remained without a response.
pub(crate) fn has_backlog(record: &Record) -> bool {
    Figures::of(record, "").has_backlog()
}

/// Attributes a run; `url` is a request of it, for the next command.
pub fn attribute(record: &Record, url: &str) -> Attribution {
    let figures = Figures::of(record, url);
    let decided = rules::ALL.iter().find_map(|rule| rule(&figures));
    decided.unwrap_or_else(|| rules::otherwise(&figures))
}
