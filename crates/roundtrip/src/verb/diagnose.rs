//! `roundtrip diagnose`: captures in, the cause of every stall out.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use capture::live::{self, LiveOptions};
use report::command::CommandExit;
use report::filter::Filter;
use report::{Capture, page, verdict};
use scenario::Network;
use scenario::network::Links;
use testbed::emulator::Running;
use testbed::loopback::{self, CLIENT_DEVICE};
use wire::Seed;

use crate::cli::gate::Format;
use crate::cli::{Diagnose, diagnosed_command};
use crate::failure::{Failure, shown};
use crate::feature::Feature;
use crate::terminal::warn;
use crate::verb::gate;
use crate::{file, plots};

/// Returns 1 if a finding fails by the policy, 3 if nothing could be judged, otherwise 0.
pub fn run(arguments: &Diagnose) -> Result<ExitCode, Failure> {
    let Diagnose { files, flows, causes, since, svg, png, xpl, gate: flags, format, report, .. } = arguments;
    let words: Vec<OsString> = files.iter().map(|path| path.clone().into_os_string()).collect();
    if let Some(sentence) = diagnosed_command::misplaced_command_error(&words) {
        return Err(Failure::Value(sentence));
    }
    // clap drops what a flag requires if an argument excludes that: `--isolated` would be ignored beside a file.
    if let (Some(first), true) = (files.first(), arguments.run) {
        let first = shown(first);
        return Err(Failure::Value(format!(
            "{first} and --run exclude each other; give a capture or a command"
        )));
    }
    if png.is_some() {
        Feature::Png.require("--png").map_err(Failure::Value)?;
    }
    let mut filter = Filter::new(flows, causes, since.as_deref())?;
    let mut policy = gate::policy(flags)?;
    policy.has_own_servers = arguments.isolated.is_some();
    let is_plotted = svg.is_some()
        || png.is_some()
        || xpl.is_some()
        || report.is_some()
        || matches!(format, Format::Markdown | Format::Github);
    let live_options = live_options(arguments)?;
    let network = isolate(arguments)?;
    let captures = match live_options {
        Some(options) => {
            filter.is_whole = !options.command.is_empty();
            let is_watched = matches!(network, CommandNetwork::Watched);
            capture_runs(&options, &filter, is_plotted, arguments, is_watched)?
        }
        None => capture::read_all(files, &filter, is_plotted, arguments.keys.as_deref())?,
    };
    if let CommandNetwork::Emulated(link) = network
        && let Some(void) = link.stop()?.void()
    {
        warn(&format!("the emulated link missed its settings, so these times are void: {void}"));
    }
    for capture in &captures {
        for note in capture.warnings.iter().chain(&capture.damage) {
            warn(&format!("{}: {note}", capture.name));
        }
    }
    if flags.runs.is_some() {
        policy.needed = captures.len() / 2 + 1;
    }
    let mut verdict = verdict::judge(&captures, &policy);
    if let Some(path) = &flags.write_baseline {
        let baseline = verdict.baseline();
        file::write(path, baseline.text().as_bytes())?;
        policy.known.extend(baseline);
        verdict = verdict::judge(&captures, &policy);
    }
    gate::show(&captures, &verdict, *format, flags)?;
    if let Some(path) = report {
        file::write(path, page::page(&captures).as_bytes())?;
    }
    svg.as_ref().map_or(Ok(()), |directory| plots::write_svg(&captures, directory))?;
    png.as_ref().map_or(Ok(()), |directory| plots::write_png(&captures, directory))?;
    xpl.as_ref().map_or(Ok(()), |directory| plots::write_xplot(&captures, directory))?;
    Ok(gate::status(&captures, &verdict, flags))
}

/// Network of a command.
enum CommandNetwork {
    /// Packets are captured.
    Captured,
    /// They are captured on an emulated link.
    Emulated(Running),
    /// Namespaces are forbidden: sockets are watched instead.
    Watched,
}

/// Enters a private network, if requested. Where the system forbids it, sockets are watched, unless packets are needed.
fn isolate(arguments: &Diagnose) -> Result<CommandNetwork, Failure> {
    match arguments.isolated.as_deref() {
        None => Ok(CommandNetwork::Captured),
        Some("") => match capture::isolated::enter() {
            Ok(()) => Ok(CommandNetwork::Captured),
            Err(error @ capture::Error::Forbidden { .. }) => match needs_packets(arguments) {
                Some(flag) => Err(Failure::Laboratory(format!("{error}; {flag} needs packets"))),
                None => {
                    warn(&format!("{error}; the command's sockets are watched instead, without packets"));
                    Ok(CommandNetwork::Watched)
                }
            },
            Err(error) => Err(error.into()),
        },
        Some(name) => {
            let named = Network::named(name);
            let network = named.map_err(|unknown| Failure::Value(format!("--isolated: {unknown}")))?;
            let Links { up, down } = network.links();
            let mtu = u32::try_from(network.mtu().get()).unwrap_or(u32::MAX);
            capture::isolated::enter()?;
            Ok(CommandNetwork::Emulated(loopback::start(&up, &down, mtu, Seed::default())?))
        }
    }
}

/// Returns the first flag that needs packets.
fn needs_packets(arguments: &Diagnose) -> Option<&'static str> {
    let Diagnose { write, keys, flows, causes, since, svg, png, xpl, report, format, .. } = arguments;
    let flags = [
        ("--keys", keys.is_some()),
        ("--write", write.is_some()),
        ("--flow", !flows.is_empty()),
        ("--cause", !causes.is_empty()),
        ("--since", since.is_some()),
        ("--svg", svg.is_some()),
        ("--png", png.is_some()),
        ("--xpl", xpl.is_some()),
        ("--report", report.is_some()),
        ("--format csv", *format == Format::Csv),
        ("--format har", *format == Format::Har),
    ];
    flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
}

/// Captures all runs live. An interrupted run is the last.
fn capture_runs(
    options: &LiveOptions,
    filter: &Filter,
    is_plotted: bool,
    arguments: &Diagnose,
    is_watched: bool,
) -> Result<Vec<Capture>, Failure> {
    let count = arguments.gate.runs.unwrap_or(1);
    let mut captures = Vec::new();
    for number in 1..=count {
        let mut capture = match is_watched {
            true => live::watch_sockets(options, filter)?,
            false => capture_to(options, filter, is_plotted, arguments.write.as_deref())?,
        };
        if count > 1 {
            capture.name = format!("run {number} of {count}: {}", capture.name);
        }
        let is_interrupted = matches!(capture.command, Some(CommandExit::Killed(_) | CommandExit::Running));
        captures.push(capture);
        if is_interrupted {
            break;
        }
    }
    Ok(captures)
}

/// Captures live, and writes the packets to a file if one is named.
fn capture_to(
    options: &LiveOptions,
    filter: &Filter,
    is_plotted: bool,
    path: Option<&Path>,
) -> Result<Capture, Failure> {
    let Some(path) = path else { return Ok(live::capture(options, filter, is_plotted)?) };
    let mut captured = None;
    file::write_with(path, |out| {
        let written;
        (captured, written) = live::capture_into(options, filter, is_plotted, out);
        written
    })?;
    Ok(captured.ok_or_else(|| Failure::Laboratory("no packets were captured".to_owned()))??)
}

/// Returns the options of the live capture that the flags request; `None` for files.
fn live_options(arguments: &Diagnose) -> Result<Option<LiveOptions>, Failure> {
    let Diagnose { run, command, isolated, port, span, write, keys, .. } = arguments;
    if !run && port.is_none() && span.is_none() {
        return match write {
            Some(_) => Err(Failure::Value(
                "--write: only for a live capture; give --run, --port or --for instead of a file".to_owned(),
            )),
            None => Ok(None),
        };
    }
    let span =
        span.as_deref().map(quantity::positive_duration).transpose().map_err(Failure::of_flag("for"))?;
    // At the server's device each packet appears a second time.
    let interface = isolated.as_ref().filter(|name| !name.is_empty()).map(|_| CLIENT_DEVICE);
    file::check(keys.as_ref().filter(|_| *run))?;
    Ok(Some(LiveOptions { port: *port, interface, span, command: command.clone(), keys: keys.clone() }))
}
