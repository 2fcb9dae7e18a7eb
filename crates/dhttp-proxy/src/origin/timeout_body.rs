//! A body with a timeout: it ends with an error if the origin stalls for too long within it.
//!
//! The caller's timeout covers the time until a response begins.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::OriginError;
use super::client::ResponseBody;

/// A body, and the timeout of its sender.
pub(super) struct TimeoutBody {
    body: ResponseBody,
    timeout: Duration,
    silence: Pin<Box<Sleep>>,
    authority: String,
}

impl TimeoutBody {
    /// Creates one; call it inside a runtime.
    pub(super) fn new(body: ResponseBody, timeout: Duration, authority: &str) -> Self {
        Self { body, timeout, silence: Box::pin(sleep(timeout)), authority: authority.to_owned() }
    }
}

impl Body for TimeoutBody {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let deadline = Instant::now() + self.timeout;
            self.silence.as_mut().reset(deadline);
            return Poll::Ready(frame);
        }
        ready!(self.silence.as_mut().poll(context));
        let reason = format!(
            "{} has sent nothing for {} s in the middle of a response",
            self.authority,
            self.timeout.as_secs_f32()
        );
        Poll::Ready(Some(Err(OriginError::Silent(reason))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
