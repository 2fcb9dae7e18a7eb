//! Sessions: several pages with pauses, over connections that either end may close meanwhile; and a client's defect.

use http1::site::Site;
use roundtrip_fetch::{PageEvent, Plan, PlannedObject, Shape};
use wire::{Bytes, Duration, Time};

use super::back_to_back::{Listener, SMALL_CLUSTER, plan};

const PAUSE: Duration = Duration::from_secs(5);

/// Three pages of three objects.
fn session(idle: Option<Duration>) -> Plan {
    let object = |index: usize| PlannedObject::get(&Site::path(index % 3), None);
    let objects = (0..9).map(object).collect();
    let (begins_at, pages_before) = (6, 2);
    Plan { begins_at, pages_before, pause: PAUSE, idle, ..Plan::new("server.test", objects, Shape::Http11) }
}

fn listener(server_idle: Duration) -> Listener {
    let mut listener = Listener { processing: Duration::from_millis(1), ..Listener::new(&SMALL_CLUSTER) };
    listener.config.timeout.idle = server_idle;
    listener
}

const NEVER: Duration = Duration::from_secs(3_600);

#[test]
fn each_page_begins_a_pause_after_the_one_before() {
    let fetched = listener(NEVER).fetch(session(None));
    assert_eq!((fetched.connections(), fetched.completed().len(), fetched.failures().len()), (1, 9, 0));
    let sent: Vec<Time> = fetched
        .reports
        .iter()
        .filter(|report| matches!(report.event, PageEvent::RequestSent { object, .. } if object % 3 == 0))
        .map(|report| report.at)
        .collect();
    let page = Duration::from_millis(3);
    assert_eq!(sent, [Time::ZERO, Time::ZERO + page + PAUSE, Time::ZERO + (page + PAUSE) * 2]);
}

#[test]
fn an_idle_connection_is_closed_by_either_end_and_the_next_page_opens_another() {
    let timeout = Duration::from_secs(2);
    for (client, server) in [(Some(timeout), NEVER), (None, timeout), (Some(timeout), timeout)] {
        let fetched = listener(server).fetch(session(client));
        assert_eq!(fetched.connections(), 3, "{client:?} {server}");
        assert_eq!((fetched.completed().len(), fetched.failures().len()), (9, 0));
    }
    assert_eq!(listener(NEVER).fetch(session(Some(PAUSE))).connections(), 1, "as long as the pause");
}

/// "Data sent in the same segment as the HTTP headers is ignored" (`papers/p-http#section-2-5`).
#[test]
fn paper_a_client_that_ignores_data_with_the_headers_needs_a_server_that_flushes_them() {
    let objects = [6_651, 3_883].map(|size| Bytes::new(size).get());
    let defect = || Plan { ignores_body_with_headers: true, ..plan(&objects, Shape::Http10KeepAlive) };
    let mut listener = Listener::new(&objects);
    let without_flush = listener.fetch(defect());
    assert_eq!(without_flush.failures().iter().map(|(object, _)| *object).collect::<Vec<_>>(), [0, 1]);
    listener.config.writes.head_apart = true;
    assert_eq!(listener.fetch(defect()).completed(), [0, 1]);
}
