//! A stack profile as the value of a key: a name of the catalogue, which is copied like any other setting.

use std::fmt;

use quantity::ValueError;

use crate::Stack;

/// Name of a stack profile in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackName(&'static str);

impl StackName {
    /// The profile of that name.
    ///
    /// # Errors
    /// An unknown name.
    pub(super) fn read(text: &str) -> Result<Self, ValueError> {
        Ok(Self(Stack::named(text)?.name))
    }

    /// The profile.
    pub fn stack(self) -> Stack {
        Stack::named(self.0).expect("a value is only made of a name that was found")
    }
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_profile() {
        let name = StackName::read("linux-2.0").unwrap();
        assert_eq!((name.stack().name, name.to_string()), ("linux-2.0", "linux-2.0".to_owned()));
        assert!(StackName::read("linux-2").is_err());
    }
}
