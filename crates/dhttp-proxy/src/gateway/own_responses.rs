//! Responses of the gateway itself: its `proxy.pac`, and refusals.
//!
//! [`http1::gateway`] decides which.

use http1::message::{Fields, Method, RequestHead, ResponseHead, Version};

use super::blocking_exchange::{BlockingExchange, ExchangeEnd, conclude};
use super::reply::{Reply, ReplyContext, Size};
use dhttp::counters::count_shared;
use dhttp::log::Channel;

impl BlockingExchange<'_> {
    /// Sends a response of the gateway itself.
    pub(super) fn own(&mut self, head: &RequestHead, requested: ReplyContext<'_>, path: &str) -> ExchangeEnd {
        if path != "/proxy.pac" {
            let why =
                "this is a proxy: set it as your program's proxy for http, or give browsers its /proxy.pac";
            return self.refuse(Some((head, requested)), if path == "*" { 200 } else { 404 }, why);
        }
        let at = self.stream().local_addr().unwrap_or(self.shared.address);
        let script = format!(
            "function FindProxyForURL(url, host) {{\n  if (url.substring(0, 5) == \"http:\") return \"PROXY {at}; DIRECT\";\n  \
             return \"DIRECT\";\n}}\n"
        );
        self.say(Some((head, requested)), 200, "application/x-ns-proxy-autoconfig", &script)
    }

    /// Sends a refusal, or another sentence; `None` as the request: it was invalid.
    pub(super) fn refuse(
        &mut self,
        requested: Option<(&RequestHead, ReplyContext<'_>)>,
        status: u16,
        why: &str,
    ) -> ExchangeEnd {
        self.say(requested, status, "text/plain; charset=utf-8", &format!("{why}\n"))
    }

    /// Sends a response of the gateway itself.
    fn say(
        &mut self,
        requested: Option<(&RequestHead, ReplyContext<'_>)>,
        status: u16,
        kind: &str,
        text: &str,
    ) -> ExchangeEnd {
        count_shared(&self.shared.counters.own);
        let mut fields = Fields::new();
        // Both fields are constant and valid.
        let _ = fields.push("Content-Type", kind).and_then(|()| fields.push("Cache-Control", "no-store"));
        let head = ResponseHead { version: Version::Http11, status, fields };
        let get = Method::Get;
        let nobody = ReplyContext { method: &get, version: Version::Http11, stays: false };
        let to = requested.map_or(nobody, |(_, requested)| requested);
        if to.stays {
            self.skip_end();
        }
        let mut reply = Reply::begin(self.stream(), to, &head, Size::Known(text.len() as u64));
        let ended = reply.part(text.as_bytes()).and_then(|()| reply.end(&Fields::new()));
        if let (Some((request, _)), Ok((_, bytes))) = (requested, &ended) {
            self.log(request, status, *bytes, Channel::TcpClient);
        }
        conclude(&ended)
    }
}
