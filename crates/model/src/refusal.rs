//! Errors for scenarios without a formula.
//!
//! Broken assumptions with which a prediction is still meaningful are in [`crate::notes`].

use scenario::client::PARALLEL_REMEDY;
use scenario::{Protocol, Tls};

/// Scenario that the formulas cannot predict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The protocol sends deflated bodies, and no object of the page has a size after deflate.
    #[error(
        "the model cannot predict `http11-pipelined-deflate` for page `{page}`, because no object of it has \
         a known size after deflate; choose `http11-pipelined`, or a page with deflated sizes such as \
         `w3c-page`"
    )]
    DeflatedSizesUnknown {
        /// The page's name.
        page: String,
    },
    /// A page of several hosts, or with dependencies other than on its document, over a protocol of the papers.
    #[error(
        "the model cannot predict page `{page}`, which has several hosts or dependencies, over `{}`; choose \
         `http11-parallel` or `http2`",
        .protocol.name()
    )]
    Graph {
        /// The page's name.
        page: String,
        /// The protocol.
        protocol: Protocol,
    },
    /// TLS over a protocol that has none.
    #[error(
        "the model cannot predict TLS {} for `{}`, which has no TLS; choose `--tls none`, `http11-parallel` \
         or `http2`",
        .tls.name(),
        .protocol.name()
    )]
    Tls {
        /// The version.
        tls: Tls,
        /// The protocol.
        protocol: Protocol,
    },
    /// Several concurrent connections, for a protocol without a formula for them.
    #[error(
        "the model cannot predict `{}` over {parallel} concurrent connections; {PARALLEL_REMEDY}",
        .protocol.name()
    )]
    Parallel {
        /// The protocol.
        protocol: Protocol,
        /// Number of connections.
        parallel: u16,
    },
    /// A session of several pages.
    #[error(
        "the model cannot predict a session of {pages} pages; choose `--connection warm` for a later page, \
         or another engine"
    )]
    Session {
        /// Number of pages.
        pages: usize,
    },
    /// A part that HTTP/3 does not have.
    #[error("the model cannot predict {what}; {remedy}")]
    Http3 {
        /// The part.
        what: String,
        /// Alternative for the user.
        remedy: &'static str,
    },
    /// More than 584 years, the maximum of a duration.
    #[error(
        "page `{page}` over network `{network}` takes longer than 584 years; choose a higher rate or a \
         smaller page"
    )]
    TooLong {
        /// The page's name.
        page: String,
        /// The network's name.
        network: String,
    },
}
