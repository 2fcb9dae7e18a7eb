//! What the papers print, held against packets.

mod interactions;
mod limits;
mod restart;
mod slow_start;
mod transactions;
