//! Client of the DevTools protocol over a pipe: JSON messages, each ended by a zero byte
//! (content/browser/devtools/devtools_pipe_handler.cc).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use serde_json::{Value, json};
use wire::{Duration, Time};

/// A browser's end of the protocol.
#[derive(Debug)]
pub(super) struct DevTools {
    to: File,
    from: File,
    clock: Clock,
    last_id: u64,
    /// Bytes of a message that is not complete.
    begun: Vec<u8>,
    /// Messages not handled yet.
    messages: VecDeque<Value>,
}

/// Maximum size of a message: those of a page without bodies are far smaller.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

impl DevTools {
    pub(super) const fn new(to: File, from: File, clock: Clock) -> Self {
        Self { to, from, clock, last_id: 0, begun: Vec::new(), messages: VecDeque::new() }
    }

    /// Calls a method, and returns its result. Events that arrive meanwhile are stored.
    ///
    /// # Errors
    /// A sentence: the browser has ended, is silent until the deadline, or refuses the call.
    pub(super) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
        deadline: Time,
    ) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let bytes = [message.to_string().as_bytes(), b"\0"].concat();
        self.to.write_all(&bytes).map_err(|error| format!("it does not take {method}: {error}"))?;
        let mut others = VecDeque::new();
        let response = loop {
            let Some(message) = self.next(deadline)? else {
                return Err(format!("it did not respond to {method} in time"));
            };
            if message["id"].as_u64() == Some(id) {
                break message;
            }
            others.push_back(message);
        };
        others.append(&mut self.messages);
        self.messages = others;
        match response["error"]["message"].as_str() {
            Some(reason) => Err(format!("it refuses {method}: {reason}")),
            None => Ok(response["result"].clone()),
        }
    }

    /// The next message; `None` if none arrives until the deadline.
    ///
    /// # Errors
    /// A sentence: the browser has ended, or sends what is no message.
    pub(super) fn next(&mut self, deadline: Time) -> Result<Option<Value>, String> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Ok(Some(message));
            }
            let timeout = deadline.since(self.clock.now());
            if timeout == Duration::ZERO {
                return Ok(None);
            }
            let mut descriptors = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
            let timeout = std::time::Duration::from_nanos(timeout.as_nanos());
            match ppoll(&mut descriptors, Some(TimeSpec::from(timeout)), None) {
                Ok(0) => return Ok(None),
                Ok(_) => self.receive()?,
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(format!("its pipe fails: {}", error.desc())),
            }
        }
    }

    fn receive(&mut self) -> Result<(), String> {
        let mut buffer = vec![0; 1 << 16];
        let length = self.from.read(&mut buffer).map_err(|error| format!("its pipe fails: {error}"))?;
        if length == 0 {
            return Err("it ended".to_owned());
        }
        let mut rest = buffer.get(..length).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let (message, after) = rest.split_at(end);
            self.begun.extend_from_slice(message);
            let message = serde_json::from_slice(&std::mem::take(&mut self.begun));
            self.messages.push_back(message.map_err(|error| format!("it sends no JSON: {error}"))?);
            rest = after.get(1..).unwrap_or_default();
        }
        self.begun.extend_from_slice(rest);
        if self.begun.len() > MAX_MESSAGE_BYTES {
            return Err(format!("it sends a message of more than {MAX_MESSAGE_BYTES} bytes"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client, and the browser's ends of its pipes.
    fn connected() -> (DevTools, File, File) {
        let [(from_client, to_browser), (from_browser, to_client)] = [(); 2]
            .map(|()| nix::unistd::pipe().unwrap())
            .map(|(read, write)| (File::from(read), File::from(write)));
        (DevTools::new(to_browser, from_browser, Clock::start()), from_client, to_client)
    }

    fn soon(devtools: &DevTools) -> Time {
        devtools.clock.now() + Duration::from_secs(20)
    }

    #[test]
    fn events_before_a_response_are_stored_in_order() {
        let (mut devtools, mut browser, mut out) = connected();
        out.write_all(b"{\"method\":\"a\"}\0{\"method\":\"b\"}\0{\"id\":1,\"result\":{\"x\":7}}\0{\"met")
            .unwrap();
        let deadline = soon(&devtools);
        let result = devtools.call(Some("s"), "Page.enable", json!({}), deadline).unwrap();
        assert_eq!(result["x"], 7);
        out.write_all(b"hod\":\"c\"}\0").unwrap();
        let names = [(); 3].map(|()| devtools.next(deadline).unwrap().unwrap()["method"].clone());
        assert_eq!(names, ["a", "b", "c"]);
        let mut sent = [0; 200];
        let length = browser.read(&mut sent).unwrap();
        assert!(
            sent[..length].ends_with(b"\0") && String::from_utf8_lossy(&sent).contains("\"sessionId\":\"s\"")
        );
    }

    #[test]
    fn regress_a_browser_that_ends_refuses_or_is_silent_is_a_sentence() {
        let (mut devtools, browser, mut out) = connected();
        out.write_all(b"{\"id\":1,\"error\":{\"message\":\"no such page\"}}\0").unwrap();
        let deadline = soon(&devtools);
        let refused = devtools.call(None, "Page.navigate", json!({}), deadline).unwrap_err();
        assert_eq!(refused, "it refuses Page.navigate: no such page");
        let past = devtools.clock.now();
        assert_eq!(devtools.next(past), Ok(None));
        out.write_all(b"nonsense\0").unwrap();
        assert!(devtools.next(deadline).unwrap_err().starts_with("it sends no JSON"));
        drop((browser, out));
        assert_eq!(devtools.next(deadline).unwrap_err(), "it ended");
    }
}
