//! Provenance of results: the facts needed to judge or to repeat them.
//!
//! The results' notes list the limits of a figure; these facts state its origin.

/// A name and its value.
pub type Fact = (String, String);

/// Facts about all results, and facts about some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Facts that every reader should see.
    pub facts: Vec<Fact>,
    /// Facts for reference, in groups.
    pub groups: Vec<Group>,
}

/// Facts under a title.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The results that the facts are about.
    pub title: String,
    /// Each name once.
    pub facts: Vec<Fact>,
}

/// Facts about one of several results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Name of the result.
    pub title: String,
    /// Place and time.
    pub circumstances: Vec<Fact>,
    /// Settings.
    pub settings: Vec<Fact>,
}

impl Provenance {
    /// States facts that all results share once, and the others under each result's title.
    pub fn of(results: &[RunFacts], settings_title: &str) -> Self {
        let Some(first) = results.first() else { return Self::default() };
        let everywhere = |fact: &Fact| {
            results.iter().all(|result| result.circumstances.contains(fact) || result.settings.contains(fact))
        };
        let shared = |facts: &[Fact]| facts.iter().filter(|fact| everywhere(fact)).cloned().collect();
        let own = results.iter().map(|RunFacts { title, circumstances, settings }| {
            let facts = circumstances.iter().chain(settings).filter(|fact| !everywhere(fact));
            Group { title: title.clone(), facts: facts.cloned().collect() }
        });
        let settings = Group { title: settings_title.to_owned(), facts: shared(&first.settings) };
        let groups = own.chain([settings]).filter(|group| !group.facts.is_empty()).collect();
        Self { facts: shared(&first.circumstances), groups }
    }

    /// Joins two provenances, this one's facts first.
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
    fn shared_facts_are_stated_once_and_others_under_each_result() {
        let result = |title: &str, date, window| RunFacts {
            title: title.to_owned(),
            circumstances: facts(&[("kernel", "6.12"), ("date", date)]),
            settings: facts(&[("sack", "0"), ("window", window)]),
        };
        let provenance = Provenance::of(&[result("one", "1996", "2"), result("two", "1997", "2")], "pinned");
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
