//! Tidy: invariants of the whole tree, as ordinary tests.
//!
//! | module | what it checks |
//! | --- | --- |
//! | [`headers`] | the beginning of each file |
//! | [`imports`], [`circles`] | imports between crates, and circles between files |
//! | [`flags`] | flags with two meanings |
//! | [`manifests`] | unused dependencies, and targets without a test program |
//! | [`sizes`] | lengths of files and crates |
//! | [`root`] | entries of the root directory |
//! | [`documents`], [`test_names`] | references in documents |
//! | [`words`] | words of help, errors and documents |
//! | [`purity`] | pure crates without an operating system |
//!
//! rustfmt and clippy have their own jobs in `ci.sh`.

mod circles;
mod documents;
mod flags;
mod headers;
mod imports;
mod manifests;
mod purity;
mod root;
mod sizes;
mod test_names;
mod tree;
mod words;
