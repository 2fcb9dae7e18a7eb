//! Tidy: what must stay true of the whole tree, as ordinary tests.
//!
//! Each module states one thing: where a file begins ([`headers`]), who may import whom ([`imports`]), how long a
//! file may grow ([`sizes`]), what may stand at the root ([`root`]), that documents point at what exists
//! ([`documents`]), that pure crates stay pure ([`purity`]). Not a formatter and not a linter: rustfmt and clippy
//! have their own jobs in `ci.sh`.

mod documents;
mod headers;
mod imports;
mod purity;
mod root;
mod sizes;
mod tree;
