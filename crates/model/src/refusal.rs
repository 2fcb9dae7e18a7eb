//! Errors for scenarios without a formula.
//!
//! Broken assumptions with which a prediction is still meaningful are in [`crate::notes`].

use std::fmt;

use scenario::client::PARALLEL_REMEDY;
use scenario::{Protocol, Tls};

/// Scenario that the formulas cannot predict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The protocol sends deflated bodies, and no object of the page has a size after deflate.
    DeflatedSizesUnknown {
        /// The page's name.
        page: String,
    },
    /// A page of several hosts, or with dependencies other than on its document, over a protocol of the papers.
    Graph {
        /// The page's name.
        page: String,
        /// The protocol.
        protocol: Protocol,
    },
    /// TLS over a protocol that has none.
    Tls {
        /// The version.
        tls: Tls,
        /// The protocol.
        protocol: Protocol,
    },
    /// A page in the client's cache, over TLS, over HTTP/2, or as a graph.
    Revalidation {
        /// The protocol.
        protocol: Protocol,
        /// The version of TLS.
        tls: Tls,
    },
    /// Several concurrent connections, for a protocol without a formula for them.
    Parallel {
        /// The protocol.
        protocol: Protocol,
        /// Number of connections.
        parallel: u16,
    },
    /// A session of several pages.
    Session {
        /// Number of pages.
        pages: usize,
    },
    /// A part that HTTP/3 does not have.
    Http3 {
        /// The part.
        what: String,
        /// Alternative for the user.
        remedy: &'static str,
    },
    /// More than 584 years, the maximum of a duration.
    TooLong {
        /// The page's name.
        page: String,
        /// The network's name.
        network: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Graph { page, protocol } => write!(
                f,
                "the model cannot predict page `{page}`, which has several hosts or dependencies, over `{}`; choose \
                 `http11-parallel` or `http2`",
                protocol.name()
            ),
            Self::Tls { tls, protocol } => write!(
                f,
                "the model cannot predict TLS {} for `{}`, which has no TLS; choose `--tls none`, \
                 `http11-parallel` or `http2`",
                tls.name(),
                protocol.name()
            ),
            Self::Http3 { what, remedy } => write!(f, "the model cannot predict {what}; {remedy}"),
            Self::Revalidation { protocol, tls } => write!(
                f,
                "the model cannot predict the visit `revalidate` over `{}` with TLS {}; choose `--visit first`, or \
                 `--engine simulate`",
                protocol.name(),
                tls.name()
            ),
            Self::DeflatedSizesUnknown { page } => write!(
                f,
                "the model cannot predict `http11-pipelined-deflate` for page `{page}`, because no object of it \
                 has a known size after deflate; choose `http11-pipelined`, or a page with deflated sizes such \
                 as `w3c-page`"
            ),
            Self::Parallel { protocol, parallel } => write!(
                f,
                "the model cannot predict `{}` over {parallel} concurrent connections; {PARALLEL_REMEDY}",
                protocol.name()
            ),
            Self::Session { pages } => write!(
                f,
                "the model cannot predict a session of {pages} pages; choose `--connection warm` for a later page, \
                 or another engine"
            ),
            Self::TooLong { page, network } => write!(
                f,
                "page `{page}` over network `{network}` takes longer than 584 years; choose a higher rate or a \
                 smaller page"
            ),
        }
    }
}

impl std::error::Error for Refusal {}
