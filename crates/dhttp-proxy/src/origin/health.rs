//! Health of an origin: marked down by failures, and probed until it responds.
//!
//! Responses to clients meanwhile are those of [`super::OriginError`].

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use dhttp::fields::copy;
use http1::message::{Fields, Method, RequestHead, Version};
use linux::clock::Clock;
use wire::Time;

use super::client::{Client, OriginRequest};
use super::counters::Counters;
use crate::OPERATION;

/// Health of an origin.
#[derive(Debug)]
pub(super) struct Health {
    is_down: AtomicBool,
    /// Consecutive requests without a response.
    silent: AtomicU32,
    /// Reason for being down, as a sentence.
    reason: Mutex<String>,
    counters: Counters,
    clock: Clock,
    /// Second of the last line in the log, from 1 on; 0 for none.
    logged: AtomicU64,
    /// Whether the log states that it is down.
    is_logged: AtomicBool,
}

/// Consecutive requests without a response after which the origin is marked down. A single request may be slow by itself.
const MAX_SILENT: u32 = 3;
/// Delay of the first probe; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum delay between probes.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Seconds between two lines in the log.
const MIN_LOG_SECONDS: u64 = 10;
/// Timeout of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

impl Health {
    pub(super) fn new() -> Arc<Self> {
        let counters = Counters::default();
        counters.up.store(1, Ordering::Relaxed);
        Arc::new(Self {
            is_down: AtomicBool::new(false),
            silent: AtomicU32::new(0),
            reason: Mutex::default(),
            counters,
            clock: Clock::start(),
            logged: AtomicU64::new(0),
            is_logged: AtomicBool::new(false),
        })
    }

    /// Returns the reason for being down, if it is.
    pub(super) fn down(&self) -> Option<String> {
        if !self.is_down.load(Ordering::Acquire) {
            return None;
        }
        self.counters.spared.fetch_add(1, Ordering::Relaxed);
        Some(self.reason.lock().map_or_else(|_| String::new(), |reason| reason.clone()))
    }

    /// Handles a response: the origin is up.
    pub(super) fn mark_up(&self, authority: &str) {
        self.silent.store(0, Ordering::Relaxed);
        if self.is_down.swap(false, Ordering::AcqRel) {
            self.counters.up.store(1, Ordering::Relaxed);
            if self.is_logged.swap(false, Ordering::AcqRel) {
                tracing::info!(target: OPERATION, origin = authority, "the origin responds again");
            }
        }
    }

    /// Counts an invalid response, which still shows that the origin is up.
    pub(super) fn broke(&self) {
        self.counters.broken.fetch_add(1, Ordering::Relaxed);
    }

    /// Handles a failed connection attempt. Returns `true` if this marks the origin down, and it was not down before.
    pub(super) fn could_not_be_reached(&self, reason: &str) -> bool {
        self.counters.unreachable.fetch_add(1, Ordering::Relaxed);
        self.fall(reason)
    }

    /// Handles a response timeout. Returns `true` as above.
    pub(super) fn record_timeout(&self, reason: &str) -> bool {
        self.counters.silent.fetch_add(1, Ordering::Relaxed);
        self.silent.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_SILENT && self.fall(reason)
    }

    fn fall(&self, reason: &str) -> bool {
        if let Ok(mut reported) = self.reason.lock() {
            reason.clone_into(&mut reported);
        }
        self.counters.up.store(0, Ordering::Relaxed);
        !self.is_down.swap(true, Ordering::AcqRel)
    }

    /// Whether the log gets a line about the origin: one in ten seconds, so that an origin that comes and goes does not fill it.
    pub(super) fn may_log(&self) -> bool {
        let second = 1 + self.clock.now().since(Time::ZERO).as_nanos() / 1_000_000_000;
        let last = self.logged.load(Ordering::Relaxed);
        let may = last == 0 || second >= last + MIN_LOG_SECONDS;
        if may {
            self.logged.store(second, Ordering::Relaxed);
            self.is_logged.store(true, Ordering::Release);
        }
        may
    }

    /// Renders the counters in Prometheus' text format.
    pub(super) fn metrics(&self) -> String {
        Counters::text(&[&self.counters])
    }
}

/// Probes the origin until it responds, or until it is dropped.
pub(super) async fn probe(client: Arc<Client>, authority: String, health: Weak<Health>) {
    let mut fields = Fields::new();
    copy(&mut fields, b"Host", authority.as_bytes());
    // HEAD: no body in either direction, and safe.
    let head = RequestHead { method: Method::Head, target: "/".to_owned(), version: Version::Http11, fields };
    let request = OriginRequest { head, body: Bytes::new(), on_interim: None };
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        let response = tokio::time::timeout(PROBE_TIMEOUT, client.send(&request)).await;
        let Some(health) = health.upgrade().filter(|health| health.is_down.load(Ordering::Acquire)) else {
            return;
        };
        // Any response shows that the origin is up.
        if matches!(response, Ok(Ok(_))) {
            return health.mark_up(&authority);
        }
        pause = (2 * pause).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refused_connection_or_three_silences_in_a_row_take_it_down() {
        let health = Health::new();
        assert!(!health.record_timeout("slow") && !health.record_timeout("slow"));
        health.mark_up("a");
        assert!(!health.record_timeout("slow") && !health.record_timeout("slow"));
        assert_eq!(health.down(), None);
        assert!(health.record_timeout("slow"), "the third in a row");
        assert!(!health.could_not_be_reached("refused"), "it was down already");
        assert_eq!(health.down().as_deref(), Some("refused"));
        assert!(health.metrics().contains("roundtrip_origin_up 0\n"));
        health.mark_up("a");
        assert!(health.could_not_be_reached("refused"));
    }

    #[test]
    fn an_origin_that_comes_and_goes_has_one_line_in_ten_seconds() {
        let health = Health::new();
        assert!(health.may_log());
        assert!((0..100).all(|_| !health.may_log()));
    }
}
