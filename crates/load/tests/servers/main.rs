//! Users of every protocol, and servers on loopback that do well, badly and worse: what is asked, what is counted, what is refused.
//!
//! Not the libraries of HTTP/2 and HTTP/3: what they do is taken as it comes.

mod ended;
mod hostile;
mod hostile_datagrams;
mod hostile_streams;
mod http1_tls;
mod http2;
mod http3;
mod site;
