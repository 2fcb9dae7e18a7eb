//! The names users type: what each stands for, where it comes from, and what we say when there is no such name.
//!
//! Not the named things themselves: each module of those keeps its own list.

use std::fmt;

/// One line of `roundtrip list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What the user types.
    pub name: &'static str,
    /// What it stands for, in one line without a full stop.
    pub description: &'static str,
    /// Where its values come from: `papers/<paper>#table-2`, an RFC, a kernel.
    pub source: &'static str,
}

/// There is no such name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What was to be named, in the singular: `network`, `page`, `key`.
    pub kind: &'static str,
    /// What was given.
    pub given: String,
    /// Every name there is, in the order they are listed.
    pub known: Vec<&'static str>,
}

impl Unknown {
    /// `given` is none of `known`.
    pub fn new(kind: &'static str, given: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        Self { kind, given: given.to_owned(), known: known.into_iter().collect() }
    }

    /// The known name that `given` was probably meant to be.
    pub fn nearest(&self) -> Option<&'static str> {
        let given: String = self.given.chars().take(LONGEST_COMPARED).collect::<String>().to_lowercase();
        self.known
            .iter()
            .map(|known| (strsim::normalized_damerau_levenshtein(&given, known), *known))
            .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, known)| known)
    }
}

/// The one of `all` that `name_of` gives the name `given`.
///
/// # Errors
/// [`Unknown`] when there is none, with the nearest and all the others.
pub fn find<T: Copy>(
    kind: &'static str,
    given: &str,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T, Unknown> {
    let found = all.iter().find(|one| name_of(**one) == given);
    found.copied().ok_or_else(|| Unknown::new(kind, given, all.iter().map(|one| name_of(*one))))
}

/// Half the letters must agree, or a suggestion is a distraction.
const LIKE_ENOUGH: f64 = 0.5;
/// Comparing takes time in proportion to the length; no name is nearly as long as this.
const LONGEST_COMPARED: usize = 64;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} {}", self.kind, Quoted(&self.given))?;
        match self.nearest() {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?")?,
            None => f.write_str(".")?,
        }
        write!(f, " Known: {}", self.known.join(", "))
    }
}

impl std::error::Error for Unknown {}

/// What a user gave, as a sentence shows it: between back quotes, control characters escaped, cut after 60.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_told_the_name_it_missed() {
        let unknown = Unknown::new("network", "fast-internt", ["ethernet", "fast-internet"]);
        assert_eq!(
            unknown.to_string(),
            "unknown network `fast-internt`; did you mean `fast-internet`? Known: ethernet, fast-internet"
        );
        assert_eq!(Unknown::new("network", "MODEM", ["isdn", "modem"]).nearest(), Some("modem"));
    }

    #[test]
    fn nothing_like_any_name_gets_the_list_alone() {
        let unknown = Unknown::new("page", "zebra", ["small-page", "large-page"]);
        assert_eq!(unknown.to_string(), "unknown page `zebra`. Known: small-page, large-page");
        assert_eq!(Unknown::new("page", &"x".repeat(1 << 20), ["small-page"]).nearest(), None);
    }
}
