//! Header fields copied from one kind of message to another.
//!
//! Not the choice of fields: that is the caller's.

use http1::message::Fields;

/// Adds a field that was read elsewhere; one that cannot be sent unchanged is left out.
pub fn copy(fields: &mut Fields, name: &[u8], value: &[u8]) {
    if let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) {
        // `push` refuses a field that cannot be sent.
        let _ = fields.push(name, value);
    }
}
