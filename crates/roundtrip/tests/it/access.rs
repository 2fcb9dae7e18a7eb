//! `roundtrip connections` and `roundtrip logs` as users run them: every form of log, and every kind of error.
//!
//! `accesslog`'s tests compare the counts with brute force. Reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`lines`] | logs of lines, in every form |
//! | `tables` | Parquet and Arrow |
//! | `objects` | logs in an object store |
//! | [`three_months`] | the paper's claims (long) |
//! | [`invalid_input`] | invalid logs and flags, full disks |
//! | [`program`] | the program, and logs to give it |
//! | `s3` | an object store on this host |

mod invalid_input;
mod lines;
#[cfg(feature = "object-store")]
mod objects;
mod program;
#[cfg(feature = "object-store")]
mod s3;
#[cfg(feature = "parquet")]
mod tables;
mod three_months;
