//! Settings in layers: flags override the keys of a TOML file. One struct defines both.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::failure::{Failure, shown};

/// Flags that a file can set.
pub trait Layer: Clone + Default {
    /// Keys, named as the long flags, each with its value as text.
    fn entries(&self) -> Vec<(String, String)>;

    /// Parses the settings of a file; unknown keys are ignored.
    fn parse(text: &str) -> Result<Self, toml::de::Error>;

    /// Returns these settings, completed by those of `below`.
    #[must_use]
    fn layered_over(self, below: Self) -> Self;

    /// Returns the flags of these keys whose values differ.
    fn changed(&self, other: &Self, keys: &[&str]) -> Vec<String> {
        let (setting, other): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (self.entries().into_iter().collect(), other.entries().into_iter().collect());
        keys.iter()
            .filter(|key| setting.get(**key) != other.get(**key))
            .map(|key| format!("--{key}"))
            .collect()
    }
}

/// Reads the settings of flags, completed by the file that they name.
///
/// # Errors
/// If the file cannot be read, or is invalid: an unknown key, a value of another type.
pub fn layered<T: Layer>(flags: &T, file: Option<&Path>) -> Result<T, Failure> {
    let Some(path) = file else { return Ok(flags.clone()) };
    let text = fs::read_to_string(path).map_err(|error| Failure::Read { path: path.to_owned(), error })?;
    let invalid = |at: Option<Range<usize>>, reason: &str| {
        let before = at.and_then(|at| text.get(..at.start)).unwrap_or_default();
        Failure::Value(format!("{} line {}: {reason}", shown(path), before.matches('\n').count() + 1))
    };
    let parse_error = |error: toml::de::Error| invalid(error.span(), error.message());
    let known = T::default().entries();
    let keys: BTreeMap<Spanned<String>, IgnoredAny> = toml::from_str(&text).map_err(parse_error)?;
    if let Some(key) = keys.keys().find(|key| known.iter().all(|(name, _)| name != key.get_ref())) {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
        let reason = format!("unknown field `{}`, expected one of {}", key.get_ref(), names.join(", "));
        return Err(invalid(Some(key.span()), &reason));
    }
    Ok(flags.clone().layered_over(T::parse(&text).map_err(parse_error)?))
}

/// Message after a reload: the flags whose changed values need a restart.
pub fn reloaded(changed: &[String]) -> String {
    const READ: &str = "reloaded the configuration";
    match changed {
        [] => READ.to_owned(),
        [setting] => format!("{READ}; {setting} has changed; restart to apply it"),
        flags => {
            let flags = flags.join(", ");
            format!("{READ}; {flags} have changed; restart to apply them")
        }
    }
}

/// Value of an optional flag.
pub trait OptionalFlag {
    /// Whether it is given.
    fn is_given(&self) -> bool;
}

impl<T> OptionalFlag for Option<T> {
    fn is_given(&self) -> bool {
        self.is_some()
    }
}

impl OptionalFlag for bool {
    fn is_given(&self) -> bool {
        *self
    }
}

impl<T> OptionalFlag for Vec<T> {
    fn is_given(&self) -> bool {
        !self.is_empty()
    }
}

/// Deserializes a number of a file as the text that a flag would have.
pub fn text_of_number<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    u64::deserialize(value).map(|number| Some(number.to_string()))
}

/// Implements [`Layer`] for a struct of flags. `keys` are those of the file. A flag of `one_of` excludes the file's keys.
/// `lists` join the file's values and the flags'. `nested` are layers, `cli_only` are flags that no file sets.
macro_rules! layer {
    (
        $flags:ident {
            keys: [$($key:ident),*],
            one_of: [$($setting:ident),*],
            lists: [$($list:ident),*],
            nested: [$($part:ident),*],
            cli_only: [$($cli_only:ident),*] $(,)?
        }
    ) => {
        impl $crate::serve::layers::Layer for $flags {
            fn entries(&self) -> Vec<(String, String)> {
                [
                    $(vec![(stringify!($key).replace('_', "-"), format!("{:?}", self.$key))],)*
                    $(vec![(stringify!($list).replace('_', "-"), format!("{:?}", self.$list))],)*
                    $($crate::serve::layers::Layer::entries(&self.$part),)*
                ]
                .concat()
            }

            fn parse(text: &str) -> Result<Self, toml::de::Error> {
                let read: Self = toml::from_str(text)?;
                $(let read = Self { $part: $crate::serve::layers::Layer::parse(text)?, ..read };)*
                Ok(read)
            }

            fn layered_over(self, below: Self) -> Self {
                let has_choice = [$($crate::serve::layers::OptionalFlag::is_given(&self.$setting)),*].contains(&true);
                let below = if has_choice { Self { $($setting: Default::default(),)* ..below } } else { below };
                Self {
                    $($key: if $crate::serve::layers::OptionalFlag::is_given(&self.$key) { self.$key } else { below.$key },)*
                    $($list: [below.$list, self.$list].concat(),)*
                    $($part: $crate::serve::layers::Layer::layered_over(self.$part, below.$part),)*
                    $($cli_only: self.$cli_only,)*
                }
            }
        }
    };
}

pub(crate) use layer;

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;
    use crate::cli::cache::Cache;
    use crate::cli::dhttp::{Gateway, Nat, Serve};

    fn flags<T: Args + FromArgMatches>(words: &[&str]) -> T {
        let command = T::augment_args(Command::new("x"));
        T::from_arg_matches(&command.get_matches_from(["x"].iter().chain(words))).unwrap()
    }

    fn layered_over(words: &[&str], file: &str) -> Serve {
        flags::<Serve>(words).layered_over(Serve::parse(file).unwrap())
    }

    /// Long names of the flags that a file sets.
    fn long_names<T: Args>() -> Vec<String> {
        let command = T::augment_args(Command::new("x"));
        let cli_only = ["config", "check", "trace", "force", "verbose", "print-rules", "clean"];
        let names = command
            .get_arguments()
            .map(|argument| argument.get_long().map_or_else(|| argument.get_id().to_string(), str::to_owned));
        names.filter(|name| !cli_only.contains(&name.as_str())).collect()
    }

    fn keys<T: Layer>() -> Vec<String> {
        T::default().entries().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_key_is_named_as_its_flag() {
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        assert_eq!(sorted(keys::<Serve>()), sorted(long_names::<Serve>()));
        assert_eq!(sorted(keys::<Gateway>()), sorted(long_names::<Gateway>()));
        assert_eq!(sorted(keys::<Cache>()), sorted(long_names::<Cache>()));
        assert_eq!(sorted(keys::<Nat>()), sorted(long_names::<Nat>()));
    }

    #[test]
    fn flags_override_the_file() {
        let file = "folder = \"a\"\nforwarded = true\nthreads = 3\nlimit = [\"body=1\"]\nwith = [\"parts\"]\nmetrics = \"m\"\n";
        let read = layered_over(&["--origin", "o", "--limit", "body=2", "--without", "parts"], file);
        assert_eq!((read.folder, read.origin), (None, Some("o".to_owned())));
        assert_eq!((read.forwarded, read.threads.as_deref()), (true, Some("3")));
        assert_eq!(read.limit, ["body=1", "body=2"]);
        assert_eq!((read.extensions.with, read.extensions.without), (vec![], vec!["parts".to_owned()]));
        assert_eq!(read.operation.metrics.as_deref(), Some("m"));
        let gateway = flags::<Gateway>(&["--allow", "192.0.2.1"]);
        let gateway =
            gateway.layered_over(Gateway::parse("allow = [\"203.0.113.0/24\"]\nmemory = \"1MiB\"").unwrap());
        assert_eq!(
            (gateway.allow, gateway.storage.memory),
            (vec!["192.0.2.1".to_owned()], Some("1MiB".to_owned()))
        );
    }

    #[test]
    fn changed_values_are_named_by_their_flags() {
        let (setting, other) = (
            layered_over(&[], "limit = [\"body=1\"]\nlisten = \"a\""),
            layered_over(&[], "limit = [\"body=2\"]\nlisten = \"a\""),
        );
        assert_eq!(setting.changed(&other, &["listen", "limit"]), ["--limit"]);
        assert_eq!(reloaded(&setting.changed(&setting, &["limit"])), "reloaded the configuration");
    }

    #[test]
    fn an_invalid_file_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        for (text, expected) in [
            ("listen = \"a\"\nthreads = \"x\"\n", "line 2: invalid type"),
            ("\nthread = 1\n", "line 2: unknown field `thread`, expected one of "),
            ("force = true\n", "line 1: unknown field `force`"),
            ("\n\nprofile = \"none\"\n", "line 3: unknown variant `none`, expected `internet` or `paper`"),
            ("a", "line 1: "),
        ] {
            std::fs::write(&path, text).unwrap();
            let refused = layered(&Serve::default(), Some(&path)).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }
}
