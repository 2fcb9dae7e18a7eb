//! Users who ask by HTTP/2 and HTTP/3, and servers of the same libraries on loopback: what is asked, what is counted, what is refused.
//!
//! Not the libraries: what they do is taken as it comes.

mod http2;
mod http3;
mod site;
