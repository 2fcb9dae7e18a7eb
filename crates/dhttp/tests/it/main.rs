//! The integration tests of this crate, as one program.

extern crate roundtrip_dhttp as dhttp;

mod attacks;
mod end_to_end;
mod hostile;
mod limits;
mod slow;
