//! Plans, their runs, and certificates for servers that last for a test.

use std::net::SocketAddr;
use std::sync::Arc;

use load::secure::{Security, Trust};
use load::{Config, Protocol, Record, Shard, Target};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use scenario::surge::plan::{Plan, Wanted};
use scenario::surge::schedule::{Arrivals, Leg, Schedule};
use wire::{Bytes, Duration, Probability};

/// So many requests a second for a second, at even distances.
pub(crate) fn plan(rate: f64) -> Plan {
    plan_for(rate, Duration::from_secs(1))
}

/// So many requests a second for so long, at even distances.
pub(crate) fn plan_for(rate: f64, lasts: Duration) -> Plan {
    let leg = Leg { lasts, from: rate, to: rate };
    let schedule = Schedule::Rates(vec![leg], Arrivals::Constant);
    let conditional = Probability::new(0.2).unwrap();
    let cap = Bytes::new(20_000);
    Wanted { schedule, lasts, files: 20, cap, conditional, ..Wanted::default() }.plan().unwrap()
}

/// Two users with a connection each.
pub(crate) fn config(protocol: Protocol) -> Config {
    Config {
        protocol,
        dhttp: proto::dhttp::ClientConfig::internet(),
        connections: 1,
        ports: 1,
        shard: Shard::WHOLE,
        closes_early: false,
        fast_open: false,
        has_early: false,
        keeps: None,
        threads: 1,
        users: 2,
        patience: Duration::from_secs(5),
        at: None,
    }
}

pub(crate) fn target(address: SocketAddr, trust: Option<Trust>) -> Target {
    let security = trust.map(|trust| Security { name: "localhost".to_owned(), trust });
    Target { address, host: "localhost".to_owned(), folder: "/".to_owned(), security }
}

pub(crate) fn run(plan: &Plan, target: &Target, config: &Config) -> Record {
    load::run::run(plan, target, config, &mut |_| ()).unwrap()
}

/// A server's side of encrypted connections in which it speaks this, and who its certificate is to be believed by.
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

/// The size of the file at a path.
pub(crate) fn size(plan: &Plan, path: &str) -> usize {
    let number = path.trim_matches('/').strip_suffix(".bin").unwrap();
    usize::try_from(plan.size(number.parse().unwrap())).unwrap()
}
