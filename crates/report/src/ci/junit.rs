//! JUnit's XML: a test for each case, as CI systems show results of tests.
//!
//! There is no standard; the elements are those of the schema that Jenkins publishes.

use super::{cost, example, fix, reason};
use crate::verdict::{Case, Outcome, Unjudged, Verdict};

/// Returns the document.
pub fn text(verdict: &Verdict<'_>) -> String {
    let cases: String = verdict.cases.iter().map(|case| test(case, verdict.captures)).collect();
    let count = |outcome| verdict.cases.iter().filter(|case| case.outcome == outcome).count();
    let (failures, skipped) = (count(Outcome::Fails), count(Outcome::Known) + count(Outcome::Allowed));
    // A suite without tests is an error to some consumers.
    let (tests, cases, errors) = match (verdict.cases.len(), verdict.unjudged()) {
        (tests, Some(reason)) => (tests + 1, cases + &error(reason), 1),
        (0, None) => {
            (1, "    <testcase classname=\"roundtrip\" name=\"no stalls\" time=\"0\"/>\n".to_owned(), 0)
        }
        (tests, None) => (tests, cases, 0),
    };
    let counts =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  \
         <testsuite name=\"roundtrip diagnose\" {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

fn test(case: &Case<'_>, captures: usize) -> String {
    let location = escaped(&case.key.location());
    // To the microsecond: a quotient of two numbers has digits of its own.
    let seconds = (case.lost.as_secs_f64() * 1e6).round() / 1e6;
    let start = format!(
        "    <testcase classname=\"roundtrip.{location}\" name=\"{}\" time=\"{seconds}\">",
        case.key.cause.name()
    );
    let message = escaped(&cost(case, captures));
    let body = match case.outcome {
        Outcome::Fails => format!(
            "<failure type=\"{}\" message=\"{message}\">{}\n{}</failure>",
            case.severity.name(),
            escaped(&example(case)),
            escaped(&fix(case))
        ),
        Outcome::Known | Outcome::Allowed => {
            format!("<skipped message=\"{message}: {}\"/>", reason(case).unwrap_or_default())
        }
        Outcome::Passes => format!("<system-out>{message}: {}</system-out>", escaped(&example(case))),
    };
    format!("{start}{body}</testcase>\n")
}

/// Escapes a text for XML 1.0 elements and attributes; invalid characters become spaces.
/// Formats the test that reports that nothing could be judged.
fn error(reason: Unjudged) -> String {
    format!(
        "    <testcase classname=\"roundtrip\" name=\"verdict\" time=\"0\"><error type=\"unjudged\" \
         message=\"{}\"/></testcase>\n",
        escaped(&reason.sentence())
    )
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut all, letter| {
        match letter {
            '&' => all += "&amp;",
            '<' => all += "&lt;",
            '>' => all += "&gt;",
            '"' => all += "&quot;",
            '\u{fffe}' | '\u{ffff}' => all.push(' '),
            letter if letter.is_control() => all.push(' '),
            letter => all.push(letter),
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::super::tests::{captures, policy, unseen};
    use crate::verdict::{Policy, judge};

    /// Reads a document with an XML parser, as CI systems do: the counts, and each test with its result.
    const READER: &str = "
import sys, xml.etree.ElementTree as tree
suite, = tree.parse(sys.stdin).getroot()
assert suite.tag == 'testsuite'
cases = suite.findall('testcase')
assert int(suite.get('tests')) == len(cases) == len(suite)
assert int(suite.get('failures')) == len(suite.findall('testcase/failure'))
assert int(suite.get('errors')) == len(suite.findall('testcase/error'))
assert int(suite.get('skipped')) == len(suite.findall('testcase/skipped'))
for case in cases:
    assert float(case.get('time')) >= 0
    print(case.get('classname'), case.get('name'), *(child.tag for child in case))
";

    fn read(document: &str) -> String {
        let mut reader = Command::new("python3")
            .args(["-c", READER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        reader.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
        let output = reader.wait_with_output().unwrap();
        assert!(output.status.success(), "{document}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn an_xml_parser_reads_every_case() {
        if !skip::has("python3") {
            return;
        }
        let captures = captures();
        let document = super::text(&judge(&captures, &policy(&captures)));
        assert_eq!(
            read(&document),
            "roundtrip.client, port 80 nagle-delayed-ack failure\n\
             roundtrip.server, port 80 server-think skipped\n\
             roundtrip.client, port 80 retransmission-timeout skipped\n"
        );
        let none = super::text(&judge(&[], &Policy::default()));
        assert_eq!(read(&none), "roundtrip no stalls\n");
        let unseen = unseen();
        assert_eq!(read(&super::text(&judge(&unseen, &Policy::default()))), "roundtrip verdict error\n");
    }

    #[test]
    fn characters_invalid_in_xml_are_escaped_or_dropped() {
        assert_eq!(super::escaped("a<b>&\"c\"\u{1b}\u{ffff}"), "a&lt;b&gt;&amp;&quot;c&quot;  ");
    }
}
