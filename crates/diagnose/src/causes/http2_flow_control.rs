//! A sender of HTTP/2 whose window is used up: it waits for WINDOW_UPDATE, whatever TCP allows.
//!
//! **Rule**: the sender's DATA had used up the window of its stream or of the connection, and it continued after the frame
//! that opened it again. **Evidence**: the packets of both, and the window's size. **Refuted by**: a connection whose
//! beginning was not captured, so that windows are not known; TLS, which hides them.

use http2::window::WindowLimit;
use wire::Duration;

use super::opening;
use crate::account::Share;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::gap::{Gap, GapEnd, millis};
use crate::ruling::Ruling;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The sender had used up HTTP/2's flow-control window and waited for WINDOW_UPDATE.",
    fixes: &[Fix {
        party: Party::ReceivingApplication,
        change: "a larger window than rate times round trip: gRPC-Go WithInitialWindowSize and WithInitialConnWindowSize, \
                 Go http2.Transport MaxReceiveBufferPerStream, Node initialWindowSize and setLocalWindowSize, nginx \
                 http2_body_preread_size, Java flowControlWindow, Python h2 initial_window_size",
    }],
    is_fault: true,
    min_duration: Duration::from_millis(1),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let blocked = gap.messages.blocked?;
    let is_wait = matches!(gap.end, GapEnd::Data) && gap.continues() && blocked.updated.is_some();
    let updated = blocked.updated?;
    if !is_wait || updated.at < gap.from.at || gap.is_flowing() {
        return None;
    }
    let saving = Some(opening::saved_with_room(gap));
    let cause = Cause::Http2FlowControl;
    Some(Ruling { saving, share: Share::Stall(cause), ..Ruling::all(gap, cause, evidence) })
}

fn evidence(gap: &Gap) -> String {
    let Some(blocked) = gap.messages.blocked else { return String::new() };
    let window = match blocked.limit {
        WindowLimit::Stream(stream) => format!("window of stream {stream}"),
        WindowLimit::Connection => "window of the connection".to_owned(),
    };
    format!(
        "the {} had used up the {window} of HTTP/2, {} bytes (packet {}), and continued (packet {}) after WINDOW_UPDATE (packet \
         {}), {} later; TCP's windows allowed more",
        gap.side,
        blocked.size,
        blocked.since.frame,
        gap.to.frame,
        blocked.updated.map_or(0, |mark| mark.frame),
        millis(gap.duration())
    )
}
