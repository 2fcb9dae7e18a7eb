//! Where a web page's round trips go, and how to get them back.

fn main() {}
