//! A flag has one meaning in every verb. Values of another kind show another meaning; those that remain are listed, with the
//! reason.

use std::collections::{BTreeMap, BTreeSet};

use super::tree;

/// Flags whose values are of several kinds: the name, and why it is the right one in each verb.
const SEVERAL_KINDS: [(&str, &str); 7] = [
    ("--allow", "a permission: of a cause to `diagnose`, of clients to `gateway`"),
    ("--caches", "`nat` only admits networks: whether caches respond at all is the client's decision"),
    ("--dhttp", "`connections` predicts one profile: whether it is shown"),
    ("--fail-on", "the condition of exit status 1: a threshold of `load`, a cause or severity of `diagnose`"),
    ("--plot", "`simulate` has three formats, `page` one"),
    ("--requests", "requests: their order, a file with them, their number"),
    ("--without", "what is left out: a host of a page, an extension of DHTTP"),
];

/// The kinds of values of each flag, by the generated reference.
fn kinds() -> BTreeMap<String, BTreeSet<String>> {
    let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in tree::text("docs/reference/flags.md").lines() {
        let Some(flag) = line.strip_prefix("| `").and_then(|line| line.split("` |").next()) else { continue };
        let long = flag.split(", ").find_map(|name| name.strip_prefix("--"));
        if let Some(long) = long {
            let (name, kind) = long.split_once(' ').unwrap_or((long, ""));
            kinds.entry(format!("--{name}")).or_default().insert(kind.to_owned());
        }
    }
    kinds
}

#[test]
fn a_flag_has_values_of_one_kind_in_every_verb() {
    let kinds = kinds();
    assert!(kinds.len() > 100, "the reference has another form");
    let several: Vec<_> = kinds.iter().filter(|(_, kinds)| kinds.len() > 1).collect();
    let listed: BTreeSet<&str> = SEVERAL_KINDS.iter().map(|(name, _)| *name).collect();
    let complaints: Vec<String> = several
        .iter()
        .filter(|(name, _)| !listed.contains(name.as_str()))
        .map(|(name, kinds)| format!("{name}: {kinds:?}"))
        .collect();
    tree::expect_none("Flags with two meanings; choose another name for one:", &complaints);
    let found: BTreeSet<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
    let unneeded: Vec<String> = listed.difference(&found).map(|name| (*name).to_owned()).collect();
    tree::expect_none("Listed, but of one kind:", &unneeded);
}
