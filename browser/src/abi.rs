//! Functions that JavaScript calls: memory for a request, the call, and the reply's place.

use std::cell::RefCell;

use crate::session::Session;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static REPLY: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the address of `length` bytes for a request.
#[unsafe(no_mangle)]
pub extern "C" fn request(length: usize) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        request.clear();
        request.resize(length, 0);
        request.as_mut_ptr()
    })
}

/// Handles the request. Returns the reply's length in bytes; negative for an error, whose sentence is the reply.
#[unsafe(no_mangle)]
pub extern "C" fn handle() -> i32 {
    let request = REQUEST.take();
    let handled = SESSION.with_borrow_mut(|session| session.handle(&request));
    let sign = if handled.is_ok() { 1 } else { -1 };
    let reply = handled.unwrap_or_else(|sentence| sentence);
    let length = i32::try_from(reply.len()).unwrap_or(i32::MAX);
    REPLY.set(reply);
    sign * length
}

/// Returns the address of the reply.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> *const u8 {
    REPLY.with_borrow(|reply| reply.as_ptr())
}
