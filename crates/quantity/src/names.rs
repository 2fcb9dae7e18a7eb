//! Lookup of names that users type: descriptions, sources, and errors for unknown ones.

use std::fmt;
use std::path::Path;

/// Line of `roundtrip list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Name that the user types.
    pub name: &'static str,
    /// Description in one line without a full stop.
    pub description: &'static str,
    /// Source of its values: `papers/<paper>#table-2`, an RFC, a kernel.
    pub source: &'static str,
}

/// Error of an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// Kind of the named thing, in the singular: `network`, `page`, `key`.
    pub kind: &'static str,
    /// The given name.
    pub given: String,
    /// All known names, in the order of lists.
    pub known: Vec<&'static str>,
}

impl UnknownName {
    /// Creates the error for `given`, which is not among `known`.
    pub fn new(kind: &'static str, given: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        Self { kind, given: given.to_owned(), known: known.into_iter().collect() }
    }

    /// Returns the known name most similar to `given`, if it is similar enough.
    pub fn nearest(&self) -> Option<&'static str> {
        let given: String = self.given.chars().take(MAX_COMPARED_CHARS).collect::<String>().to_lowercase();
        self.known
            .iter()
            .map(|known| (strsim::normalized_damerau_levenshtein(&given, known), *known))
            .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, known)| known)
    }
}

/// Finds the value in `all` whose name is `given`.
///
/// # Errors
/// [`UnknownName`] for any other name, with the nearest and all known ones.
pub fn find<T: Copy>(
    kind: &'static str,
    given: &str,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    let value = all.iter().find(|candidate| name_of(**candidate) == given);
    value
        .copied()
        .ok_or_else(|| UnknownName::new(kind, given, all.iter().map(|candidate| name_of(*candidate))))
}

/// Minimum similarity of a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.5;
/// Maximum number of characters compared: the time is proportional to it, and known names are shorter.
const MAX_COMPARED_CHARS: usize = 64;

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} {}", self.kind, Quoted(&self.given))?;
        match self.nearest() {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?")?,
            None => f.write_str(".")?,
        }
        write!(f, " Known: {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Text of a user, quoted for messages: in back quotes, control characters escaped, truncated after 60 characters.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        match text.char_indices().nth(60) {
            Some((end, _)) => write!(f, "`{}...`", text[..end].escape_debug()),
            None => write!(f, "`{}`", text.escape_debug()),
        }
    }
}

/// Returns a path for messages, without control characters.
pub fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_name_suggests_the_nearest() {
        let unknown = UnknownName::new("network", "fast-internt", ["ethernet", "fast-internet"]);
        assert_eq!(
            unknown.to_string(),
            "unknown network `fast-internt`; did you mean `fast-internet`? Known: ethernet, fast-internet"
        );
        assert_eq!(UnknownName::new("network", "MODEM", ["isdn", "modem"]).nearest(), Some("modem"));
    }

    #[test]
    fn dissimilar_name_gets_the_list_only() {
        let unknown = UnknownName::new("page", "zebra", ["small-page", "large-page"]);
        assert_eq!(unknown.to_string(), "unknown page `zebra`. Known: small-page, large-page");
        assert_eq!(UnknownName::new("page", &"x".repeat(1 << 20), ["small-page"]).nearest(), None);
    }
}
