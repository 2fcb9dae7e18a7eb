//! Keys of TOML files: of the services' settings, with the values that they accept, and of scenarios.

use clap::{Arg, Command};
use scenario::spec::Key;

use super::{cell, flags, table};
use crate::cli::cache::Cache;
use crate::cli::dhttp::{Gateway, Nat, Serve};
use crate::serve::layers::Layer;

/// The page.
pub fn page() -> String {
    let program = crate::cli::command();
    let mut text = "# Keys of TOML files\n\nGenerated from the types that read the files. A key has the name and the \
                    meaning of its [flag](flags.md); flags override files. An unknown key is an error that names its \
                    line.\n"
        .to_owned();
    type KeysOf = fn(&Command) -> Keys;
    let keys: [(&str, KeysOf); 4] = [
        ("serve", keys_of::<Serve>),
        ("gateway", keys_of::<Gateway>),
        ("cache", keys_of::<Cache>),
        ("nat", keys_of::<Nat>),
    ];
    for (verb, keys_of) in keys {
        let command = program.find_subcommand(verb).expect("a verb");
        let keys = keys_of(command);
        let rows: Vec<Vec<String>> = keys
            .iter()
            .map(|(key, kind)| {
                let argument = argument(command, key);
                vec![format!("`{key}`"), (*kind).to_owned(), flags::meaning(argument)]
            })
            .collect();
        let header = ["key", "value", "meaning"];
        text += &format!("\n## roundtrip {verb} --config\n\n{}", table(&header, &rows));
    }
    text + &scenario_section(&program)
}

/// The argument of a key's name.
fn argument<'a>(command: &'a Command, key: &str) -> &'a Arg {
    let id = key.replace('-', "_");
    let found = command.get_arguments().find(|argument| argument.get_id() == id.as_str());
    found.unwrap_or_else(|| panic!("{}: no flag for the key {key}", command.get_name()))
}

fn scenario_section(program: &Command) -> String {
    let command = program.find_subcommand("compare").expect("a verb");
    let rows: Vec<Vec<String>> = Key::ALL
        .iter()
        .map(|key| {
            let example = key.example();
            let (_, value) = example.split_once(" = ").expect("a key and a value");
            vec![format!("`{key}`"), format!("`{}`", cell(value)), scenario_key(command, *key)]
        })
        .collect();
    format!(
        "\n## Scenarios\n\nFor `predict`, `simulate`, `measure`, `compare` and `content`. \
         [scenarios.md](../scenarios.md) explains values, lists and units. A network may also be a table: \
         `network = {{ like = \"fast-internet\", rtt = \"133ms\" }}`.\n\n{}",
        table(&["key", "example", "meaning"], &rows)
    )
}

/// The help of the flag of that name; keys of one direction have no flag.
fn scenario_key(command: &Command, key: Key) -> String {
    let name = key.name();
    let help = |name: &str| {
        let mut arguments = command.get_arguments();
        arguments.find(|argument| argument.get_long() == Some(name)).map(flags::meaning)
    };
    if let Some(help) = help(name) {
        return help;
    }
    let (base, direction) = match (name.strip_suffix("-up"), name.strip_suffix("-down")) {
        (Some(base), _) => (base, "server"),
        (None, Some(base)) => (base, "client"),
        (None, None) => panic!("no flag for the key {name}"),
    };
    assert!(help(base).is_some(), "no flag for the key {base}");
    format!("`{base}` towards the {direction} only")
}

/// Keys, each with the kind of its value.
type Keys = Vec<(String, &'static str)>;

/// Keys of the file of these flags, with the kind of value that each accepts.
fn keys_of<T: Layer>(command: &Command) -> Keys {
    let kind = |key: &str| {
        let accepts = |value: &str| T::parse(&format!("{key} = {value}")).is_ok();
        let names = argument(command, key).get_possible_values();
        match () {
            () if accepts("true") => "true or false",
            () if accepts("\"1\"") => "text",
            () if accepts("1") => "number",
            () if accepts("[\"1\"]") => "list of texts",
            () if names.iter().any(|name| accepts(&format!("{:?}", name.get_name()))) => "name",
            () => panic!("no value for the key {key}"),
        }
    };
    T::default().entries().into_iter().map(|(key, _)| (key.clone(), kind(&key))).collect()
}

#[test]
fn keys_and_their_kinds_come_from_the_type() {
    let program = crate::cli::command();
    let keys = keys_of::<Serve>(program.find_subcommand("serve").expect("a verb"));
    for (key, kind) in
        [("folder", "text"), ("forwarded", "true or false"), ("threads", "number"), ("profile", "name")]
    {
        assert!(keys.iter().any(|one| *one == (key.to_owned(), kind)), "{keys:?}");
    }
}
