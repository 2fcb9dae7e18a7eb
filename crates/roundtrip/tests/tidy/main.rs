//! Tidy: invariants of the whole tree, as ordinary tests.
//!
//! Each module has one: the beginning of a file ([`headers`]), its permitted imports ([`imports`]), its maximum length
//! ([`sizes`]). The permitted entries of the root ([`root`]), valid references in documents ([`documents`],
//! [`test_names`]), the words of help, errors and documents ([`words`]). Pure crates without an operating system
//! ([`purity`]). rustfmt and clippy have their own jobs in `ci.sh`.

mod documents;
mod headers;
mod imports;
mod purity;
mod root;
mod sizes;
mod test_names;
mod tree;
mod words;
