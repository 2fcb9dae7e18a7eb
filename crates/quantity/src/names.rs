//! Lookup of the names that users type: descriptions, sources, and errors for unknown ones.
//!
//! Each module of named things has its own list.

use std::fmt;
use std::path::Path;

/// A line of `roundtrip list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Name that the user types.
    pub name: &'static str,
    /// Description in one line without a full stop.
    pub description: &'static str,
    /// Source of its values: `papers/<paper>#table-2`, an RFC, a kernel.
    pub source: &'static str,
}

/// An unknown name.
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
    /// Error for `given`, which is none of `known`.
    pub fn new(kind: &'static str, given: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        Self { kind, given: given.to_owned(), known: known.into_iter().collect() }
    }

    /// The known name most similar to `given`, if it is similar enough.
    pub fn nearest(&self) -> Option<&'static str> {
        let given: String = self.given.chars().take(MAX_COMPARED_CHARS).collect::<String>().to_lowercase();
        self.known
            .iter()
            .map(|known| (strsim::normalized_damerau_levenshtein(&given, known), *known))
            .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, known)| known)
    }
}

/// The value in `all` whose `name_of` is `given`.
///
/// # Errors
/// [`UnknownName`] for any other name, with the nearest and all known ones.
pub fn find<T: Copy>(
    kind: &'static str,
    given: &str,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    let found = all.iter().find(|one| name_of(**one) == given);
    found.copied().ok_or_else(|| UnknownName::new(kind, given, all.iter().map(|one| name_of(*one))))
}

/// Minimum similarity of a suggestion: below half of the letters it would distract.
const MIN_SIMILARITY: f64 = 0.5;
/// Maximum length of a compared name: the time to compare is proportional to it, and no known name is nearly
/// as long.
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

/// A user's text as sentences show it: between back quotes, control characters escaped, truncated after 60.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        match text.char_indices().nth(60) {
            Some((cut, _)) => write!(f, "`{}...`", text[..cut].escape_debug()),
            None => write!(f, "`{}`", text.escape_debug()),
        }
    }
}

/// A path in one line that cannot steer a terminal.
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
