//! Remarks of the engines that run programs: deviations from the scenario, and facts that no metric has.
//!
//! A remark has parameters; its sentence is made here. The formulas' remarks are `model`'s.

use std::fmt;

use fetch::TransportCounts;

/// Remark on the runs of one scenario. Numbers are means over the runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// Runs in which the page never arrived.
    FailedRuns {
        /// Number of them.
        failed: usize,
        /// Number of runs.
        runs: usize,
        /// End of the first of them.
        reason: String,
    },
    /// Responses that naive closes destroyed after they had begun to arrive.
    Destroyed {
        /// Responses in a run.
        each: f64,
        /// The first of them.
        first: String,
    },
    /// Times of a session's pages, in milliseconds.
    SessionPages(Vec<f64>),
    /// Time until the first bytes of every object had arrived, in milliseconds.
    FirstBytes(f64),
    /// Requests retried after their connection closed without a response.
    Retries(f64),
    /// Objects that the document references and the server lacks.
    MissingObjects(f64),
    /// The document references more objects than the client fetches.
    TooManyObjects(usize),
    /// Transport of DHTTP's responses.
    Transports {
        /// In one datagram.
        by_datagram: f64,
        /// On connections opened by the server.
        by_connection: f64,
        /// Over plain HTTP.
        by_plain_http: f64,
        /// Resent requests.
        resends: f64,
    },
    /// Datagrams are limited to this size, in bytes.
    NarrowDatagrams(u64),
    /// Settings of the programs at both ends.
    Programs(String),
    /// Hosts of the page do not offer the protocol.
    WithoutOffer(String),
    /// Independent requests were dependent.
    RequestsWereDependent,
    /// Requests left as the page's graph has it.
    GraphDecides,
    /// The event `load` races with rendering: its time if the race ends otherwise, in milliseconds.
    OtherLoad(f64),
    /// This client requests every object from the start, as it reads nothing.
    AllAtOnce(&'static str),
    /// This server's responses have header sections of its own.
    OwnHeads(&'static str),
    /// A connection begins with the window of the last one.
    SharedInSequence,
    /// Concurrent connections share a window.
    SharedConcurrently,
    /// Attempts that were void and repeated.
    VoidAttempts {
        /// Number of them.
        attempts: u32,
        /// Reason of the first.
        reason: String,
    },
    /// Runs that stayed void.
    VoidRuns {
        /// Number of them.
        void: u32,
        /// Number of requested runs.
        runs: u32,
    },
    /// Version of a program of others.
    Version {
        /// Name of the program.
        program: &'static str,
        /// Its version.
        version: String,
    },
    /// Bodies are larger than the page's by these bytes in all, because of what they name for a browser.
    LargerBodies(u64),
    /// The kernel's send buffer is larger than this stack's.
    LargerSendBuffer(&'static str),
}

impl Remark {
    /// Transport of responses, averaged over runs; `None` without a response.
    pub fn transports(runs: &[TransportCounts]) -> Option<Self> {
        let mean = |part: fn(&TransportCounts) -> u64| {
            let sum: u64 = runs.iter().map(part).sum();
            sum as f64 / runs.len().max(1) as f64
        };
        let (by_datagram, by_connection) =
            (mean(|counts| counts.by_datagram), mean(|counts| counts.by_connection));
        let (by_plain_http, resends) = (mean(|counts| counts.by_plain_http), mean(|counts| counts.resends));
        let is_any = [by_datagram, by_connection, by_plain_http, resends].iter().any(|mean| *mean > 0.0);
        is_any.then_some(Self::Transports { by_datagram, by_connection, by_plain_http, resends })
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FailedRuns { failed, runs, reason } => write!(f, "{failed} of {runs} runs failed {reason}"),
            Self::Destroyed { each, first } => write!(
                f,
                "naive closes destroyed {each:.1} responses a run that had begun to arrive ({first})"
            ),
            Self::SessionPages(times) => {
                let times: Vec<String> = times.iter().map(|ms| format!("{ms:.1}")).collect();
                write!(f, "pages of the session, in ms: {}", times.join(", "))
            }
            Self::FirstBytes(ms) => write!(f, "first bytes of every object received after {ms:.1} ms"),
            Self::Retries(each) => {
                write!(f, "requests retried after their connection closed without a response: {each:.1}")
            }
            Self::MissingObjects(each) => {
                write!(f, "objects that the document references and the server lacks: {each:.1}")
            }
            Self::TooManyObjects(max) => {
                write!(f, "the document references more than {max} objects; those beyond were not fetched")
            }
            Self::Transports { by_datagram, by_connection, by_plain_http, resends } => {
                let means = [
                    (*by_datagram, "in one datagram"),
                    (*by_connection, "on connections opened by the server"),
                    (*by_plain_http, "over plain HTTP"),
                ];
                write_transports(f, &means, *resends)
            }
            Self::NarrowDatagrams(max) => {
                write!(f, "datagrams of at most {max} bytes: the network carries no larger ones whole")
            }
            Self::Programs(settings) => write!(f, "programs: {settings}"),
            Self::WithoutOffer(sentence) => f.write_str(sentence),
            Self::RequestsWereDependent => {
                f.write_str("requests were dependent: one connection carries one request at a time")
            }
            Self::GraphDecides => f.write_str("requests left as the page's graph has it"),
            Self::OtherLoad(ms) => write!(
                f,
                "`load` races with rendering, which requests what style sheets name: in other visits it comes after {ms:.0} ms"
            ),
            Self::AllAtOnce(client) => {
                write!(f, "{client} requests every object from the start, and does not play the page's graph")
            }
            Self::OwnHeads(server) => write!(f, "responses have {server}'s own header sections"),
            Self::SharedInSequence => {
                f.write_str("a connection begins with the window that the last one left")
            }
            Self::SharedConcurrently => f.write_str("concurrent connections share one congestion window"),
            Self::VoidAttempts { attempts: 1, reason } => {
                write!(f, "1 attempt was void and repeated; of the first, {reason}")
            }
            Self::VoidAttempts { attempts, reason } => {
                write!(f, "{attempts} attempts were void and repeated; of the first, {reason}")
            }
            Self::VoidRuns { void, runs } => {
                write!(f, "{void} of {runs} runs stayed void after all repetitions, and are left out")
            }
            Self::Version { program, version } => write!(f, "{program}: {version}"),
            Self::LargerBodies(bytes) => {
                write!(f, "bodies are {bytes} bytes larger in all than the page's, for the names in them")
            }
            Self::LargerSendBuffer(stack) => write!(
                f,
                "the kernel's send buffer takes responses in one write that {stack} would take in several"
            ),
        }
    }
}

/// Writes the transports of responses that were used, and resent requests.
fn write_transports(f: &mut fmt::Formatter<'_>, means: &[(f64, &str)], resends: f64) -> fmt::Result {
    let parts = means.iter().filter(|(mean, _)| *mean > 0.0);
    let parts: Vec<_> = parts.map(|(mean, how)| format!("{} {how}", figure(*mean))).collect();
    write!(f, "responses: {}", parts.join(", "))?;
    if resends > 0.0 {
        write!(f, "; {} requests resent", figure(resends))?;
    }
    Ok(())
}

/// A mean as text: whole numbers as such, others to a tenth.
fn figure(mean: f64) -> String {
    if mean.fract() == 0.0 { format!("{mean:.0}") } else { format!("{mean:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_of_responses_is_averaged() {
        let counts =
            |by_datagram, resends| TransportCounts { by_datagram, resends, ..TransportCounts::default() };
        let sentence = |runs: &[TransportCounts]| Remark::transports(runs).map(|remark| remark.to_string());
        assert_eq!(sentence(&[counts(3, 0), counts(3, 0)]).unwrap(), "responses: 3 in one datagram");
        let mean = sentence(&[counts(3, 1), counts(2, 0)]).unwrap();
        assert_eq!(mean, "responses: 2.5 in one datagram; 0.5 requests resent");
        assert_eq!(sentence(&[]), None);
    }
}
