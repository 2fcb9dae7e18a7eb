//! Flags of every verb, from the definition of the command line.

use std::collections::BTreeMap;

use clap::{Arg, Command};

use super::{cell, table};

/// The page.
pub fn page() -> String {
    let program = crate::cli::command();
    let mut text = "# Flags\n\nGenerated from the definition of the command line, which also makes `--help` and \
                    `roundtrip man`. A flag in more than one verb is listed with the first. Values and their units: \
                    [scenarios](../scenarios.md#units).\n"
        .to_owned();
    let mut listed = BTreeMap::new();
    for verb in program.get_subcommands() {
        section(verb, "roundtrip", &mut listed, &mut text);
    }
    text
}

/// Tables by their contents, with the verb that has them.
type Listed = BTreeMap<String, String>;

fn section(command: &Command, parent: &str, listed: &mut Listed, text: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let mut usage = command.clone().bin_name(&name).render_usage().to_string();
    usage = usage.trim_start_matches("Usage:").split_whitespace().collect::<Vec<_>>().join(" ");
    *text += &format!("\n## {name}\n\n{}\n\n```\n{usage}\n```\n", about.trim());
    for (heading, group) in groups(command) {
        let rows: Vec<Vec<String>> = group.iter().map(|argument| row(argument)).collect();
        let table = table(&["flag", "meaning"], &rows);
        let title = heading.clone().map(|heading| format!("**{heading}**")).unwrap_or_default();
        let first = listed.entry(table.clone()).or_insert_with(|| name.clone());
        *text += &match (heading.is_some(), *first == name) {
            (true, true) => format!("\n{title}\n\n{table}"),
            (false, true) => format!("\n{table}"),
            (true, false) => format!("\n{title}: as for [`{first}`](#{}).\n", anchor(first)),
            (false, false) => format!("\nAs for [`{first}`](#{}).\n", anchor(first)),
        };
    }
    for below in command.get_subcommands() {
        section(below, &name, listed, text);
    }
}

fn anchor(name: &str) -> String {
    name.replace(' ', "-")
}

/// Arguments by heading, in the order of the definition: those without one first.
fn groups(command: &Command) -> Vec<(Option<String>, Vec<&Arg>)> {
    let mut groups: Vec<(Option<String>, Vec<&Arg>)> = Vec::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let heading = argument.get_help_heading().map(str::to_owned);
        match groups.iter_mut().find(|(one, _)| *one == heading) {
            Some((_, group)) => group.push(argument),
            None => groups.push((heading, vec![argument])),
        }
    }
    groups.sort_by_key(|(heading, _)| heading.is_some());
    groups
}

fn row(argument: &Arg) -> Vec<String> {
    vec![format!("`{}`", spelling(argument).replace('|', "\\|")), meaning(argument)]
}

/// `-o`, `--out FILE`, or the name of a positional argument.
pub fn spelling(argument: &Arg) -> String {
    let values: Vec<String> = argument
        .get_value_names()
        .map(|names| names.iter().map(ToString::to_string).collect())
        .unwrap_or_default();
    let value = match argument.get_action().takes_values() {
        true if values.is_empty() => format!(" {}", argument.get_id().as_str().to_uppercase()),
        true => format!(" {}", values.join(" ")),
        false => String::new(),
    };
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let long = argument.get_long().into_iter().chain(aliases).map(|name| format!("--{name}"));
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    format!("{}{value}", names.join(", ")).trim().to_owned()
}

/// Help, values and default.
pub fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = cell(&help);
    let listed = argument.get_action().takes_values() && !argument.is_hide_possible_values_set();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| listed)
        .map(|value| {
            let help = value.get_help().map(|help| format!(" ({})", cell(&help.to_string())));
            format!("`{}`{}", value.get_name(), help.unwrap_or_default())
        })
        .collect();
    if !values.is_empty() {
        text += &format!(". Values: {}", values.join(", "));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        text += &format!(" [default: {}]", defaults.join(", "));
    }
    text
}
