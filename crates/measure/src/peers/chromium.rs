//! Chromium as the client of a whole page: started with a DevTools pipe, sent to the document, watched until nothing is in flight.
//!
//! | module | contents |
//! | --- | --- |
//! | `devtools` | the protocol of the pipe |
//! | [`recording`] | the browser's events as records, and as a HAR |
//!
//! It runs in the calling thread's namespace, with a new profile: no cache, no tickets, no learned connections. It trusts the
//! laboratory's authority by its key, and resolves only the page's names.

mod devtools;
pub(crate) mod recording;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use base64::Engine as _;
use linux::clock::Clock;
use nix::fcntl::OFlag;
use serde_json::{Value, json};
use wire::Duration;

use super::process::{Process, RunDirectory};
use super::{ClientProgram, InstalledProgram, Visit};
use crate::Error;
use devtools::DevTools;
use recording::{BrowserTrace, Recording};

/// Time for Chromium to start, and to respond to a call, on a busy host.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before the visit, in which Chromium completes its start.
const SETTLING_TIME: Duration = Duration::from_millis(700);
/// Time without a request in flight after the event `load`, before the page counts as over although an object is missing.
const QUIET_TIME: Duration = Duration::from_secs(10);

/// Visits the page in the calling thread's namespace. Chromium and all of its processes have ended when it returns.
///
/// # Errors
/// Chromium does not start, hangs, refuses a certificate, speaks another protocol, or does not fetch the page's objects.
pub(crate) fn visit(installed: &InstalledProgram, page: &Visit, clock: Clock) -> Result<Recording, Error> {
    let failed = |what: String| Error::Run { number: 1, what: format!("chromium: {what}") };
    let directory = RunDirectory::new()?;
    let (process, mut devtools) = start(installed, page, &directory, clock)?;
    let session = attach(&mut devtools, clock).map_err(|what| {
        let printed = process.last_output_line();
        failed(format!("{what}; its last line of output: {printed}"))
    })?;
    watch(&mut devtools, &session, page, clock).map_err(failed)
}

/// Starts Chromium with a pipe of the DevTools protocol at its descriptors 3 and 4.
fn start(
    installed: &InstalledProgram,
    page: &Visit,
    directory: &RunDirectory,
    clock: Clock,
) -> Result<(Process, DevTools), Error> {
    let mut command = Command::new(&installed.path);
    command.args(ARGUMENTS);
    command.arg(format!("--user-data-dir={}", directory.path().display()));
    let mut rules: Vec<String> =
        page.addresses.iter().map(|(name, address)| format!("MAP {name} {address}")).collect();
    rules.push("MAP * ~NOTFOUND".to_owned());
    command.arg(format!("--host-resolver-rules={}", rules.join(",")));
    if let Some(trusted) = &page.trusted {
        let fingerprint = base64::engine::general_purpose::STANDARD.encode(trusted.fingerprint);
        command.arg(format!("--ignore-certificate-errors-spki-list={fingerprint}"));
    }
    if page.is_quic {
        let origins: BTreeSet<String> = page.urls.iter().filter_map(|url| origin_of(url)).collect();
        let origins: Vec<String> = origins.into_iter().collect();
        command.arg("--enable-quic").arg(format!("--origin-to-force-quic-on={}", origins.join(",")));
    } else {
        command.arg("--disable-quic");
    }
    command.arg("about:blank");
    let pipe = || {
        let (read, write) =
            nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(Error::kernel("make a pipe for chromium"))?;
        // Above the numbers that Chromium has them at, so that neither is overwritten.
        Ok::<_, Error>((above_standard(&read)?, above_standard(&write)?))
    };
    let ((commands, to), (from, events)) = (pipe()?, pipe()?);
    let own = [(commands.as_raw_fd(), 3), (events.as_raw_fd(), 4)];
    // SAFETY: between fork and exec only dup2 is called, which is safe there; it takes no pointer.
    unsafe {
        command.pre_exec(move || {
            for (descriptor, number) in own {
                if libc::dup2(descriptor, number) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    let process = Process::start(ClientProgram::Chromium.name(), command, directory)?;
    Ok((process, DevTools::new(File::from(to), File::from(from), clock)))
}

/// Host and port of an https URL.
fn origin_of(url: &str) -> Option<String> {
    let host = url.strip_prefix("https://")?.split('/').next()?;
    Some(if host.contains(':') { host.to_owned() } else { format!("{host}:443") })
}

/// A copy of a descriptor with a number of 10 or more.
fn above_standard(descriptor: &OwnedFd) -> Result<OwnedFd, Error> {
    use std::os::fd::FromRawFd;
    let copy = nix::fcntl::fcntl(descriptor, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(10))
        .map_err(Error::kernel("copy a descriptor"))?;
    // SAFETY: the descriptor has just been made, and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Without a window, a sandbox (which root cannot have), a proxy, and requests of its own.
const ARGUMENTS: [&str; 22] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    // Frames of other sites stay in the page's process, whose requests are recorded.
    "--disable-site-isolation-trials",
    // The page's process has started before it is visited, as a browser with a window holds one ready.
    "--renderer-process-limit=1",
    "--disable-sync",
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,Translate,MediaRouter,OptimizationHints,IsolateOrigins,site-per-process",
];

/// Attaches to the first page; returns the session.
fn attach(devtools: &mut DevTools, clock: Clock) -> Result<String, String> {
    let deadline = clock.now() + START_TIMEOUT;
    let target = loop {
        let targets = devtools.call(None, "Target.getTargets", json!({}), deadline)?;
        let pages = targets["targetInfos"].as_array().into_iter().flatten();
        let page = pages.filter(|target| target["type"] == "page").find_map(|page| page["targetId"].as_str());
        if let Some(page) = page {
            break page.to_owned();
        }
        devtools.next(clock.now() + Duration::from_millis(50))?;
    };
    let parameters = json!({"targetId": target, "flatten": true});
    let attached = devtools.call(None, "Target.attachToTarget", parameters, deadline)?;
    let session = attached["sessionId"].as_str().ok_or("it attaches to no page")?.to_owned();
    for domain in ["Network.enable", "Page.enable"] {
        devtools.call(Some(&session), domain, json!({}), deadline)?;
    }
    // Events of the start are of no interest.
    let settled = clock.now() + SETTLING_TIME;
    while devtools.next(settled)?.is_some() {}
    Ok(session)
}

/// Categories of trace events that Lighthouse's simulated throttling reads (lighthouse 12, core/gather/gatherers/trace.js).
const TRACE_CATEGORIES: [&str; 7] = [
    "-*",
    "disabled-by-default-lighthouse",
    "loading",
    "v8.execute",
    "blink.user_timing",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",
];

/// Ends the trace, and returns its events.
fn end_trace(devtools: &mut DevTools, session: &str, clock: Clock) -> Result<Vec<Value>, String> {
    let deadline = clock.now() + START_TIMEOUT;
    devtools.call(Some(session), "Tracing.end", json!({}), deadline)?;
    let mut events = Vec::new();
    while let Some(mut message) = devtools.next(deadline)? {
        if message["method"] == "Tracing.tracingComplete" {
            return Ok(events);
        }
        if let Value::Array(some) = message["params"]["value"].take() {
            events.extend(some);
        }
    }
    Err("it does not end its trace".to_owned())
}

/// Navigates, and records until every object has ended.
fn watch(devtools: &mut DevTools, session: &str, page: &Visit, clock: Clock) -> Result<Recording, String> {
    let deadline = clock.now() + page.deadline;
    let document = page.urls.first().map_or("", String::as_str);
    let parameters = json!({"url": document});
    let mut recording = Recording::default();
    recording.trace = page.has_trace.then(BrowserTrace::default);
    if page.has_trace {
        let parameters = json!({"categories": TRACE_CATEGORIES.join(","), "transferMode": "ReportEvents"});
        devtools.call(Some(session), "Tracing.start", parameters, deadline)?;
    }
    let navigated = devtools.call(Some(session), "Page.navigate", parameters, deadline)?;
    if let Some(reason) = navigated["errorText"].as_str() {
        return Err(format!("{document}: {reason}"));
    }
    let expected: BTreeSet<&str> = page.urls.iter().map(String::as_str).collect();
    let mut quiet_since = None;
    loop {
        if let Some(fault) = recording.fault(page.protocol) {
            return Err(fault);
        }
        let is_complete = || expected.iter().all(|url| recording.ended().contains_key(url));
        if recording.is_quiet() && is_complete() {
            if let Some(trace) = &mut recording.trace {
                trace.events = end_trace(devtools, session, clock)?;
            }
            return Ok(recording);
        }
        let now = clock.now();
        quiet_since = if recording.is_quiet() { quiet_since.or(Some(now)) } else { None };
        let until = quiet_since.map_or(deadline, |since| (since + QUIET_TIME).min(deadline));
        match devtools.next(until)? {
            Some(message) => recording.add(&message),
            None => {
                let ended = recording.ended();
                let missing: Vec<&&str> = expected.iter().filter(|url| !ended.contains_key(**url)).collect();
                let (count, of) = (missing.len(), expected.len());
                let first = missing.first().map_or("", |url| **url);
                return Err(match (count, recording.load()) {
                    (_, None) => format!(
                        "the page did not load within {}; {count} of {of} objects are missing, first {first}",
                        page.deadline
                    ),
                    (0, _) => format!("a request was in flight after {}", page.deadline),
                    (..) => format!("it did not fetch {count} of {of} objects, first {first}"),
                });
            }
        }
    }
}
