//! The verdict on a run: the first line of its results.

use crate::attribution::{self, Attribution, Kind};
use crate::bottleneck::lateness_us;
use crate::record::Record;

/// The verdict on a run: the first line of its results.
pub fn verdict(record: &Record) -> String {
    verdict_of(record, &attribution::attribute(record, ""))
}

/// The verdict on a run with this bottleneck.
pub fn verdict_of(record: &Record, bottleneck: &Attribution) -> String {
    let Attribution { kind, sentence, .. } = bottleneck;
    let on_time = format!("requests left within {:.0} us of their schedule (99.9%)", lateness_us(record));
    let failed = failed(record);
    match (kind, failed.is_empty()) {
        (Kind::Generator | Kind::GeneratorSockets, _) => sentence.clone(),
        (_, true) => format!("{sentence}; {on_time}"),
        (Kind::Nothing | Kind::Users, false) => format!("{failed}; {on_time}"),
        (_, false) => format!("{failed}; {sentence}; {on_time}"),
    }
}

/// The failures of a run in words; empty if there are none.
fn failed(record: &Record) -> String {
    let failures = record.failures();
    if failures == 0 {
        return String::new();
    }
    let requests = record.responses() + failures;
    let share = 100.0 * record.failure_share();
    // A share must not be rounded to none, or to all.
    let share = match failures {
        _ if failures == requests => "100%".to_owned(),
        _ if share < 0.01 => "less than 0.01%".to_owned(),
        _ if share > 99.99 => "more than 99.99%".to_owned(),
        _ => format!("{share:.2}%"),
    };
    let kinds: Vec<_> =
        record.failure_counts.iter().map(|(reason, count)| format!("{count} {}", reason.name())).collect();
    let whole = if failures == requests { "EVERY REQUEST FAILED" } else { "REQUESTS FAILED" };
    format!("{whole}: {failures} of {requests}, {share} ({})", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Channel, FailureReason};
    use crate::second::Second;

    #[test]
    fn regress_a_few_late_pages_at_a_low_rate_are_not_a_bottleneck_and_many_are() {
        let run = |late: [u64; 20]| {
            let second = |late| Second { due: 118, late, responses: 118, ..Second::default() };
            verdict(&Record { seconds: late.map(second).into(), ..Record::default() })
        };
        let mut late = [0; 20];
        [late[3], late[8], late[12]] = [3, 2, 5];
        assert!(run(late).starts_with("no bottleneck in "), "{}", run(late));
        // Too few in each second to be significant, 2.5% in all.
        let always = run([3; 20]);
        assert!(always.starts_with("THE GENERATOR WAS THE BOTTLENECK: 2.5%"), "{always}");
    }

    #[test]
    fn regress_a_run_with_failures_never_has_the_verdict_of_no_bottleneck() {
        let second = Second { due: 30, responses: 20, failed: 10, ..Second::default() };
        let mut record = Record { seconds: vec![second], ..Record::default() };
        record.channels.insert(Channel::TcpClient, 20);
        record.failure_counts.insert(FailureReason::Status, 10);
        let reported = verdict(&record);
        assert!(
            reported.starts_with("REQUESTS FAILED: 10 of 30, 33.33% (10 status); requests left"),
            "{reported}"
        );
        record.channels.clear();
        let reported = verdict(&record);
        assert!(reported.starts_with("EVERY REQUEST FAILED: 10 of 10, 100% (10 status)"), "{reported}");
    }

    #[test]
    fn a_verdict_names_the_generator_first_if_it_was_the_bottleneck() {
        let seconds = vec![Second::default(), Second { due: 9, late: 9, ..Second::default() }];
        let record = Record { seconds, ..Record::default() };
        assert!(
            verdict(&record).starts_with("THE GENERATOR WAS THE BOTTLENECK in 1 of 2 seconds"),
            "{}",
            verdict(&record)
        );
    }
}
