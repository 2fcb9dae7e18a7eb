//! The laboratory's WebAssembly modules: captures diagnosed, and scenarios compared, within a web page.
//!
//! A worker of the page writes a request, as JSON, into memory, calls [`abi`]'s one function, and reads the reply. Files are
//! read through an import, part by part, so that memory does not grow with them. Nothing is computed here: text, numbers and
//! pictures are those of `report` and `lab`, which the command line prints. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`session`] | requests and replies |
//! | [`diagnosis`] | captures (feature `diagnose`) |
//! | [`comparison`] | scenarios (feature `compare`) |
//! | [`input`] | files of the page |
//! | [`abi`] | the functions that JavaScript calls |

#[cfg(target_arch = "wasm32")]
pub mod abi;
#[cfg(feature = "compare")]
pub mod comparison;
#[cfg(feature = "diagnose")]
pub mod diagnosis;
pub mod input;
pub mod session;
