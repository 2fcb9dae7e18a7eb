//! GitHub's workflow commands: an annotation for each case
//! (<https://docs.github.com/actions/reference/workflow-commands-for-github-actions>).
//!
//! The job summary is [`markdown`](super::markdown)'s.

use super::{cost, example, fix, one_line, reason};
use crate::verdict::{Case, Outcome, Verdict};

/// Returns the commands, one per line; `file` is where annotations are shown.
pub fn text(verdict: &Verdict<'_>, file: Option<&str>) -> String {
    if let Some(reason) = verdict.unjudged() {
        return format!("::error title=Roundtrip::{}\n", data(&reason.sentence()));
    }
    if verdict.cases.is_empty() {
        return "::notice title=Roundtrip::no stalls\n".to_owned();
    }
    verdict.cases.iter().map(|case| command(case, verdict.captures, file)).collect()
}

fn command(case: &Case<'_>, captures: usize, file: Option<&str>) -> String {
    let level = match case.outcome {
        Outcome::Fails => "error",
        Outcome::Passes | Outcome::Known | Outcome::Allowed => "notice",
    };
    let file = file.map(|file| format!("file={},line=1,", property(file))).unwrap_or_default();
    let note = reason(case).map(|reason| format!(" ({reason})")).unwrap_or_default();
    let message = format!("{}{note}\n{}\n{}", cost(case, captures), one_line(&example(case)), fix(case));
    format!("::{level} {file}title={}::{}\n", property(&case.key.to_string()), data(&message))
}

/// Escapes a message: line breaks and `%`, as `@actions/core` does.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property: also `:` and `,`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{captures, policy};
    use crate::verdict::judge;

    /// Parses a command as the runner does: name, properties and message, unescaped.
    fn read(line: &str) -> (String, Vec<(String, String)>, String) {
        let (command, message) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
        let (name, properties) = command.split_once(' ').unwrap();
        let plain = |text: &str| {
            let text = text.replace("%3A", ":").replace("%2C", ",").replace("%0D", "\r").replace("%0A", "\n");
            text.replace("%25", "%")
        };
        let properties = properties.split(',').map(|property| property.split_once('=').unwrap());
        let properties = properties.map(|(key, value)| (key.to_owned(), plain(value))).collect();
        (name.to_owned(), properties, plain(message))
    }

    #[test]
    fn the_runner_reads_every_case() {
        let captures = captures();
        let text = super::text(&judge(&captures, &policy(&captures)), Some(".github/a,b:c.yml"));
        let commands: Vec<_> = text.lines().map(read).collect();
        let names: Vec<&str> = commands.iter().map(|(name, _, _)| name.as_str()).collect();
        assert_eq!(names, ["error", "notice", "notice"]);
        let (_, properties, message) = &commands[0];
        let expected =
            [("file", ".github/a,b:c.yml"), ("line", "1"), ("title", "nagle-delayed-ack (client, port 80)")];
        assert_eq!(*properties, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert!(message.starts_with("75 ms lost") && message.contains("set TCP_NODELAY"), "{message}");
        assert!(message.chars().all(|letter| letter == '\n' || !letter.is_control()));
    }
}
