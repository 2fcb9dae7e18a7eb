//! Circles of files that use one another, within a crate. Those that are listed may stay; a new one is a wall in the wrong place.
//!
//! Names are resolved as far as the text tells: paths of `use` and paths in code, and a root's or a module's re-exports. Uses
//! between a module and what is below it are left out, and so are unit tests.

use std::collections::{BTreeMap, BTreeSet};

use super::tree;

/// Circles that may stay, by their files: methods of one type in several files (`tcp`, `simulate`), types that contain one
/// another, or two halves of one parser.
const LISTED: [&str; 10] = [
    "dhttp-proto: message, parts",
    "dhttp-proxy: gateway::completions, gateway::connection",
    "dhttp: server::datagrams, server::worker",
    "http1: message::field, message::head, message::view",
    "page: contents, graph",
    "page: har::archive, har::trace_events",
    "reproduce: server_benchmark::server, server_benchmark::transport",
    "scenario: spec::grid, spec::plan",
    "simulate: world::application, world::host, world::recorder, world::schedule",
    "tcp: connection, host_cache, rack, recovery",
];

type Module = Vec<String>;

#[test]
fn files_of_a_crate_use_one_another_in_no_new_circle() {
    let found: BTreeSet<String> = crates().iter().flat_map(|(name, files)| circles(name, files)).collect();
    let listed: BTreeSet<String> = LISTED.into_iter().map(str::to_owned).collect();
    let complaints: Vec<String> = found.difference(&listed).cloned().collect();
    tree::expect_none("Circles of files; which part of one belongs below the others?", &complaints);
    let complaints: Vec<String> = listed.difference(&found).cloned().collect();
    tree::expect_none("Turn the ratchet: these circles are gone.", &complaints);
}

/// Production code of each crate's files, by module.
fn crates() -> BTreeMap<String, BTreeMap<Module, String>> {
    let mut crates: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    for file in tree::files("crates", &[".rs"]) {
        if let ["crates", name, "src", ref path @ ..] = file.split('/').collect::<Vec<_>>()[..]
            && path[0] != "bin"
        {
            let path = path.iter().map(|part| part.trim_end_matches(".rs").to_owned());
            let module: Module = path.filter(|part| part != "lib" && part != "main").collect();
            crates.entry(name.to_owned()).or_default().insert(module, code(&tree::text(&file)));
        }
    }
    crates
}

/// The text without comments and unit tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Sets of files each of which reaches every other, as lines of [`LISTED`].
fn circles(name: &str, files: &BTreeMap<Module, String>) -> Vec<String> {
    let exports = exports(files);
    let used: BTreeMap<&Module, BTreeSet<Module>> =
        files.iter().map(|(module, text)| (module, used(module, text, files, &exports))).collect();
    let reached: BTreeMap<&Module, BTreeSet<Module>> = files
        .keys()
        .map(|module| {
            let (mut reached, mut next) = (BTreeSet::new(), vec![module.clone()]);
            while let Some(module) = next.pop() {
                next.extend(used[&module].iter().filter(|used| reached.insert((*used).clone())).cloned());
            }
            (module, reached)
        })
        .collect();
    let circle = |module: &Module| {
        let others =
            files.keys().filter(|other| reached[module].contains(*other) && reached[other].contains(module));
        others.map(|module| module.join("::")).collect::<Vec<_>>()
    };
    let mut circles: Vec<_> = files.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    circles.sort();
    circles.dedup();
    circles.into_iter().map(|circle| format!("{name}: {}", circle.join(", "))).collect()
}

/// The modules that names are re-exported from, by the path under which they are.
fn exports(files: &BTreeMap<Module, String>) -> BTreeMap<Module, Module> {
    let mut exports = BTreeMap::new();
    for (module, text) in files {
        for path in uses(text).filter(|(is_public, _)| *is_public).map(|(_, path)| path) {
            let Some((exported, from)) = path.split_last() else { continue };
            let from: Module =
                from.iter().filter(|part| *part != "crate" && *part != "self").cloned().collect();
            let below = [module.clone(), from.clone()].concat();
            if let Some(from) = [below, from].into_iter().find(|from| files.contains_key(from)) {
                exports.insert([module.clone(), vec![exported.clone()]].concat(), from);
            }
        }
    }
    exports
}

/// Modules that a file uses.
fn used(
    module: &Module,
    text: &str,
    files: &BTreeMap<Module, String>,
    exports: &BTreeMap<Module, Module>,
) -> BTreeSet<Module> {
    let paths = uses(text).map(|(_, path)| path).chain(paths_in_code(text));
    let is_related = |other: &Module| other.starts_with(module) || module.starts_with(other);
    paths
        .filter_map(|path| resolved(module, &path, files, exports))
        .filter(|other| !is_related(other))
        .collect()
}

/// The module of a path that a file uses; `None` for another crate's.
fn resolved(
    module: &Module,
    path: &[String],
    files: &BTreeMap<Module, String>,
    exports: &BTreeMap<Module, Module>,
) -> Option<Module> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (mut at, rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..]),
        first if files.contains_key(&[module.clone(), vec![first.to_owned()]].concat()) => {
            (module.clone(), path)
        }
        _ => return None,
    };
    for part in rest {
        at.push(part.clone());
        if let Some(from) = exports.get(&at) {
            return Some(from.clone());
        }
        if !files.contains_key(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

/// The paths of every `use`, which begins a line, one for each name; and whether it is a re-export.
fn uses(text: &str) -> impl Iterator<Item = (bool, Vec<String>)> + '_ {
    let starts = text.match_indices("use ").filter_map(|(at, word)| {
        let before = text[..at].rsplit('\n').next().unwrap_or_default().trim();
        let is_statement = before.is_empty() || (before.starts_with("pub") && !before.contains(' '));
        is_statement.then(|| (!before.is_empty(), &text[at + word.len()..]))
    });
    starts.flat_map(|(is_public, rest)| {
        let tree = rest.split(';').next().unwrap_or_default();
        expanded(tree).into_iter().map(move |path| (is_public, path))
    })
}

/// The paths of a use tree: `a::{b, c::d as e}` is `a::b` and `a::c::d`.
fn expanded(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some((before, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.split("::").map(|part| part.trim().to_owned()).collect()];
    };
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for letter in inner.trim_end().trim_end_matches('}').chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match (letter, depth) {
            (',', 0) => parts.push(String::new()),
            _ => parts.last_mut().expect("one at least").push(letter),
        }
    }
    let prefix = before.trim_end().trim_end_matches("::");
    let whole =
        |part: &String| if prefix.is_empty() { part.clone() } else { format!("{prefix}::{}", part.trim()) };
    parts.iter().filter(|part| !part.trim().is_empty()).flat_map(|part| expanded(&whole(part))).collect()
}

/// Paths in code that begin with `crate::` or `super::`.
fn paths_in_code(text: &str) -> impl Iterator<Item = Vec<String>> + '_ {
    ["crate::", "super::"].into_iter().flat_map(move |start| {
        text.match_indices(start).map(move |(at, _)| {
            let is_of_path = |letter: &char| letter.is_alphanumeric() || "_:".contains(*letter);
            let path: String = text[at..].chars().take_while(is_of_path).collect();
            path.split("::").map(str::to_owned).collect()
        })
    })
}

#[test]
fn use_trees_are_paths_and_resolve_to_files() {
    let text = "use super::{one::{Two, Three as Four}, five};\npub use six::Seven;\nfn f() { crate::eight::nine(); }\n";
    let paths: Vec<String> =
        uses(text).map(|(is_public, path)| format!("{is_public} {}", path.join("::"))).collect();
    assert_eq!(
        paths,
        ["false super::one::Two", "false super::one::Three", "false super::five", "true six::Seven"]
    );
    assert_eq!(paths_in_code(text).next().expect("a path").join("::"), "crate::eight::nine");
    let module =
        |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Module>();
    let files = [
        ("", "pub use one::Two;"),
        ("one", "use crate::ten::a::Name;"),
        ("ten", ""),
        ("ten::a", "use super::b;"),
        ("ten::b", "fn f() { crate::Two }"),
    ];
    let files = files.into_iter().map(|(path, text)| (module(path), text.to_owned())).collect();
    assert_eq!(circles("example", &files), ["example: one, ten::a, ten::b"]);
}
