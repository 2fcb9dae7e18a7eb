//! clap's errors in one sentence: the culprit and the remedy.
//!
//! Sentences of value parsers pass through unchanged.

use std::error::Error;
use std::net::AddrParseError;
use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use quantity::names::Quoted;

use crate::cli::examples;
use crate::feature::Feature;

/// The sentence for a command line that clap refused, without the program's name.
pub fn sentence(error: &clap::Error) -> String {
    let culprit = |kind| error.get(kind).map(text).unwrap_or_default();
    let flag = culprit(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let remedy = nearest(error, ContextKind::SuggestedSubcommand);
            let verb = culprit(ContextKind::InvalidSubcommand);
            if !Feature::AllVerbs.is_built() && !examples::of(Some(&verb)).is_empty() {
                return Feature::AllVerbs.missing(&verb);
            }
            format!("unknown verb {}{remedy}; `roundtrip --help` lists them", Quoted(&verb))
        }
        ErrorKind::UnknownArgument if !flag.starts_with('-') => unexpected(&flag),
        // Taken for a verb that excludes what stands before it.
        ErrorKind::ArgumentConflict if flag.is_empty() => {
            unexpected(&culprit(ContextKind::InvalidSubcommand))
        }
        ErrorKind::UnknownArgument => {
            let remedy = nearest(error, ContextKind::SuggestedArg);
            format!("unknown flag {}{remedy}; `--help` after the verb lists its flags", Quoted(&flag))
        }
        ErrorKind::ValueValidation => match error.source() {
            Some(reason) if reason.is::<ParseIntError>() || reason.is::<AddrParseError>() => {
                let value = culprit(ContextKind::InvalidValue);
                let wanted = if reason.is::<ParseIntError>() { "a whole number" } else { "ADDRESS:PORT" };
                format!("{}: {} is not {wanted}", flag_name(&flag), Quoted(&value))
            }
            Some(reason) => format!("{}: {reason}", flag_name(&flag)),
            None => first_line(error),
        },
        ErrorKind::InvalidValue => match culprit(ContextKind::InvalidValue) {
            value if value.is_empty() => format!("{} needs a value", flag_name(&flag)),
            value => {
                let known = culprit(ContextKind::ValidValue);
                let remedy = nearest(error, ContextKind::SuggestedValue);
                format!("{}: unknown value {}{remedy}; give one of {known}", flag_name(&flag), Quoted(&value))
            }
        },
        ErrorKind::ArgumentConflict => {
            let other = culprit(ContextKind::PriorArg);
            if other == flag {
                format!("{} is given twice; give it once", flag_name(&flag))
            } else {
                format!("{} and {} exclude each other; give one", flag_name(&flag), flag_name(&other))
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let choice = |one: &str| one.split('|').map(flag_name).collect::<Vec<_>>().join(" or ");
            let missing: Vec<String> = flag.split(", ").map(choice).collect();
            format!("{} must be given too", missing.join(" and "))
        }
        // clap's error kinds are open-ended; its own first line is clear for the others.
        _ => first_line(error),
    }
}

fn unexpected(argument: &str) -> String {
    format!("unexpected argument {}; give one input, or put its flag before it", Quoted(argument))
}

/// ` (did you mean X?)`, or nothing.
fn nearest(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind).map(text) {
        Some(suggestion) if !suggestion.is_empty() => format!(" (did you mean `{suggestion}`?)"),
        Some(_) | None => String::new(),
    }
}

/// `--rtt <TIME>` as `--rtt`, `[KIND]` as `KIND`.
fn flag_name(shown: &str) -> &str {
    shown.split(" <").next().unwrap_or(shown).trim_matches(['[', ']', '<', '>', '.'])
}

fn text(value: &ContextValue) -> String {
    match value {
        ContextValue::String(text_value) => text_value.clone(),
        ContextValue::Strings(values) => values.join(", "),
        ContextValue::StyledStr(styled) => styled.to_string(),
        // Open-ended as well; the other kinds never name a culprit.
        _ => String::new(),
    }
}

fn first_line(error: &clap::Error) -> String {
    let rendered = error.to_string();
    let line = rendered.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).replace(char::is_control, "?")
}
