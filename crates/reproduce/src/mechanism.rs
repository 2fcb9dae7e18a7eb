//! Mechanisms: reasons why ours differs from print, switched on.
//!
//! A reason is only as good as its computed effect. The data names a mechanism for a cell and a bound. The cell is
//! computed again with it, and the verdict is `explained` only within that bound of the printed number.
//!
//! | mechanism | what it switches on |
//! | --- | --- |
//! | `decimal-kilobits` | a modem of 28.8 kbit/s with kilobits of 1000, as the other modems of the table |
//! | `early-retransmission` | Solaris 2.5 with its own timers, without the fix of May 1996 |
//! | `one-lost-packet` | one packet of the server lost in each run, the mean over which |
//! | `one-lost-packet-retransmitted-early` | both |
//! | `printed-packets` | the printed number of packets, with our bytes |
//! | `header-compression` | TCP/IP headers compressed on the telephone line (RFC 1144) |
//! | `every-segment-acknowledged` | the policy of Table VI in the place of Section VI's |
//! | `sum-without-its-round-trip` | the same, and equation (6) without the round trip before its sum |

use model::Assumptions;

use super::laboratory::Laboratory;
use super::published::Cell;
use super::{heidemann, w3c};

/// Ours for a cell with this mechanism; `None` where it is unknown for the table.
///
/// # Errors
/// The error of an engine.
pub fn our_value(
    key: &str,
    mechanism: &str,
    cell: &Cell,
    _: &mut Laboratory<'_>,
) -> Result<Option<f64>, String> {
    match (key, mechanism) {
        ("heidemann-model/table-2", "decimal-kilobits") => heidemann::decimal_kilobits(cell),
        ("heidemann-model/figure-5", "every-segment-acknowledged") => {
            heidemann::limit_round_trips(cell, &Assumptions::paper())
        }
        ("heidemann-model/figure-5", "sum-without-its-round-trip") => {
            let whole = heidemann::limit_round_trips(cell, &Assumptions::paper())?;
            Ok(whole.map(|round_trips| round_trips - 1.0))
        }
        ("w3c/modem-compression", "header-compression") => w3c::header_compression(cell),
        _ if key.starts_with("w3c/") => w3c::with_mechanism(key, mechanism, cell),
        _ => Ok(None),
    }
}
