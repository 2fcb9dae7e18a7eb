//! `roundtrip connections` and `roundtrip logs` as programs and people use them: any way a log can come, and any way it
//! can be wrong.
//!
//! Not what is counted: `simulate`'s tests hold that to brute force. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`lines`] | logs of lines, however they come |
//! | `tables` | Parquet and Arrow |
//! | `objects` | logs in an object store |
//! | [`three_months`] | the paper's claims, at length |
//! | [`wrong`] | bad logs, bad flags, full disks |
//! | [`program`] | the program, and logs to give it |
//! | `s3` | an object store on this machine |

mod lines;
#[cfg(feature = "object-store")]
mod objects;
mod program;
#[cfg(feature = "object-store")]
mod s3;
#[cfg(feature = "parquet")]
mod tables;
mod three_months;
mod wrong;
