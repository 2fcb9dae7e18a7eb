//! Plans, their runs, and certificates of test servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration as Elapsed;

use http::header::IF_MODIFIED_SINCE;
use load::job::{Requests, Turns, loop_pages};
use load::record::FailureReason;
use load::requests::{Request, Statuses};
use load::tls::{Security, Trust};
use load::{Config, Job, Protocol, Record, Shard, Target};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use wire::{Bytes, Duration, Probability};
use workload::plan::{Plan, PlanSpec};
use workload::schedule::{Arrivals, Leg, Schedule};

/// A plan of requests at this rate for a second, at even intervals.
pub(crate) fn plan(rate: f64) -> Plan {
    plan_for(rate, Duration::from_secs(1))
}

/// A plan of requests at this rate for this duration, at even intervals.
pub(crate) fn plan_for(rate: f64, duration: Duration) -> Plan {
    let leg = Leg { duration, from: rate, to: rate };
    let schedule = Schedule::Rates(vec![leg], Arrivals::Constant);
    let conditional = Probability::new(0.2).unwrap();
    let cap = Bytes::new(20_000);
    PlanSpec { schedule, duration, files: 20, cap, conditional, ..PlanSpec::default() }.plan().unwrap()
}

/// Two users with a connection each.
pub(crate) fn config(protocol: Protocol) -> Config {
    Config {
        protocol,
        dhttp: dhttp_proto::ClientConfig::internet(),
        connections: 1,
        ports: 1,
        shard: Shard::WHOLE,
        closes_early: false,
        fast_open: false,
        has_early: false,
        idle_timeout: None,
        threads: 1,
        users: 2,
        timeout: Duration::from_secs(5),
        at: None,
    }
}

pub(crate) fn target(address: SocketAddr, trust: Option<Trust>) -> Target {
    let security = trust.map(|trust| Security { name: "localhost".to_owned(), trust });
    Target { address, host: "localhost".to_owned(), directory: "/".to_owned(), security }
}

pub(crate) fn run(plan: &Plan, target: &Target, config: &Config) -> Record {
    load::run::run(plan, target, config, &mut |_| ()).unwrap()
}

/// Runs two users who repeat a GET and a POST for half a second.
pub(crate) fn run_list(target: &Target, protocol: Protocol) -> Record {
    let get = Request::new("GET", "/1.bin").unwrap();
    let mut post = Request::new("POST", "/2.bin").unwrap();
    post.add_field("Content-Type: text/plain").unwrap();
    post.set_body(vec![b'x'; 10_000].into()).unwrap();
    let (pages, requests) = (loop_pages(2), Requests::List([get, post].into(), Statuses::default()));
    let duration = Duration::from_millis(500);
    let job = Job { lasts: duration, pages: &pages, turns: Turns::Loop(2), requests };
    load::run::run(&job, target, &config(protocol), &mut |_| ()).unwrap()
}

/// Runs users with a timeout of 300 ms, against a server that dies after half a second.
pub(crate) fn run_until_death(plan: &Plan, target: &Target, protocol: Protocol, server: impl Send) -> Record {
    let short_timeout = Config { timeout: Duration::from_millis(300), ..config(protocol) };
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::park_timeout(Elapsed::from_millis(500));
            drop(server);
        });
        run(plan, target, &short_timeout)
    })
}

/// TLS configuration of a server with this ALPN name, and the trust in its certificate.
pub(crate) fn certified(speaks: &[u8]) -> (Arc<ServerConfig>, Trust) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = vec![speaks.to_vec()];
    (Arc::new(config), Trust::Authorities(vec![certificate]))
}

/// Behaviour of a server with each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    Responds,
    RespondsAfter(Elapsed),
    RespondsWith(u16),
    RespondsTooMuch,
    Resets,
    /// Reports that it did not process the request.
    Rejects,
    StaysSilent,
    /// Closes each connection after this many responses.
    LeavesAfter(usize),
}

/// Failure instead of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Failure {
    Reset,
    Rejected,
    Word,
}

impl Behaviour {
    /// Faults, with the expected kind of failure.
    pub(crate) const BAD: [(Self, FailureReason); 5] = [
        (Self::RespondsWith(503), FailureReason::Status),
        (Self::RespondsTooMuch, FailureReason::Size),
        (Self::Resets, FailureReason::Closed),
        (Self::Rejects, FailureReason::Closed),
        (Self::StaysSilent, FailureReason::Timeout),
    ];

    /// Number of responses on a connection until it is closed.
    pub(crate) fn responses_until_it_leaves(self) -> usize {
        if let Self::LeavesAfter(responses) = self { responses } else { usize::MAX }
    }

    /// Status of a response, and length of its body.
    pub(crate) async fn respond(
        self,
        plan: &Plan,
        request: &http::Request<()>,
    ) -> Result<(u16, usize), Failure> {
        let usual = match request.headers().contains_key(IF_MODIFIED_SINCE) {
            true => (304, 0),
            false => (200, size(plan, request.uri().path())),
        };
        match self {
            Self::Responds | Self::LeavesAfter(_) => Ok(usual),
            Self::RespondsAfter(time) => {
                tokio::time::sleep(time).await;
                Ok(usual)
            }
            Self::RespondsWith(status) => Ok((status, usual.1)),
            Self::RespondsTooMuch => Ok((200, 20_001)),
            Self::Resets => Err(Failure::Reset),
            Self::Rejects => Err(Failure::Rejected),
            Self::StaysSilent => Err(Failure::Word),
        }
    }
}

/// The size of the file at a path.
fn size(plan: &Plan, path: &str) -> usize {
    let number = path.trim_matches('/').strip_suffix(".bin").unwrap();
    usize::try_from(plan.size(number.parse().unwrap())).unwrap()
}
