//! Fields from one kind of head to another.
//!
//! Not which of them: that is for whoever copies.

use http1::message::Fields;

/// Adds a field that was read elsewhere; one that could not be sent again as it came is left out.
pub fn copy(fields: &mut Fields, name: &[u8], value: &[u8]) {
    if let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value)) {
        // It says by itself that it cannot be sent.
        let _ = fields.push(name, value);
    }
}
