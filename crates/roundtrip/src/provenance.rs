//! How results came about: what a reader must know to believe them, or to get them again.
//!
//! Not the results' notes: those say what a figure leaves out, this says where it was got.

/// A name and its value.
pub type Fact = (String, String);

/// Facts about all results, and facts about some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// What every reader should see.
    pub facts: Vec<Fact>,
    /// What some readers look up.
    pub groups: Vec<Group>,
}

/// Facts under a title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// What they are about.
    pub title: String,
    /// Each name once.
    pub facts: Vec<Fact>,
}

/// What is known of one of several results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Which result.
    pub title: String,
    /// Where and when.
    pub circumstances: Vec<Fact>,
    /// What was set.
    pub settings: Vec<Fact>,
}

impl Provenance {
    /// What all results share is told once, what differs under each result's own title.
    pub fn of(results: &[Known], settings_title: &str) -> Self {
        let Some(first) = results.first() else { return Self::default() };
        let everywhere = |fact: &Fact| {
            results.iter().all(|known| known.circumstances.contains(fact) || known.settings.contains(fact))
        };
        let shared = |facts: &[Fact]| facts.iter().filter(|fact| everywhere(fact)).cloned().collect();
        let own = results.iter().map(|Known { title, circumstances, settings }| {
            let facts = circumstances.iter().chain(settings).filter(|fact| !everywhere(fact));
            Group { title: title.clone(), facts: facts.cloned().collect() }
        });
        let settings = Group { title: settings_title.to_owned(), facts: shared(&first.settings) };
        let groups = own.chain([settings]).filter(|group| !group.facts.is_empty()).collect();
        Self { facts: shared(&first.circumstances), groups }
    }

    /// Both, this one's first.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let Self { facts, groups } = other;
        self.facts.extend(facts);
        self.groups.extend(groups);
        self
    }

    /// One fact about everything.
    pub fn fact(name: &str, value: String) -> Self {
        Self { facts: vec![(name.to_owned(), value)], groups: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Vec<Fact> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_results_share_is_told_once_and_what_differs_under_each() {
        let known = |title: &str, date, window| Known {
            title: title.to_owned(),
            circumstances: facts(&[("kernel", "6.12"), ("date", date)]),
            settings: facts(&[("sack", "0"), ("window", window)]),
        };
        let provenance = Provenance::of(&[known("one", "1996", "2"), known("two", "1997", "2")], "pinned");
        assert_eq!(provenance.facts, facts(&[("kernel", "6.12")]));
        let group = |title: &str, pairs| Group { title: title.to_owned(), facts: facts(pairs) };
        let expected = [
            group("one", &[("date", "1996")]),
            group("two", &[("date", "1997")]),
            group("pinned", &[("sack", "0"), ("window", "2")]),
        ];
        assert_eq!(provenance.groups, expected);
    }
}
