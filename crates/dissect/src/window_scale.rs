//! Window scale of a side whose SYN does not show it.

/// Returns the shift of windows where the SYN was cut (to 68 bytes), by the window in it and the `next` one: that is as wide, except
/// for the `received` bytes that may have used it. `None` if several fit, or none.
pub fn by_first_windows(first: u16, next: u16, received: u64) -> Option<u8> {
    /// The largest shift (RFC 7323).
    const MAX_SCALE: u8 = 14;
    let first = u64::from(first);
    let mut fits = (0..=MAX_SCALE).filter(|bits| {
        let (window, unit) = (u64::from(next) << bits, 1_u64 << bits);
        window < first + unit && window + unit + received > first
    });
    fits.next().filter(|_| fits.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_off_scale_is_inferred_from_the_first_windows() {
        // Linux: 64,240 bytes in the SYN, 502 units of 128 after it; a request may have come in between.
        assert_eq!(by_first_windows(64_240, 502, 0), Some(7));
        assert_eq!(by_first_windows(65_160, 507, 320), Some(7));
        assert_eq!(by_first_windows(16_384, 16_384, 0), Some(0));
        // The window grows further immediately: no scale fits.
        assert_eq!(by_first_windows(64_240, 1_026, 0), None);
    }
}
