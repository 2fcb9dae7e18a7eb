//! What the papers print, held against packets.

mod interactions;
mod restart;
mod slow_start;
mod transactions;
