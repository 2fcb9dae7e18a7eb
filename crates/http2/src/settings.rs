//! SETTINGS (RFC 9113, section 6.5) and error codes (section 7).

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its identifier.
    pub id: u16,
    /// Its value.
    pub value: u32,
}

impl Setting {
    /// SETTINGS_HEADER_TABLE_SIZE.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// SETTINGS_ENABLE_PUSH.
    pub const ENABLE_PUSH: u16 = 2;
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// SETTINGS_MAX_FRAME_SIZE.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// SETTINGS_MAX_HEADER_LIST_SIZE.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;

    /// Reads the payload of a SETTINGS frame; an incomplete setting at its end is skipped.
    pub fn read(payload: &[u8]) -> impl Iterator<Item = Self> {
        payload.as_chunks::<6>().0.iter().map(|&[a, b, c, d, e, f]| Self {
            id: u16::from_be_bytes([a, b]),
            value: u32::from_be_bytes([c, d, e, f]),
        })
    }
}

/// Returns the name of an error code.
pub const fn error_name(code: u32) -> &'static str {
    match code {
        0 => "NO_ERROR",
        1 => "PROTOCOL_ERROR",
        2 => "INTERNAL_ERROR",
        3 => "FLOW_CONTROL_ERROR",
        4 => "SETTINGS_TIMEOUT",
        5 => "STREAM_CLOSED",
        6 => "FRAME_SIZE_ERROR",
        7 => "REFUSED_STREAM",
        8 => "CANCEL",
        9 => "COMPRESSION_ERROR",
        10 => "CONNECT_ERROR",
        11 => "ENHANCE_YOUR_CALM",
        12 => "INADEQUATE_SECURITY",
        13 => "HTTP_1_1_REQUIRED",
        _ => "unknown error",
    }
}

/// Returns the error code of an RST_STREAM or GOAWAY frame with this payload.
pub fn error_code(kind: crate::frame::FrameType, payload: &[u8]) -> Option<u32> {
    let code = match kind {
        crate::frame::FrameType::Reset => payload.first_chunk::<4>()?,
        crate::frame::FrameType::GoAway => payload.get(4..)?.first_chunk::<4>()?,
        _ => return None,
    };
    Some(u32::from_be_bytes(*code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameType;

    #[test]
    fn settings_and_codes_are_read() {
        let payload = [0, 4, 0, 0, 0xff, 0xff, 0, 3, 0, 0, 0, 100, 9];
        let read: Vec<_> = Setting::read(&payload).map(|setting| (setting.id, setting.value)).collect();
        assert_eq!(read, [(Setting::INITIAL_WINDOW_SIZE, 65_535), (Setting::MAX_CONCURRENT_STREAMS, 100)]);
        let code = error_code(FrameType::GoAway, &[0, 0, 0, 5, 0, 0, 0, 11]);
        assert_eq!(code.map(error_name), Some("ENHANCE_YOUR_CALM"));
        assert_eq!(error_code(FrameType::Reset, &[0, 0]), None);
    }
}
