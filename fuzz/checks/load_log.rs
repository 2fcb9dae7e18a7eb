//! Invariants for any bytes as a log of a load (`.hlog`): they are accepted, or rejected with a message without control
//! characters; an accepted log is unchanged when written and read again.

use load::log;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let written = |log: &log::Log| {
        let mut bytes = Vec::new();
        log::write(log, &mut bytes).expect("writing to memory does not fail");
        String::from_utf8(bytes).expect("a log is text")
    };
    match log::read(&String::from_utf8_lossy(data)) {
        Ok(log) => {
            let text = written(&log);
            assert!(text.len() as u64 <= log::MAX_BYTES);
            let reread = log::read(&text).expect("what was written is read");
            assert_eq!(reread.parameters, log.parameters);
            assert_eq!(written(&reread), text);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
}
