//! Description of a key, for files, flags and help.

/// Description of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyInfo {
    pub(crate) name: &'static str,
    pub(crate) value_name: &'static str,
    /// A value in a file.
    pub(crate) example: &'static str,
    pub(crate) help: &'static str,
}

impl KeyInfo {
    pub(crate) const fn value(
        name: &'static str,
        value_name: &'static str,
        example: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, value_name, example, help }
    }

    /// Example of a line that sets it.
    pub(crate) fn line(self) -> String {
        format!("{} = {}", self.name, self.example)
    }
}
