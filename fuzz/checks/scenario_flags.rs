//! Invariants for any flags: a value is rejected and changes nothing, or it is printed and read back unchanged as
//! part of a file. Not a generator: each line of the bytes is a flag's name and its value, with a space between.

use scenario::spec::Key;
use scenario::{Defaults, Spec};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut spec = Spec::default();
    for line in text.split('\n') {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match Key::named(key) {
            Ok(key) => set(&mut spec, key, value),
            Err(unknown) => assert!(!unknown.to_string().contains(char::is_control), "{unknown:?}"),
        }
    }
    assert_eq!(Spec::from_toml(&spec.to_toml(), "printed.toml").as_ref(), Ok(&spec));
    if let Err(error) = spec.plan(&Defaults::predict()) {
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
}

fn set(spec: &mut Spec, key: Key, value: &str) {
    let before = spec.clone();
    if let Err(error) = spec.set(key, value) {
        assert_eq!(*spec, before, "--{key} {value} was refused and changed something");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
}
