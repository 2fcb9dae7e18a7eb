//! The Test Anything Protocol, version 14 (<https://testanything.org/tap-version-14-specification.html>): a test point for
//! each case, with a YAML block for one that fails.

use serde_json::Value;

use super::{cost, example, fix, one_line, reason};
use crate::verdict::{Case, Outcome, Verdict};

/// Returns the stream.
pub fn text(verdict: &Verdict<'_>) -> String {
    let mut text = "TAP version 14\n".to_owned();
    if let Some(reason) = verdict.unjudged() {
        return text + &format!("1..1\nnot ok 1 - {}\n", escaped(&reason.sentence()));
    }
    if verdict.cases.is_empty() {
        return text + "1..1\nok 1 - no stalls\n";
    }
    text += &format!("1..{}\n", verdict.cases.len());
    for (number, case) in (1..).zip(&verdict.cases) {
        text += &point(number, case, verdict.captures);
    }
    text
}

fn point(number: usize, case: &Case<'_>, captures: usize) -> String {
    let description = escaped(&format!("{}: {}", case.key, cost(case, captures)));
    match case.outcome {
        Outcome::Fails => format!("not ok {number} - {description}\n{}", details(case)),
        Outcome::Passes => format!("ok {number} - {description}\n"),
        Outcome::Known | Outcome::Allowed => {
            format!("ok {number} - {description} # SKIP {}\n", reason(case).unwrap_or_default())
        }
    }
}

/// Formats a YAML block. Strings are JSON's, which are valid in YAML.
fn details(case: &Case<'_>) -> String {
    let quoted = |text: String| Value::from(one_line(&text)).to_string();
    format!(
        "  ---\n  message: {}\n  severity: {}\n  fix: {}\n  ...\n",
        quoted(example(case)),
        case.severity.name(),
        quoted(fix(case))
    )
}

/// Escapes a description: `\` and `#`; the result is one line.
fn escaped(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{captures, policy, unseen};
    use crate::verdict::{Policy, judge};

    /// Parses a stream by the specification's grammar; each point as (is ok, number, is skipped).
    fn read(stream: &str) -> Vec<(bool, usize, bool)> {
        let mut lines = stream.lines();
        assert_eq!(lines.next(), Some("TAP version 14"));
        let planned: usize = lines.next().unwrap().strip_prefix("1..").unwrap().parse().unwrap();
        let (mut points, mut is_yaml) = (Vec::new(), false);
        for line in lines {
            match line {
                "  ---" => {
                    assert!(!is_yaml && matches!(points.last(), Some((false, _, _))));
                    is_yaml = true;
                }
                "  ..." => is_yaml = false,
                line if is_yaml => {
                    let (key, value) = line.strip_prefix("  ").unwrap().split_once(": ").unwrap();
                    assert!(key.chars().all(char::is_alphabetic));
                    let is_word = value.chars().all(char::is_alphanumeric);
                    assert!(is_word || serde_json::from_str::<String>(value).is_ok(), "{value}");
                }
                line => points.push(point(line)),
            }
        }
        assert!(!is_yaml && planned == points.len());
        points
    }

    fn point(line: &str) -> (bool, usize, bool) {
        let (is_ok, rest) = match line.strip_prefix("not ok ") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix("ok ").unwrap()),
        };
        let (number, description) = rest.split_once(" - ").unwrap();
        let directives: Vec<usize> = description
            .match_indices(" # ")
            .map(|(at, _)| at)
            .filter(|at| !description[..*at].ends_with('\\'))
            .collect();
        let is_skipped = directives.first().is_some_and(|at| description[at + 3..].starts_with("SKIP "));
        assert_eq!(directives.len(), usize::from(is_skipped), "{line}");
        (is_ok, number.parse().unwrap(), is_skipped)
    }

    #[test]
    fn the_stream_follows_the_grammar() {
        let captures = captures();
        let stream = super::text(&judge(&captures, &policy(&captures)));
        assert_eq!(read(&stream), [(false, 1, false), (true, 2, true), (true, 3, true)]);
        assert_eq!(read(&super::text(&judge(&[], &Policy::default()))), [(true, 1, false)]);
        assert_eq!(read(&super::text(&judge(&unseen(), &Policy::default()))), [(false, 1, false)]);
    }

    #[test]
    fn a_description_cannot_become_a_directive() {
        assert_eq!(super::escaped("a # SKIP\nnot ok"), "a \\# SKIP not ok");
    }
}
