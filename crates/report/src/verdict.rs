//! Verdict of a gate: the findings that fail a build.
//!
//! Input: diagnosed captures, of packets or of sockets, and a [`Policy`]. Output: a [`Verdict`]. Findings of one cause, at one side, at one class
//! of server port make a [`Case`], whatever the connection. A fault has the same [`Key`] in every run, so that a
//! [`Baseline`] recognises it. Notes and unknown time make no case.
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Policy`], [`Verdict`] |
//! | [`threshold`] | `--fail-on` |
//! | [`baseline`] | known findings, and their file |
//! | [`mod@unjudged`] | reasons why there is no verdict |

pub mod baseline;
pub mod threshold;
pub mod unjudged;

use std::collections::BTreeMap;
use std::fmt;

use diagnose::{Cause, Finding, FlowReport, Severity, Side};
use serde_json::{Value, json};
use wire::Duration;

use crate::Capture;
use crate::watched::Row;
pub use baseline::{Baseline, BaselineError};
pub use threshold::Threshold;
pub use unjudged::Unjudged;

/// Policy: the findings that fail a build.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Thresholds, any of which fails the build; without any, it never fails.
    pub fail_on: Vec<Threshold>,
    /// Causes that never fail the build.
    pub allowed: Vec<Cause>,
    /// Known findings, which do not fail the build.
    pub known: Baseline,
    /// Number of captures in which a case must fail.
    pub needed: usize,
    /// Whether the servers are the command's own: then their time is the speed of this host, and only a threshold that
    /// names `server-think` counts it.
    pub has_own_servers: bool,
    /// Whether a command that fails is judged: its status is returned instead.
    pub is_failure_accepted: bool,
}

impl Policy {
    fn is_own_speed(&self, cause: Cause) -> bool {
        self.has_own_servers && cause == Cause::ServerThink
    }
}

impl Default for Policy {
    fn default() -> Self {
        let fail_on = vec![Threshold::Severity(Severity::Medium)];
        Self {
            fail_on,
            allowed: Vec::new(),
            known: Baseline::default(),
            needed: 1,
            has_own_servers: false,
            is_failure_accepted: false,
        }
    }
}

/// Class of a server's port: a configured number, or an ephemeral one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortClass {
    /// Below the ephemeral range.
    Fixed(u16),
    /// Assigned by the kernel, different in each run.
    Ephemeral,
}

/// First port that Linux assigns (`net.ipv4.ip_local_port_range`); IANA's range begins above (RFC 6335, section 6).
const FIRST_EPHEMERAL: u16 = 32_768;

impl PortClass {
    /// Returns the class of `port`.
    pub const fn of(port: u16) -> Self {
        if port < FIRST_EPHEMERAL { Self::Fixed(port) } else { Self::Ephemeral }
    }
}

impl fmt::Display for PortClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(port) => port.fmt(f),
            Self::Ephemeral => f.write_str("ephemeral"),
        }
    }
}

/// Identity of a fault across runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The cause.
    pub cause: Cause,
    /// The side that was held up or caused the delay.
    pub side: Side,
    /// The server's port.
    pub port: PortClass,
}

impl Key {
    /// Returns the key of a finding.
    pub const fn of(finding_ref: FindingRef<'_>) -> Self {
        match finding_ref {
            FindingRef::Packets(flow, finding) => {
                let port = PortClass::of(flow.server.port());
                Self { cause: finding.cause, side: finding.side, port }
            }
            FindingRef::Sockets(row) => {
                Self { cause: row.cause, side: row.side, port: PortClass::of(row.server.port()) }
            }
        }
    }

    /// Formats side and port: `server, port 8080`.
    pub fn location(&self) -> String {
        match self.port {
            PortClass::Fixed(port) => format!("{}, port {port}", self.side),
            PortClass::Ephemeral => format!("{}, ephemeral port", self.side),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.cause.name(), self.location())
    }
}

/// Outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Fails the build.
    Fails,
    /// Below every threshold, or in too few runs.
    Passes,
    /// In the baseline.
    Known,
    /// Of an allowed cause.
    Allowed,
}

impl Outcome {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::Passes => "passes",
            Self::Known => "known",
            Self::Allowed => "allowed",
        }
    }
}

/// A finding, by the method that found it.
#[derive(Clone, Copy, Debug)]
pub enum FindingRef<'a> {
    /// In a connection's packets.
    Packets(&'a FlowReport, &'a Finding),
    /// In the kernel's statistics of sockets.
    Sockets(&'a Row),
}

impl FindingRef<'_> {
    /// Returns its severity.
    pub const fn severity(self) -> Severity {
        match self {
            Self::Packets(_, finding) => finding.severity,
            Self::Sockets(row) => row.severity,
        }
    }

    /// Returns the time lost in the longest stall.
    pub const fn longest(self) -> Duration {
        match self {
            Self::Packets(_, finding) => finding.lost,
            Self::Sockets(row) => row.longest,
        }
    }

    /// Returns the number of stalls and their total time.
    const fn total(self) -> (u64, Duration) {
        match self {
            Self::Packets(_, finding) => (1, finding.lost),
            Self::Sockets(row) => (row.times, row.lost),
        }
    }

    fn fails(self, policy: &Policy) -> bool {
        let (cause, severity) = (Key::of(self).cause, self.severity());
        let longest = match self {
            // Not the time for which a server's host was busy.
            Self::Packets(_, Finding { cause: Cause::ServerThink, lost, saving: Some(own), .. }) => {
                (*own).min(*lost)
            }
            _other => self.longest(),
        };
        let is_own_speed = policy.is_own_speed(cause);
        let counted = |threshold: &&Threshold| !is_own_speed || matches!(threshold, Threshold::Cause { .. });
        let mut thresholds = policy.fail_on.iter().filter(counted);
        thresholds.any(|threshold| threshold.is_reached(cause, severity, longest))
    }
}

/// Findings with the same key.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// Their key.
    pub key: Key,
    /// Outcome.
    pub outcome: Outcome,
    /// Whether it is the time of the command's own servers, which fails by its name only.
    pub is_own_speed: bool,
    /// Severity of the worst finding.
    pub severity: Severity,
    /// Number of listed findings, in all captures; of watched sockets, of stalls.
    pub times: u64,
    /// Total time lost in them.
    pub lost: Duration,
    /// Number of captures with at least one.
    pub seen: usize,
    /// Number of captures in which at least one reaches a threshold.
    pub failing: usize,
    /// The worst finding, with its capture.
    pub worst: (&'a Capture, FindingRef<'a>),
}

/// The verdict on captures.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// Failing cases first, then the most severe.
    pub cases: Vec<Case<'a>>,
    /// Number of captures.
    pub captures: usize,
    /// Reason why there is no verdict: fewer captures could be judged than are needed.
    pub unjudged: Option<Unjudged>,
}

impl Verdict<'_> {
    /// Returns whether the build fails.
    pub fn fails(&self) -> bool {
        self.failing().next().is_some()
    }

    /// Returns the exit status: 1 if the build fails, 3 if nothing could be judged, otherwise 0.
    pub fn status(&self) -> u8 {
        match (self.fails(), self.unjudged) {
            (true, _) => 1,
            (false, Some(_)) => 3,
            (false, None) => 0,
        }
    }

    /// Returns the reason why there is no verdict, unless findings fail anyway.
    pub fn unjudged(&self) -> Option<Unjudged> {
        self.unjudged.filter(|_| !self.fails())
    }

    /// Iterates over the failing cases.
    pub fn failing(&self) -> impl Iterator<Item = &Case<'_>> {
        self.cases.iter().filter(|case| case.outcome == Outcome::Fails)
    }

    /// Returns the verdict as JSON.
    pub fn json(&self) -> Value {
        let case = |case: &Case<'_>| {
            let Case {
                key: Key { cause, side, port },
                outcome,
                severity,
                times,
                lost,
                seen,
                failing,
                worst,
                ..
            } = case;
            json!({
                "cause": cause.name(),
                "side": side.to_string(),
                "port": port.to_string(),
                "outcome": outcome.name(),
                "severity": severity.name(),
                "times": times,
                "lost_ms": lost.as_millis_f64(),
                "longest_ms": worst.1.longest().as_millis_f64(),
                "runs": seen,
                "failing_runs": failing,
            })
        };
        json!({
            "fails": self.fails(),
            "judged": self.unjudged().is_none(),
            "unjudged": self.unjudged().map(|reason| reason.to_string()),
            "runs": self.captures,
            "cases": self.cases.iter().map(case).collect::<Value>(),
        })
    }

    /// Returns the keys of all cases except allowed ones, for a new baseline. Cases below the thresholds are included:
    /// a stall of 19 ms may take 21 the next time.
    pub fn baseline(&self) -> Baseline {
        let wanted = self.cases.iter().filter(|case| case.outcome != Outcome::Allowed);
        Baseline::new(wanted.map(|case| case.key))
    }
}

/// Judges captures.
pub fn judge<'a>(captures: &'a [Capture], policy: &Policy) -> Verdict<'a> {
    let mut cases: BTreeMap<Key, Case<'a>> = BTreeMap::new();
    for capture in captures {
        let mut seen: BTreeMap<Key, bool> = BTreeMap::new();
        for finding_ref in findings(capture) {
            let key = Key::of(finding_ref);
            *seen.entry(key).or_default() |= finding_ref.fails(policy);
            add(&mut cases, key, capture, finding_ref);
        }
        for (key, fails) in seen {
            if let Some(case) = cases.get_mut(&key) {
                (case.seen, case.failing) = (case.seen + 1, case.failing + usize::from(fails));
            }
        }
    }
    let mut cases: Vec<Case<'a>> = cases.into_values().collect();
    for case in &mut cases {
        case.outcome = outcome(case, policy);
        case.is_own_speed = policy.is_own_speed(case.key.cause);
    }
    cases.sort_by(|one, other| {
        (one.outcome, other.severity, other.lost, one.key).cmp(&(
            other.outcome,
            one.severity,
            one.lost,
            other.key,
        ))
    });
    Verdict { cases, captures: captures.len(), unjudged: unjudged(captures, policy) }
}

fn unjudged(captures: &[Capture], policy: &Policy) -> Option<Unjudged> {
    let reasons: Vec<Unjudged> =
        captures.iter().filter_map(|capture| Unjudged::of(capture, policy.is_failure_accepted)).collect();
    let judged = captures.len() - reasons.len();
    reasons.first().copied().filter(|_| judged < policy.needed)
}

fn outcome(case: &Case<'_>, policy: &Policy) -> Outcome {
    if policy.allowed.contains(&case.key.cause) {
        Outcome::Allowed
    } else if policy.known.contains(&case.key) {
        Outcome::Known
    } else if case.failing >= policy.needed {
        Outcome::Fails
    } else {
        Outcome::Passes
    }
}

/// Iterates over the findings of a capture, without notes.
fn findings(capture: &Capture) -> impl Iterator<Item = FindingRef<'_>> {
    let of_flow = |flow| move |finding| FindingRef::Packets(flow, finding);
    let packets = capture.flows.iter().flat_map(move |flow| flow.findings.iter().map(of_flow(flow)));
    let sockets = capture.watched.iter().flat_map(|report| report.rows.iter().map(FindingRef::Sockets));
    packets.chain(sockets).filter(|finding_ref| finding_ref.severity() != Severity::Note)
}

fn add<'a>(cases: &mut BTreeMap<Key, Case<'a>>, key: Key, capture: &'a Capture, finding_ref: FindingRef<'a>) {
    let case = cases.entry(key).or_insert_with(|| Case {
        key,
        outcome: Outcome::Passes,
        is_own_speed: false,
        severity: finding_ref.severity(),
        times: 0,
        lost: Duration::ZERO,
        seen: 0,
        failing: 0,
        worst: (capture, finding_ref),
    });
    let (times, lost) = finding_ref.total();
    (case.times, case.lost) = (case.times + times, case.lost + lost);
    case.severity = case.severity.max(finding_ref.severity());
    let worst = case.worst.1;
    if (finding_ref.severity(), finding_ref.longest()) > (worst.severity(), worst.longest()) {
        case.worst = (capture, finding_ref);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandExit;
    use crate::tests::stored as capture;

    fn policy(fail_on: &[&str]) -> Policy {
        let fail_on = fail_on.iter().filter_map(|text| Threshold::parse(text).unwrap()).collect();
        Policy { fail_on, ..Policy::default() }
    }

    fn fails(captures: &[Capture], policy: &Policy) -> bool {
        judge(captures, policy).fails()
    }

    #[test]
    fn a_finding_fails_by_its_severity_or_by_its_cause_and_length() {
        // 75 ms: medium.
        let nagle = [capture("nagle")];
        assert!(fails(&nagle, &Policy::default()) && fails(&nagle, &policy(&["low"])));
        assert!(!fails(&nagle, &policy(&["high"])) && !fails(&nagle, &policy(&["none"])));
        assert!(fails(&nagle, &policy(&["high", "nagle-delayed-ack"])));
        assert!(fails(&nagle, &policy(&["nagle-delayed-ack:75"])));
        assert!(!fails(&nagle, &policy(&["nagle-delayed-ack:76", "retransmission-timeout"])));
    }

    #[test]
    fn time_of_a_commands_own_server_fails_only_by_name() {
        // 154 ms of server-think: medium.
        let slow = [capture("pipelined")];
        let own = |policy: Policy| Policy { has_own_servers: true, ..policy };
        assert!(fails(&slow, &Policy::default()) && !fails(&slow, &own(Policy::default())));
        assert!(!fails(&slow, &own(policy(&["low"]))) && fails(&slow, &own(policy(&["server-think:100"]))));
        assert!(fails(&[capture("nagle")], &own(Policy::default())));
    }

    #[test]
    fn notes_make_no_case() {
        let capture = [capture("nagle")];
        assert!(capture[0].flows[0].findings.iter().any(|finding| finding.severity == Severity::Note));
        let verdict = judge(&capture, &policy(&["low"]));
        let causes: Vec<&str> = verdict.cases.iter().map(|case| case.key.cause.name()).collect();
        assert_eq!(causes, ["nagle-delayed-ack"]);
    }

    #[test]
    fn allowed_causes_and_known_findings_do_not_fail() {
        let nagle = [capture("nagle")];
        let allowed = Policy { allowed: vec![Cause::NagleDelayedAck], ..Policy::default() };
        assert_eq!(judge(&nagle, &allowed).cases[0].outcome, Outcome::Allowed);
        assert!(judge(&nagle, &allowed).baseline().is_empty());
        let known = judge(&nagle, &Policy::default()).baseline();
        let policy = Policy { known, ..Policy::default() };
        assert_eq!(judge(&nagle, &policy).cases[0].outcome, Outcome::Known);
        // Another fault is new.
        let both = [capture("nagle"), capture("timeouts")];
        let verdict = judge(&both, &policy);
        let failing: Vec<String> = verdict.failing().map(|case| case.key.to_string()).collect();
        assert_eq!(failing, ["retransmission-timeout (client, port 80)"]);
    }

    #[test]
    fn a_majority_of_runs_must_fail() {
        let runs = |names: [&str; 3]| names.map(capture);
        let majority = Policy { needed: 2, ..Policy::default() };
        assert!(fails(&runs(["nagle", "idle_restart", "nagle"]), &majority));
        let once = runs(["nagle", "timeouts", "idle_restart"]);
        assert!(!fails(&once, &majority), "different faults do not add up to a majority");
        assert!(fails(&once, &Policy::default()));
    }

    #[test]
    fn nothing_seen_is_no_pass() {
        let mut empty = capture("nagle");
        empty.flows.clear();
        let mut none = capture("nagle");
        (none.flows, none.selected, none.packets) = (Vec::new(), 0, 0);
        let [quiet, unseen] = [[empty], [none]];
        let verdict = judge(&quiet, &Policy::default());
        assert_eq!((verdict.status(), verdict.unjudged()), (0, None));
        let verdict = judge(&unseen, &Policy::default());
        assert_eq!((verdict.status(), verdict.unjudged()), (3, Some(Unjudged::NoPacket)));
    }

    #[test]
    fn one_direction_with_unexplained_waits_is_no_pass() {
        let status = |unexplained, missing| {
            let mut capture = capture("idle_restart");
            for flow in &mut capture.flows {
                (flow.unexplained, flow.missing_direction) = (Duration::from_millis(unexplained), missing);
            }
            judge(&[capture], &policy(&["none"])).status()
        };
        let one = Some(Side::Server);
        assert_eq!((status(100, one), status(0, one), status(100, None)), (3, 0, 0));
    }

    #[test]
    fn a_command_that_fails_is_judged_only_if_its_findings_fail_or_its_status_is_returned() {
        let failed = |name| {
            let mut capture = capture(name);
            capture.command = Some(CommandExit::Exited(6));
            [capture]
        };
        assert_eq!(judge(&failed("nagle"), &Policy::default()).status(), 1);
        let quiet = failed("idle_restart");
        let lenient = policy(&["none"]);
        let verdict = judge(&quiet, &lenient);
        assert_eq!(verdict.unjudged(), Some(Unjudged::CommandFailed(CommandExit::Exited(6))));
        let accepted = Policy { is_failure_accepted: true, ..lenient.clone() };
        assert_eq!(judge(&quiet, &accepted).status(), 0);
        let mut stopped = failed("idle_restart");
        stopped[0].is_command_stopped = true;
        assert_eq!(judge(&stopped, &lenient).status(), 0);
    }

    #[test]
    fn ports_that_a_kernel_chooses_are_one_class() {
        assert_eq!(PortClass::of(40_000), PortClass::of(50_000));
        assert_ne!(PortClass::of(80), PortClass::of(8_080));
    }
}
