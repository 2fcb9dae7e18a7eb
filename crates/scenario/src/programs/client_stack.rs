//! The client's stack as the value of a key: a name of the catalogue, and settings of that end alone.

use std::fmt;

use quantity::{ValueError, names};

use super::{ProgramKey, Programs, SocketSettings};
use crate::Stack;

/// A stack profile with settings of its own: `linux+idle=paced+initial-window=4`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientStack {
    name: &'static str,
    settings: SocketSettings,
}

impl ClientStack {
    /// Keys of its settings, as of both ends.
    pub(crate) const KEYS: [ProgramKey; 8] = [
        ProgramKey::Nagle,
        ProgramKey::SendBuffer,
        ProgramKey::UnsentLimit,
        ProgramKey::ReceiveBuffer,
        ProgramKey::InitialWindow,
        ProgramKey::Idle,
        ProgramKey::RtoMin,
        ProgramKey::RtoInitial,
    ];

    /// Reads a name, and settings behind plus signs.
    ///
    /// # Errors
    /// An unknown name or key, or an invalid value.
    pub(super) fn read(text: &str) -> Result<Self, ValueError> {
        let mut parts = text.split('+');
        let name = Stack::named(parts.next().unwrap_or_default())?.name;
        let mut programs = Programs::default();
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let key = names::find("key of a client's stack", key, &Self::KEYS, ProgramKey::name)?;
            programs.set(key, value)?;
        }
        Ok(Self { name, settings: programs.socket_settings() })
    }

    /// Returns the profile without its settings.
    pub fn profile(self) -> Stack {
        Stack::named(self.name).expect("a value has the name of a stack")
    }

    /// Returns a stack with its settings, which override all others.
    pub fn applied_to(self, stack: &Stack) -> Stack {
        self.settings.applied_to(stack)
    }
}

impl fmt::Display for ClientStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let settings = Programs::from(self.settings);
        settings.reported().try_for_each(|(key, value)| write!(f, "+{key}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_profile() {
        let client = ClientStack::read("linux-2.0").unwrap();
        assert_eq!((client.profile().name, client.to_string()), ("linux-2.0", "linux-2.0".to_owned()));
        assert!(ClientStack::read("linux-2").is_err());
    }

    #[test]
    fn settings_behind_the_name_hold_for_this_stack() {
        let text = "linux+nagle=off+initial-window=4+rto-min=1s";
        let client = ClientStack::read(text).unwrap();
        assert_eq!(client.to_string(), text);
        let stack = client.applied_to(&client.profile());
        assert_eq!((stack.nagle, stack.initial_window), (false, 4));
        assert_eq!(stack.packets.rto.min, wire::Duration::from_secs(1));
        for invalid in
            ["linux+", "linux+nagle", "linux+server-idle=3s", "linux+initial-window=0", "+nagle=off"]
        {
            assert!(ClientStack::read(invalid).is_err(), "{invalid}");
        }
    }
}
