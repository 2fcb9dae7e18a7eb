//! A browser's policy: how many connections it opens, and the class of each request.

use http2::Profile;
use page::{Host, Kind, Object, Page, Priority};
use wire::Duration;

/// A browser's policy: connections, and when requests leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Browser {
    /// Its name.
    pub name: &'static str,
    /// Maximum number of connections to an origin; over HTTP/2, while none is open.
    pub connections_per_origin: usize,
    /// Maximum number of connections to all origins.
    pub connections: usize,
    /// Whether a second connection is opened with the first of a visit.
    pub opens_second: bool,
    /// Time after which another connection is opened beside the first to an origin, if that is not open.
    pub backup_after: Duration,
    /// Maximum number of delayable requests in flight, of those whose server has no priorities.
    pub delayable: usize,
    /// Maximum number of those to one origin.
    pub delayable_to_origin: usize,
    /// Pacing of its requests over HTTP/1.1, if any.
    pub pacing: Option<Pacing>,
    /// Number of requests in flight at which delayable ones are held back, while there are objects before the document's body.
    pub before_body: usize,
    /// Number of requests of medium priority in flight at which others of them are held back, too.
    pub boosted_before_body: usize,
    /// Classes of its requests.
    pub classes: Classes,
    /// Behaviour over HTTP/2.
    pub http2: Profile,
}

/// Pacing of a browser's requests over HTTP/1.1. Each takes a token; those of a priority below medium wait for theirs while more
/// connections than these are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Number of connections in use, to all origins, up to which none waits.
    pub connections: usize,
    /// Number of tokens that can be saved.
    pub burst: u32,
    /// Time in which another token is there.
    pub interval: Duration,
}

/// Rules by which requests have classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// By the recorded priorities. Delayable ones wait for scripts that the parser waits for, and with them style sheets
    /// ([`Page::before_body`]), over every protocol.
    Priorities,
    /// By the type. Whatever is neither leader nor unblocked waits for every style sheet and script that rendering waits for
    /// ([`Page::of_head`]), unless HTTP/2 or HTTP/3 carries it.
    Leaders,
}

/// Class of a request: when it leaves, and in which order its response is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestClass {
    /// Its priority.
    pub priority: Priority,
    /// Whether delayable requests wait for its response.
    pub is_before_body: bool,
    /// Whether it waits for these.
    pub is_delayable: bool,
    /// Whether it may leave before others of those.
    pub is_boosted: bool,
}

impl Browser {
    /// Chromium: net/socket/client_socket_pool_manager.cc (`g_max_sockets_per_group`, `g_max_sockets_per_pool`);
    /// net/socket/client_socket_pool.cc (`ConnectRetryInterval`);
    /// chrome/browser/predictors/loading_predictor.cc (the second connection);
    /// services/network/resource_scheduler (`kMaxNumDelayableRequestsPerClient`, `kMaxNumDelayableRequestsPerHostPerClient`);
    /// third_party/blink/renderer/platform/loader/fetch/resource_load_scheduler.cc (the tight limit);
    /// third_party/blink/common/features.cc (`kBoostImagePriorityTightMediumLimit`).
    pub const CHROMIUM: Self = Self {
        name: "chromium",
        connections_per_origin: 6,
        connections: 256,
        opens_second: true,
        backup_after: Duration::from_millis(250),
        delayable: 10,
        delayable_to_origin: 6,
        pacing: None,
        before_body: 2,
        boosted_before_body: 2,
        classes: Classes::Priorities,
        http2: Profile::CHROMIUM,
    };

    /// Firefox: modules/libpref/init/all.js (`network.http.max-persistent-connections-per-server`, `network.http.max-connections`,
    /// `network.http.connection-retry-timeout`; `network.http.pacing.requests`: `min-parallelism`, `burst`, `hz`, by
    /// netwerk/base/EventTokenBucket.cpp);
    /// netwerk/protocol/http/nsHttpConnectionMgr.cpp (`TryDispatchTransaction`): a request that is neither leader nor unblocked waits
    /// for every leader of its document, but not if a connection of HTTP/2 carries it. Leaders are style sheets and scripts of
    /// the head, unblocked are other scripts and data (`nsIClassOfService`; dom/script/ScriptLoader.cpp,
    /// layout/style/Loader.cpp, dom/xhr/XMLHttpRequestMainThread.cpp). Urgencies: nsHttpHandler.cpp (`UrgencyFromCoSFlags`).
    pub const FIREFOX: Self = Self {
        name: "firefox",
        connections_per_origin: 6,
        connections: 900,
        opens_second: false,
        backup_after: Duration::from_millis(250),
        delayable: usize::MAX,
        delayable_to_origin: usize::MAX,
        pacing: Some(Pacing { connections: 6, burst: 10, interval: Duration::from_micros(12_500) }),
        before_body: 0,
        boosted_before_body: 0,
        classes: Classes::Leaders,
        http2: Profile::FIREFOX,
    };

    /// Every browser.
    pub const ALL: [Self; 2] = [Self::CHROMIUM, Self::FIREFOX];

    /// Whether objects before the body hold others back before they are requested themselves: the parser has not reached the body.
    pub const fn holds_before_request(&self) -> bool {
        matches!(self.classes, Classes::Priorities)
    }

    /// Class of each object's request; `is_multiplexed` is whether HTTP/2 or HTTP/3 carries requests to a host.
    pub fn classes(&self, page: &Page, is_multiplexed: impl Fn(&Host) -> bool) -> Vec<RequestClass> {
        let of_kind = |(index, object): (usize, &Object), is_leader: bool| match object.kind {
            _ if index == 0 => (Priority::Highest, false),
            _ if is_leader => (Priority::High, false),
            Kind::Script | Kind::Data | Kind::StyleSheet => (Priority::Medium, false),
            Kind::Document => (Priority::Low, false),
            Kind::Font | Kind::Image | Kind::Media | Kind::Other => {
                (Priority::Low, !is_multiplexed(&page.hosts[object.host]))
            }
        };
        let objects = page.objects.iter().enumerate();
        match self.classes {
            Classes::Priorities => {
                let (head, boosted) = (page.before_body(), page.of_medium_priority());
                let class = |(index, object): (usize, &Object)| RequestClass {
                    priority: object.priority,
                    is_before_body: head.contains(&index),
                    is_delayable: object.is_delayable(),
                    is_boosted: boosted.contains(&index),
                };
                objects.map(class).collect()
            }
            Classes::Leaders => {
                let head = page.of_head();
                let class = |(index, object): (usize, &Object)| {
                    let is_before_body = head.contains(&index);
                    let (priority, is_delayable) = of_kind((index, object), is_before_body);
                    RequestClass { priority, is_before_body, is_delayable, is_boosted: false }
                };
                objects.map(class).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use page::OfferedProtocols;

    use super::*;

    /// A document, a style sheet, a script of the head, another script, and an image; the last on a host of its own.
    fn page() -> Page {
        let object = |kind, is_render_blocking, host| Object {
            kind,
            is_render_blocking,
            host,
            after: vec![page::Dependency::on_end(0)],
            ..Object::sized(wire::Bytes::new(1_000))
        };
        let document = Object { after: Vec::new(), ..object(Kind::Document, true, 0) };
        let objects = vec![
            document,
            object(Kind::StyleSheet, true, 0),
            object(Kind::Script, false, 0),
            object(Kind::Image, false, 1),
        ];
        let old = Host { protocols: OfferedProtocols::HTTP1, ..Host::new("old") };
        Page { hosts: vec![Host::new("www"), old], ..Page::of("page", objects) }
    }

    #[test]
    fn firefox_lets_images_wait_for_style_sheets_but_over_http2() {
        let page = page();
        let delayable = |browser: Browser, http2: bool| {
            let classes = browser.classes(&page, |host| http2 && host.protocols.http2);
            let of = |is: fn(&RequestClass) -> bool| classes.iter().map(is).collect::<Vec<_>>();
            (of(|class| class.is_before_body), of(|class| class.is_delayable))
        };
        let (head, images) = (vec![false, true, false, false], vec![false, false, false, true]);
        for http2 in [false, true] {
            assert_eq!(delayable(Browser::FIREFOX, http2), (head.clone(), images.clone()));
            // A style sheet alone does not keep Chromium's parser from the body.
            assert_eq!(delayable(Browser::CHROMIUM, http2).0, [false; 4]);
        }
        let classes = Browser::FIREFOX.classes(&page, |_| true);
        assert!(classes.iter().all(|class| !class.is_delayable), "HTTP/2 carries all");
        let priorities: Vec<Priority> = classes.iter().map(|class| class.priority).collect();
        assert_eq!(priorities, [Priority::Highest, Priority::High, Priority::Medium, Priority::Low]);
    }
}
