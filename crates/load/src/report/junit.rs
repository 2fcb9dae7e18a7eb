//! Thresholds of a run as JUnit's XML: a test for each, as CI systems show results of tests.

use crate::report::result::Run;
use crate::thresholds::CheckedThreshold;

/// The document.
pub fn text(run: &Run<'_>) -> String {
    let judged = run.thresholds();
    let failures = judged.iter().filter(|judged| !judged.passed).count();
    let tests: String = judged.iter().map(|judged| test(run, judged)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"roundtrip load\" tests=\"{}\" \
         failures=\"{failures}\" errors=\"0\" skipped=\"0\">\n{tests}  </testsuite>\n</testsuites>\n",
        judged.len()
    )
}

fn test(run: &Run<'_>, judged: &CheckedThreshold) -> String {
    let message = escaped(judged.sentence().trim());
    let verdict = escaped(run.verdict());
    let body = match judged.passed {
        true => format!("<system-out>{message}</system-out>"),
        false => format!("<failure type=\"threshold\" message=\"{message}\">{verdict}</failure>"),
    };
    format!(
        "    <testcase classname=\"roundtrip.{}\" name=\"{}\" time=\"{}\">{body}</testcase>\n",
        escaped(run.target()),
        escaped(judged.name),
        run.seconds()
    )
}

/// Escapes a text for XML 1.0; control characters become spaces.
fn escaped(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    render::report::html::escaped(&text)
}
