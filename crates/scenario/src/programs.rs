//! Behaviour of the programs at both ends: the CPU time of their work, the sizes of their writes, how they
//! close connections, and their socket options.
//!
//! TCP is the stack's. The engine chooses values that are not set: a program then takes no time, writes a
//! message in one call, and leaves its sockets as the stack makes them.

mod client_stack;
mod codings;
mod named_settings;
mod session;
mod web_profiles;

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};

use fetch::{FirstBytes, Flush, Pipelining};
use http1::message::WritePolicy;
use http1::server::Closing;
use http1::site::Compression;
use quantity::ValueError;
use wire::{Bytes, Duration, Probability};

use crate::Stack;
use crate::dhttp::DhttpProfile;
use crate::robot;
pub use client_stack::ClientStack;
pub use codings::Codings;
pub use named_settings::{ClientDefect, HeadWrite, IdleWindow, Validation};
use named_settings::{NamedSetting, Switch, named};
pub use web_profiles::{BrowserPolicy, Http2Client, Http2Server, Http3Client, Http3Server};

/// Declares each setting once: its field, its key, and its flag. Of a flag: name, value, help; then an example in a file,
/// the parser of a value, and its printer.
macro_rules! programs {
    ($(
        $(#[$doc:meta])*
        $field:ident: $type:ty = $key:ident {
            $name:literal, $value:literal, $help:literal, $example:literal, $read:expr, $print:expr
        }
    )*) => {
        /// Behaviour of the programs at both ends; `None` leaves the default.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Programs {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        /// Key of a setting of the programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProgramKey {
            $(#[doc = $help] $key,)*
        }

        impl ProgramKey {
            /// Every key, in the order of lists.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$key),*];

            /// Name in a file; after two dashes, as a flag.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$key => $name,)* }
            }

            /// Placeholder of the flag's value.
            pub const fn value_name(self) -> &'static str {
                match self { $(Self::$key => $value,)* }
            }

            /// Help text of the flag.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$key => $help,)* }
            }

            /// Example of a value, as in a file.
            pub const fn example(self) -> &'static str {
                match self { $(Self::$key => $example,)* }
            }
        }

        impl Programs {
            /// Sets a value.
            ///
            /// # Errors
            /// An invalid text for this key; nothing is changed then.
            pub fn set(&mut self, key: ProgramKey, text: &str) -> Result<(), ValueError> {
                match key {
                    $(ProgramKey::$key => {
                        let read: fn(&str) -> Result<$type, ValueError> = $read;
                        self.$field = Some(read(text)?);
                    })*
                }
                Ok(())
            }

            /// Completes the settings with those of `below`.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)* }
            }

            /// The values that are set, key by key, as flags.
            pub fn reported(&self) -> impl Iterator<Item = (ProgramKey, String)> {
                let values = [$({
                    let print: fn($type) -> String = $print;
                    (ProgramKey::$key, self.$field.map(print))
                }),*];
                values.into_iter().filter_map(|(key, value)| Some((key, value?)))
            }
        }
    };
}

programs! {
    /// Client: number of pages of a session; default 1. The page's earlier ones are whole, and over the same
    /// connections as far as they stay open.
    client_pages: NonZeroU32 = ClientPages {
        "client-pages", "N",
        "Pages of a session, one after another over the connections that stay open; the row is of the last [default: 1]",
        "3", session::pages, text
    }
    /// Client: time between a page and the next.
    client_pause: Duration = ClientPause {
        "client-pause", "TIME",
        "Time that the user looks at a page before the next of a session [default: 0]",
        "\"5s\"", quantity::duration, text
    }
    /// Client: time after which it closes a connection without requests; default: never.
    client_idle: Duration = ClientIdle {
        "client-idle", "TIME",
        "Client's idle timeout of a connection [default: none]",
        "\"30s\"", quantity::duration, text
    }
    /// Client: time before a connection is opened.
    client_setup: Duration = ClientSetup {
        "client-setup", "TIME",
        "Client's time before it opens a connection: 2ms",
        "\"2ms\"", quantity::duration, text
    }
    /// Client: time before each request.
    client_think: Duration = ClientThink {
        "client-think", "TIME",
        "Client's time before each request: 500us",
        "\"500us\"", quantity::duration, text
    }
    /// Client: time in which the name of a host is looked up; default: the page's.
    client_dns: Duration = ClientDns {
        "client-dns", "TIME",
        "Time in which the name of each host is looked up, before the first request to it: 20ms [default: the recording's, else 0]",
        "\"20ms\"", quantity::duration, text
    }
    /// Client: time per KiB read.
    client_reading: Duration = ClientReading {
        "client-reading", "TIME",
        "Client's time for each KiB it reads: 100us",
        "\"100us\"", quantity::duration, text
    }
    /// Client: time for each file of its disk cache, which has two for an object (`papers/w3c`): one of
    /// headers, one of the body.
    client_file: Duration = ClientFile {
        "client-file", "TIME",
        "Client's time for each file of its disk cache, which has two for each object: 10ms [default: 0]",
        "\"10ms\"", quantity::duration, text
    }
    /// Client: maximum bytes of pipelined requests that leave together.
    client_buffer: NonZeroUsize = ClientBuffer {
        "client-buffer", "SIZE",
        "Output buffer of pipelined requests [default: 1024]",
        "1024", quantity::buffer, text
    }
    /// Client: maximum time for which pipelined requests wait for one another.
    client_flush: Duration = ClientFlush {
        "client-flush", "TIME",
        "Maximum time that pipelined requests wait in the buffer [default: 50ms]",
        "\"50ms\"", quantity::duration, text
    }
    /// Client: explicit flush of pipelined requests.
    client_flush_explicit: Flush = ClientFlushExplicit {
        "client-flush-explicit", "WHEN",
        "Explicit flush of pipelined requests: never, first (after the page's first), or idle (whenever no other \
         can follow before something has arrived; default)",
        "\"first\"", named, word
    }
    /// Client: number of first bytes of each object whose arrival is reported, and whether they are requested
    /// before the rest of any.
    client_first_bytes: FirstBytes = ClientFirstBytes {
        "client-first-bytes", "SIZE",
        "First bytes of every object, requested by ranges before the rest of any: 512 (512/together: no ranges, \
         only report when they have arrived)",
        "512", robot::first_bytes, robot::format_first_bytes
    }
    /// Client: validation of cached objects; default: by entity tags in HTTP/1.1, and by dates in HTTP/1.0,
    /// which has no tags.
    client_validation: Validation = ClientValidation {
        "client-validation", "HOW",
        "Validators of conditional requests: entity-tags, dates, or heads, for HEAD requests (default: entity \
         tags, in HTTP/1.0 dates)",
        "\"heads\"", named, word
    }
    /// Client: accepted content codings; default: no `Accept-Encoding`, bodies uncoded.
    client_codings: Codings = ClientCodings {
        "client-codings", "CODINGS",
        "Accept-Encoding of the client, for a page with real contents: gzip+br (of deflate, gzip, br and zstd)",
        "\"gzip+br\"", Codings::read, text
    }
    /// Client: defect of its HTTP implementation; default: none.
    client_defect: ClientDefect = ClientDefect {
        "client-defect", "DEFECT",
        "Defect of the client: body-with-headers ignores body bytes that arrive together with the end of the headers \
         (default: none)",
        "\"body-with-headers\"", named, word
    }
    /// Client: its TCP stack; default: the scenario's, as the server's.
    client_stack: ClientStack = ClientStack {
        "client-stack", "NAME",
        "TCP stack of the client, where it differs from the server's, with settings of its own: linux+idle=paced+initial-window=4",
        "\"linux-2.0\"", ClientStack::read, text
    }
    /// Client: the browser whose policy it has, for pages with dependencies; default: Chromium.
    browser: BrowserPolicy = Browser {
        "browser", "NAME",
        "Browser whose connections, priorities and order of requests a recorded page has: chromium or firefox [default: chromium]",
        "\"firefox\"", named, word
    }
    /// Client: its behaviour over HTTP/2; default: the browser's.
    http2_client: Http2Client = Http2Client {
        "http2-client", "NAME",
        "Windows, updates and frames of the client over HTTP/2: chromium, firefox, go, or default, which has RFC 9113's defaults \
         [default: the browser's]",
        "\"go\"", named, word
    }
    /// Client: its behaviour over HTTP/3; default: Chromium's.
    http3_client: Http3Client = Http3Client {
        "http3-client", "NAME",
        "Windows, congestion control and datagrams of the client over HTTP/3: chromium, quic-go or quinn [default: chromium]",
        "\"quinn\"", named, word
    }
    /// Server: its behaviour over HTTP/2; default: nginx's.
    http2_server: Http2Server = Http2Server {
        "http2-server", "NAME",
        "Windows, frames and order of the server over HTTP/2: nginx or go [default: nginx, or go where the recording \
         names Caddy]",
        "\"go\"", named, word
    }
    /// Server: its behaviour over HTTP/3; default: nginx's.
    http3_server: Http3Server = Http3Server {
        "http3-server", "NAME",
        "Initial window, congestion control and datagrams of the server over HTTP/3: nginx, quic-go or quinn \
         [default: nginx, or quic-go where the recording names Caddy]",
        "\"quic-go\"", named, word
    }
    /// Server: time after which it closes a connection without requests; default: never.
    server_idle: Duration = ServerIdle {
        "server-idle", "TIME",
        "Server's idle timeout of a connection [default: none]",
        "\"15s\"", quantity::duration, text
    }
    /// Server: maximum number of connections served at a time; default: unlimited. Others wait for one to end.
    server_connections: NonZeroU32 = ServerConnections {
        "server-connections", "N",
        "Maximum number of connections that the server serves at a time; others wait (default: unlimited)",
        "150", quantity::requests, text
    }
    /// Server: share of the page's objects that changed since the client cached them.
    server_changed: Probability = ServerChanged {
        "server-changed", "SHARE",
        "Share of the page's objects that have changed since the client's last visit: 10% (of --visit revalidate) \
         [default: 0%]",
        "\"10%\"", quantity::probability, quantity::print::probability
    }
    /// Server: time per connection, before its first request is read.
    server_setup: Duration = ServerSetup {
        "server-setup", "TIME",
        "Server's time for each connection before it reads the first request: 2ms",
        "\"2ms\"", quantity::duration, text
    }
    /// Server: time per write, except for a header section sent separately: reading the file, copying. A file
    /// mapped into memory is one write; a file read through a buffer takes as many as it needs.
    server_write: Duration = ServerWrite {
        "server-write", "TIME",
        "Server's time for each write except separate header sections, for reading the file and copying: \
         500us",
        "\"500us\"", quantity::duration, text
    }
    /// Server: when the header section of a response leaves.
    server_head: HeadWrite = ServerHead {
        "server-head", "HOW",
        "Header section of a response: together with the body in one write, or apart",
        "\"apart\"", named, word
    }
    /// Server: maximum bytes per write; default: one write per response.
    server_buffer: NonZeroUsize = ServerBuffer {
        "server-buffer", "SIZE",
        "Maximum size of a server's write: 4096 (default: a response is one write)",
        "4096", quantity::buffer, text
    }
    /// Server: when bodies are compressed; default: in advance.
    server_compression: Compression = ServerCompression {
        "server-compression", "WHEN",
        "Compression of text by the server: beforehand, on-the-fly for each response, or none (default: \
         beforehand, for a client that accepts codings)",
        "\"on-the-fly\"", named, word
    }
    /// Server: maximum number of requests per connection; default: unlimited.
    server_requests: NonZeroU32 = ServerRequests {
        "server-requests", "N",
        "Maximum number of requests on a connection: 5 (default: unlimited)",
        "5", quantity::requests, text
    }
    /// Server: connection closing.
    server_close: Closing = ServerClose {
        "server-close", "HOW",
        "Close of a connection by the server: careful (half-close first), or naive (both directions, which loses \
         responses)",
        "\"naive\"", named, word
    }
    /// DHTTP settings of client and server; default: as in the paper.
    dhttp: DhttpProfile = Dhttp {
        "dhttp", "HOW",
        "DHTTP profile of client and server: paper (default) or internet, and extensions or parameters: \
         internet+parts+loss=2%",
        "\"internet+parts\"", DhttpProfile::read, text
    }
    /// Whether Nagle's algorithm is on, at both ends (`TCP_NODELAY` turns it off); default: the stack's.
    nagle: bool = Nagle {
        "nagle", "ON|OFF",
        "Nagle's algorithm at both ends, on or off (default: as the stack has it)",
        "\"off\"", |text| Ok(named::<Switch>(text)?.is_on()), |is_on| word(Switch::of(is_on))
    }
    /// Send buffer of either program (`SO_SNDBUF`); default: the stack's.
    send_buffer: Bytes = SendBuffer {
        "send-buffer", "SIZE",
        "Send buffer of a program: 8192 (default: as the stack has it)",
        "8192", quantity::send_buffer, |size| text(size.get())
    }
    /// Unsent bytes in a send buffer from which on a program waits (`TCP_NOTSENT_LOWAT`), at both ends; default: any number.
    unsent_limit: Bytes = UnsentLimit {
        "unsent-limit", "SIZE",
        "Unsent bytes in a send buffer from which on a program waits, as by TCP_NOTSENT_LOWAT (default: no limit)",
        "16384", quantity::send_buffer, |size| text(size.get())
    }
    /// Receive buffer of either program, and so the maximum window (`SO_RCVBUF`); default: the stack's.
    receive_buffer: Bytes = ReceiveBuffer {
        "receive-buffer", "SIZE",
        "Receive buffer of a program, which is its maximum window: 20000 (default: as the stack has it)",
        "20000", quantity::send_buffer, |size| text(size.get())
    }
    /// Initial congestion window in segments, at both ends; default: the stack's.
    initial_window: NonZeroU32 = InitialWindow {
        "initial-window", "N",
        "Initial congestion window in segments; a large one is a stack without slow start (default: as the stack has it)",
        "4", session::initial_window, text
    }
    /// Congestion window after idle, at both ends; default: the stack's.
    idle: IdleWindow = Idle {
        "idle", "POLICY",
        "Congestion window after an idle retransmission timeout: kept, restarted, decayed (halved for each timeout) or \
         paced (kept, and sent at the last rate) (default: as the stack has it)",
        "\"paced\"", named, word
    }
    /// Idle time after which the window changes, at both ends; default: a retransmission timeout.
    idle_after: Duration = IdleAfter {
        "idle-after", "TIME",
        "Idle time that counts for --idle: 60s (default: the retransmission timeout)",
        "\"60s\"", session::idle_after, text
    }
    /// Minimum retransmission timeout, at both ends; default: the stack's.
    rto_min: Duration = RtoMin {
        "rto-min", "TIME",
        "Minimum retransmission timeout (default: as the stack has it)",
        "\"200ms\"", session::rto, text
    }
    /// Initial retransmission timeout, at both ends; default: the stack's.
    rto_initial: Duration = RtoInitial {
        "rto-initial", "TIME",
        "Retransmission timeout before the first measurement (default: as the stack has it)",
        "\"1s\"", session::rto, text
    }
}

impl Programs {
    /// Flush policy of pipelined requests; `base` has the defaults.
    pub fn pipelining(&self, base: Pipelining) -> Pipelining {
        Pipelining {
            buffer: self.client_buffer.unwrap_or(base.buffer),
            flush_after: self.client_flush.unwrap_or(base.flush_after),
            flush: self.client_flush_explicit.unwrap_or(base.flush),
        }
    }

    /// Division of responses into writes; `base` has the defaults.
    pub fn writes(&self, base: WritePolicy) -> WritePolicy {
        let head_apart = self.server_head.map(|head| match head {
            HeadWrite::Together => false,
            HeadWrite::Apart => true,
        });
        WritePolicy {
            head_apart: head_apart.unwrap_or(base.head_apart),
            buffer: self.server_buffer.or(base.buffer),
            gather: base.gather,
        }
    }

    /// The stack with the settings of sockets and routes, which override it.
    pub fn sockets(&self, stack: &Stack) -> Stack {
        self.socket_settings().applied_to(stack)
    }

    /// The settings for today's web if `is_of_today`: its programs turn Nagle's algorithm off, unless it is set: Chromium,
    /// net/socket (`SetNoDelay`); nginx, `tcp_nodelay`.
    #[must_use]
    pub fn of_web(&self, is_of_today: bool) -> Self {
        Self { nagle: self.nagle.or(is_of_today.then_some(false)), ..*self }
    }

    const fn socket_settings(&self) -> SocketSettings {
        let Self {
            nagle,
            send_buffer,
            unsent_limit,
            receive_buffer,
            initial_window,
            idle,
            rto_min,
            rto_initial,
            ..
        } = *self;
        SocketSettings {
            nagle,
            send_buffer,
            unsent_limit,
            receive_buffer,
            initial_window,
            idle,
            rto_min,
            rto_initial,
        }
    }

    /// Number of pages of a session, at least 1.
    pub fn pages(&self) -> usize {
        self.client_pages.map_or(1, |pages| pages.get() as usize)
    }

    /// The values that are set, for a reader of results: `client-think 2ms, nagle off`; `None` if there are
    /// none.
    pub fn described(&self) -> Option<String> {
        self.described_without(&[])
    }

    /// The same without these keys.
    pub fn described_without(&self, keys: &[ProgramKey]) -> Option<String> {
        let settings = self.reported().filter(|(key, _)| !keys.contains(key));
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key} {value}")).collect();
        (!settings.is_empty()).then(|| settings.join(", "))
    }
}

/// Settings of an end's sockets and routes; `None` leaves the stack's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SocketSettings {
    nagle: Option<bool>,
    send_buffer: Option<Bytes>,
    unsent_limit: Option<Bytes>,
    receive_buffer: Option<Bytes>,
    initial_window: Option<NonZeroU32>,
    idle: Option<IdleWindow>,
    rto_min: Option<Duration>,
    rto_initial: Option<Duration>,
}

impl SocketSettings {
    /// The stack with these settings, which override it.
    fn applied_to(self, stack: &Stack) -> Stack {
        let mut stack = stack.clone();
        stack.nagle = self.nagle.unwrap_or(stack.nagle);
        stack.receive_buffer = self.receive_buffer.or(stack.receive_buffer);
        if let Some(window) = self.initial_window {
            stack.initial_window = u16::try_from(window.get()).unwrap_or(u16::MAX);
        }
        let packets = &mut stack.packets;
        packets.send_buffer = self.send_buffer.unwrap_or(packets.send_buffer);
        packets.unsent_limit = self.unsent_limit.or(packets.unsent_limit);
        packets.rto.min = self.rto_min.unwrap_or(packets.rto.min);
        packets.rto.initial = self.rto_initial.unwrap_or(packets.rto.initial).max(packets.rto.min);
        packets.rto.max = packets.rto.max.max(packets.rto.initial);
        if let Some(window) = self.idle {
            (stack.idle, packets.restart) = window.policy(packets.restart);
        }
        stack
    }
}

impl From<SocketSettings> for Programs {
    fn from(settings: SocketSettings) -> Self {
        let SocketSettings {
            nagle,
            send_buffer,
            unsent_limit,
            receive_buffer,
            initial_window,
            idle,
            rto_min,
            rto_initial,
        } = settings;
        Self {
            nagle,
            send_buffer,
            unsent_limit,
            receive_buffer,
            initial_window,
            idle,
            rto_min,
            rto_initial,
            ..Self::default()
        }
    }
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

fn word(setting: impl NamedSetting) -> String {
    setting.name().to_owned()
}

impl fmt::Display for ProgramKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_values_hold_and_others_stay_default() {
        let mut programs = Programs::default();
        for (key, text) in [
            (ProgramKey::ServerHead, "apart"),
            (ProgramKey::ServerBuffer, "4kib"),
            (ProgramKey::ClientFlush, "1s"),
            (ProgramKey::ClientFlushExplicit, "first"),
            (ProgramKey::ClientValidation, "heads"),
            (ProgramKey::ServerClose, "naive"),
            (ProgramKey::Nagle, "off"),
        ] {
            programs.set(key, text).unwrap();
        }
        let writes = programs.writes(WritePolicy::gathering());
        assert_eq!(writes.buffer, NonZeroUsize::new(4_096));
        assert!(writes.head_apart && writes.gather == WritePolicy::gathering().gather);
        let pipelining = programs.pipelining(Pipelining::default());
        assert_eq!(pipelining.flush_after, Duration::from_secs(1));
        assert_eq!((pipelining.buffer, pipelining.flush), (Pipelining::default().buffer, Flush::First));
        let described = "client-flush 1s, client-flush-explicit first, client-validation heads, server-head apart, server-buffer 4096, server-close naive, nagle off";
        assert_eq!(programs.described().as_deref(), Some(described));
        assert_eq!(Programs::default().described(), None);
    }

    #[test]
    fn unknown_closing_is_rejected_with_the_known_ones() {
        let error = Programs::default().set(ProgramKey::ServerClose, "carful").unwrap_err();
        assert!(error.to_string().contains("careful"), "{error}");
    }
}
