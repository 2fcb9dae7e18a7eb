//! What the papers print, held against packets.

mod interactions;
mod slow_start;
mod transactions;
