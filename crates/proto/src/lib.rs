//! HTTP/1.x as machines without sockets or clocks.
