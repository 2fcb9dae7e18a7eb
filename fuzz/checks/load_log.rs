//! Invariants of any bytes that are given as a log of a load (`.hlog`): they are read, or refused in a sentence without a
//! control character; and what was read is written and read again as the same.

use load::log;

/// Panics if it does not hold.
pub(crate) fn check(data: &[u8]) {
    let written = |log: &log::Log| {
        let mut bytes = Vec::new();
        log::write(log, &mut bytes).expect("memory takes whatever is written");
        String::from_utf8(bytes).expect("a log is text")
    };
    match log::read(&String::from_utf8_lossy(data)) {
        Ok(log) => {
            let text = written(&log);
            assert!(text.len() as u64 <= log::MAX_BYTES);
            let again = log::read(&text).expect("what was written is read");
            assert_eq!(again.about, log.about);
            assert_eq!(written(&again), text);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
}
