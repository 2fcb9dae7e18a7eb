//! Facts from the host of a live capture beside scripted packets, and advice that fits.

use diagnose::finding::Severity;
use diagnose::host::{HostFacts, SenderTimes};
use diagnose::report::VantagePoint;
use diagnose::{Cause, Doubt, Finding, FlowReport, Share, Side};
use wire::Duration;

use crate::script::{Script, at_client, opened};

/// A message whose second half follows a pause, and was not captured.
fn unexplained() -> FlowReport {
    let lines = "30 C send=100\n45 S send=1460\n60.1 C\n600 S send=1460 missed\n615 C ack=2920";
    Script { one_way_ms: 15.0, lines: &opened(15.0, lines) }.diagnose(VantagePoint::Server)
}

#[test]
fn first_handshake_of_a_virtual_machine_is_doubted_at_its_side() {
    const DATA: &str = "\n970.1 C records=300\n986 S records=900";
    let is_worth_fixing = |programs: [&str; 2], data: &str| {
        let lines = format!("30 C client-hello\n45 S server-hello\n970 C records=53{data}");
        let mut report = at_client(&lines);
        let programs = programs.map(|name| Some(name.to_owned()));
        report.host = Some(Box::new(HostFacts { programs, ..HostFacts::default() }));
        report.hear_first_use();
        report.is_worth_fixing()
    };
    assert!(!is_worth_fixing(["java", "nginx"], DATA));
    assert!(is_worth_fixing(["python3", "java"], DATA));
    // A browser opens connections that it does not use.
    assert!(!is_worth_fixing(["chromium", "nginx"], "\n985 S"));
    assert!(is_worth_fixing(["python3", "nginx"], "\n985 S"));
}

#[test]
fn response_of_a_connection_that_was_accepted_late_is_late() {
    let late = || {
        let mut lines = "30 C send=100\n45.1 S\n600 S send=400\n615 C\n".to_owned();
        for at in (620..900).step_by(40) {
            lines += &format!("{at} C send=100\n{} S send=400\n{} C\n", at + 15, at + 30);
        }
        at_client(&lines)
    };
    let mut report = late();
    assert!(!report.is_worth_fixing(), "it may have warmed up");
    report.hear_accept(Duration::from_millis(10));
    assert!(!report.is_worth_fixing(), "it was accepted at once");
    report.hear_accept(Duration::from_millis(100));
    assert!(!report.is_worth_fixing(), "most of the time the program had it");
    report.hear_accept(Duration::from_millis(580));
    assert!(report.is_worth_fixing());
    let finding = report.findings.iter().find(|finding| finding.cause == Cause::ServerThink).unwrap();
    assert!(finding.evidence.ends_with("520 ms of this before the program accepted it"), "{finding:?}");
    assert!(!finding.evidence.contains("warmed up"));
}

#[test]
fn kernels_count_names_time_that_the_packets_leave_unknown() {
    let mut report = unexplained();
    let unknown = report.account.of(Share::Unknown);
    assert!(unknown > Duration::from_millis(300), "{:?}", report.account);
    let total = report.account.total();
    let times =
        |receive_window| SenderTimes { busy: receive_window, receive_window, ..SenderTimes::default() };
    report.hear_kernel(Side::Server, times(Duration::from_millis(300)));
    let found = report.findings.iter().find(|finding| finding.cause == Cause::ReceiveWindowLimited).unwrap();
    assert_eq!((found.lost, found.severity), (Duration::from_millis(300), Severity::High));
    assert_eq!((report.account.total(), report.doubts.total()), (total, report.account.of(Share::Unknown)));
    // A socket that lingered, and one whose window grew as data came.
    for quiet in [Duration::from_secs(6), Duration::from_millis(50)] {
        let mut report = unexplained();
        report.hear_kernel(Side::Server, times(quiet));
        assert_eq!(report.account.of(Share::Unknown), unknown);
    }
}

/// A window that data behind a loss fills holds its sender; the rest of the response comes after the repair.
#[test]
fn window_behind_a_loss_is_the_losses() {
    let lines = "30 C send=100\n45 S send=1460\n45.1 S send=1460 missed\n45.2 S send=1460\n60.3 C ack=1460\n\
                 460 S send=1460\n475.1 C ack=1460\n500 S seq=1460 send=1460\n515.1 C ack=5840";
    let script = Script { one_way_ms: 15.0, lines: &opened(15.0, lines) };
    let mut report = script.diagnose(VantagePoint::Client);
    let unknown = report.account.of(Share::Unknown);
    assert!(report.doubts.sorted().contains(&(Doubt::DataMissing, unknown)), "{:?}", report.doubts);
    assert!(unknown >= Duration::from_millis(300), "{:?}", report.account);
    let receive_window = Duration::from_millis(400);
    report.hear_kernel(
        Side::Server,
        SenderTimes { busy: receive_window, receive_window, ..SenderTimes::default() },
    );
    assert_eq!(report.account.of(Share::Unknown), unknown);
}

/// Requests to a server that needs 300 ms for each response.
fn late() -> FlowReport {
    let mut lines = String::new();
    for at in [30, 400, 770] {
        lines += &format!("{at} C text=GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n\n{}.1 S\n", at + 15);
        lines += &format!(
            "{} S text=HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok\n{} C\n",
            at + 315,
            at + 330
        );
    }
    at_client(&lines)
}

#[test]
fn first_requests_of_a_virtual_machine_are_doubted_if_later_ones_are_quick() {
    let is_worth_fixing = |program: &str, first: u64, later: u64| {
        let mut report = late();
        // Its first response ends after 330 ms.
        report.findings.retain(|finding| finding.at <= report.started + Duration::from_millis(330));
        let programs = [None, Some(program.to_owned())];
        report.host = Some(Box::new(HostFacts { programs, ..HostFacts::default() }));
        let ended = report.started + Duration::from_millis(first);
        if report.is_of_virtual_machine() {
            report.hear_first_responses(ended, Duration::from_millis(later));
        }
        report.is_worth_fixing()
    };
    assert!(!is_worth_fixing("java", 330, 100));
    assert!(is_worth_fixing("java", 330, 290), "later ones are as slow");
    assert!(is_worth_fixing("java", 0, 100), "it came later");
    assert!(is_worth_fixing("nginx", 330, 100));
}

#[test]
fn response_that_was_late_while_threads_waited_for_a_cpu_is_the_hosts() {
    let saved = |report: &FlowReport| {
        let count = report.counts.iter().find(|count| count.cause == Cause::ServerThink);
        count.unwrap().saving.as_nanos() / 3_000_000
    };
    let heard = |delayed: u64| {
        let mut report = late();
        let before = saved(&report);
        report.hear_run_queue(|_, _| Duration::from_millis(delayed));
        let is_named = report.findings.iter().any(|finding| finding.evidence.contains("host was busy"));
        (report.is_worth_fixing(), before - saved(&report), is_named)
    };
    assert_eq!(heard(0), (true, 0, false));
    assert_eq!(heard(10), (true, 0, false), "imperceptible");
    assert_eq!(heard(100), (true, 100, true), "most of the time is the program's");
    assert_eq!(heard(240), (false, 240, true));
}

/// A window of four kilobytes that stops the server each round trip, while the client's program works for a part of the time.
#[test]
fn reader_that_computes_while_its_window_is_full_could_not_read_sooner() {
    let heard = |parts: [u64; 2]| {
        let mut lines = "30 C send=100 win=4380\n".to_owned();
        for round in 0..8 {
            let at = 45.0 + 60.0 * f64::from(round);
            for segment in 0..3 {
                lines += &format!("{} S send=1460\n", at + 0.1 * f64::from(segment));
            }
            lines += &format!("{} C win=4380\n", at + 45.0);
        }
        let mut report =
            Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Client);
        let first =
            report.findings.iter().find(|finding| finding.cause == Cause::ReceiveWindowLimited).cloned();
        // What the kernel counted beyond that has the first packet alone.
        let (lost, packets) = (Duration::from_secs(9), vec![1]);
        report.findings.push(Finding { cause: Cause::ZeroWindow, lost, packets, ..first.unwrap() });
        let work = |lost: Duration| {
            if lost.as_secs_f64() < 1.0 { lost * parts[0] / parts[1] } else { Duration::ZERO }
        };
        report.hear_reader(Side::Client, |_, lost| work(lost));
        let found: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|found| {
                found.lost > Duration::ZERO
                    && matches!(found.cause, Cause::ReceiveWindowLimited | Cause::ZeroWindow)
            })
            .collect();
        let is_named = |found: &&Finding| found.evidence.contains("computed or waited for a CPU");
        (
            found.iter().any(|found| found.severity.is_worth_fixing()),
            found.iter().copied().all(|found| is_named(&found)),
        )
    };
    assert_eq!(heard([0, 1]), (true, false));
    assert_eq!(heard([1, 2]), (true, true), "half of the time it did not read");
    assert_eq!(heard([1, 1]), (false, true));
}

#[test]
fn advice_fits_the_side_the_host_and_the_program() {
    let lines = "1 C send=100\n41 S\n41.1 C send=40\n42 S send=9";
    let mut report = Script { one_way_ms: 0.01, lines: &opened(0.01, lines) }.diagnose(VantagePoint::Client);
    let held =
        report.findings.iter().find(|finding| finding.cause == Cause::NagleDelayedAck).cloned().unwrap();
    let advice = |report: &FlowReport| {
        report.fixes_of(&held).into_iter().map(|(_, change)| change).collect::<Vec<_>>().join("; ")
    };
    assert!(advice(&report).contains("write headers and body with one call"));
    report.host = Some(Box::new(HostFacts {
        programs: [Some("socat".to_owned()), None],
        buffers: [Some("4096 131072 6291456".to_owned()), None],
    }));
    assert_eq!(advice(&report), "give the address the option nodelay (TCP:HOST:PORT,nodelay)");
    let limited = Finding { cause: Cause::ReceiveWindowLimited, ..held.clone() };
    let changes: Vec<String> = report.fixes_of(&limited).into_iter().map(|(_, change)| change).collect();
    assert!(
        changes.iter().any(|change| change.ends_with("(now tcp_rmem='4096 131072 6291456')")),
        "{changes:?}"
    );
    assert!(changes.iter().any(|change| change.contains("rcvbuf=")), "{changes:?}");
    // The sender is the server: nginx's buffer is not the receiver's.
    let limited = Finding { side: Side::Server, ..limited };
    assert!(report.fixes_of(&limited).iter().all(|(_, change)| !change.contains("rcvbuf=")));
    let lost = Finding { cause: Cause::RetransmissionTimeout, ..held.clone() };
    let says_radio =
        |report: &FlowReport| report.fixes_of(&lost).iter().any(|(_, change)| change.contains("Wi-Fi"));
    assert!(says_radio(&report));
    report.server.set_ip(report.client.ip());
    assert!(!says_radio(&report));
}

/// A report with the waits of a server in milliseconds, and its last fix.
fn last_fix(waits: &[u32]) -> String {
    let (mut lines, mut at) = (String::new(), 30);
    for wait in waits {
        lines +=
            &format!("{at} C send=100\n{} S\n{} S send=100\n{} C\n", at + 15, at + 15 + wait, at + 31 + wait);
        at += 40 + wait;
    }
    let report = at_client(&lines);
    let wait = report.findings.iter().find(|finding| finding.cause == Cause::ServerThink).unwrap();
    report.fixes_of(wait).pop().unwrap().1
}

#[test]
fn waits_as_long_as_a_cork_timer_name_it() {
    assert!(last_fix(&[201, 208, 212, 205]).contains("TCP_CORK"));
    assert!(!last_fix(&[201, 208, 150, 205]).contains("TCP_CORK"));
    assert!(!last_fix(&[205]).contains("TCP_CORK"));
}
