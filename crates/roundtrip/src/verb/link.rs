//! `roundtrip link`: a command behind an emulated link, in a private network.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use capture::command::{self, Signals};
use capture::live::{BackgroundCapture, LiveOptions};
use capture::outside::{self, Outside};
use render::output::grid::wrap;
use report::command::CommandExit;
use report::filter::Filter;
use report::{Capture, page, text};
use scenario::network::Links;
use scenario::spec::Defaults;
use scenario::{Network, Spec};
use testbed::emulator::{Report, Running, Scheduling, Traffic};
use testbed::loopback::{self, CLIENT_DEVICE};
use wire::Seed;

use crate::cli::link::Link;
use crate::failure::Failure;
use crate::{file, plan_flags, terminal};

/// Exit status of a command that succeeded on a link that was late.
const VOID: u8 = 3;

/// Returns the command's exit status; 128 plus the signal that ended it; or 3 if it succeeded in a void run.
pub fn run(arguments: &Link) -> Result<ExitCode, Failure> {
    let Link { keys: _, pcap, diagnose, report, command } = arguments;
    if loopback::is_running() {
        return Err(Failure::Value(
            "link: this command already runs behind an emulated link, and links cannot be nested; end that one first, or \
             give it the values of both"
                .to_owned(),
        ));
    }
    let (network, seed) = network(arguments)?;
    // The emulator's threads must not receive the signals.
    let signals = Signals::block()?;
    let (link, outside) = start(&network, seed)?;
    let own: Vec<u32> = outside.iter().map(Outside::id).collect();
    let is_captured = pcap.is_some() || *diagnose || report.is_some();
    let capture = is_captured.then(|| capture(report.is_some(), pcap.as_deref())).transpose()?;
    let exit = command::run(command, &signals, &own);
    let capture = capture.map(BackgroundCapture::stop);
    let link = link.stop()?;
    let exit = exit?;
    if let Some((capture, written)) = capture {
        if let Some(path) = pcap {
            written.map_err(|error| Failure::Write { path: path.clone(), error })?;
        }
        show(&Capture { name: shown_command(command), command: Some(exit), ..capture? }, arguments)?;
    }
    tell(&summary(&network, &link, outside.as_ref()));
    let void = link.void();
    if let Some(void) = &void {
        tell(&format!("the emulated link missed its settings, so this run is void: {void}"));
    }
    Ok(status(exit, void.is_some()))
}

/// The one network that the flags describe.
fn network(arguments: &Link) -> Result<(Network, Seed), Failure> {
    let mut spec = Spec::default();
    for (key, value) in arguments.keys.entries() {
        spec.add(key, value).map_err(|error| Failure::Value(format!("--{key}: {error}")))?;
    }
    let mut without_seed = spec.clone();
    without_seed.seed = None;
    if without_seed == Spec::default() {
        return Err(Failure::Value(
            "link: no network; give --network NAME (see `roundtrip list networks`), or --rtt and --rate"
                .to_owned(),
        ));
    }
    plan_flags::read_traces(&mut spec)?;
    let plan = spec.plan(&Defaults::laboratory()).map_err(|error| Failure::Value(error.to_string()))?;
    let mut networks: Vec<Network> = Vec::new();
    for scenario in plan.scenarios {
        if !networks.contains(&scenario.network) {
            networks.push(scenario.network);
        }
    }
    match <[Network; 1]>::try_from(networks) {
        Ok([network]) => Ok((network, spec.seed.unwrap_or_default())),
        Err(networks) => Err(Failure::Value(format!(
            "link: {} networks; a command runs behind one, so give one --network, --rtt and --rate",
            networks.len()
        ))),
    }
}

/// Enters a private network and starts the link, and the program that leads out, if one is installed.
fn start(network: &Network, seed: Seed) -> Result<(Running, Option<Outside>), Failure> {
    let Links { up, down } = network.links();
    let mtu = u32::try_from(network.mtu().get()).unwrap_or(u32::MAX);
    let outside = Outside::prepare();
    capture::isolated::enter()?;
    let link = loopback::start(&up, &down, mtu, seed)?;
    let Some(mut outside) = outside else { return Ok((link, None)) };
    if !outside.join() {
        let program = outside.program();
        tell(&format!("{program} could not join the private network, so other hosts are not reachable"));
        return Ok((link, None));
    }
    loopback::reach_outside(outside::DEVICE, outside::ADDRESS, outside::GATEWAY)?;
    Ok((link, Some(outside)))
}

/// Starts to capture the clients' packets.
fn capture(is_plotted: bool, pcap: Option<&Path>) -> Result<BackgroundCapture, Failure> {
    let out = pcap.map(|path| match File::create(path) {
        Ok(file) => Ok(Box::new(BufWriter::new(file)) as Box<dyn Write + Send>),
        Err(error) => Err(Failure::Write { path: path.to_owned(), error }),
    });
    // At the server's device each packet appears a second time.
    let interface = Some(CLIENT_DEVICE);
    let options = LiveOptions { port: None, interface, span: None, command: Vec::new(), keys: None };
    let filter = Filter { is_whole: true, ..Filter::default() };
    Ok(BackgroundCapture::start(options, filter, is_plotted, out.transpose()?)?)
}

/// Shows the diagnosis, if requested.
fn show(capture: &Capture, arguments: &Link) -> Result<(), Failure> {
    for note in capture.warnings.iter().chain(&capture.damage) {
        tell(note);
    }
    if arguments.diagnose {
        eprint!("{}", text::render(std::slice::from_ref(capture), terminal::of_stderr()));
    }
    match &arguments.report {
        Some(path) => file::write(path, page::page(std::slice::from_ref(capture)).as_bytes()),
        None => Ok(()),
    }
}

/// The traffic and the lateness of the link.
fn summary(network: &Network, report: &Report, outside: Option<&Outside>) -> String {
    let Report { up, down, lateness, scheduling, .. } = report;
    let direction = |name: &str, traffic: &Traffic| {
        let counters = &traffic.link;
        let lost = counters.dropped.packets + counters.lost.packets;
        let lost = if lost > 0 { format!(" ({lost} dropped or lost)") } else { String::new() };
        format!("{} packets {name}{lost}", counters.delivered.packets)
    };
    let late = |per_mille| format!("{:.2} ms", lateness.per_mille(per_mille).as_millis_f64());
    let outside =
        outside.map_or_else(String::new, |outside| format!("; other hosts by {}", outside.program()));
    let ordinary = match scheduling {
        Scheduling::RealTime => "",
        Scheduling::Refused(_) | Scheduling::Ordinary => "; without real-time priority",
    };
    format!(
        "link {}: {}, {}; lateness at most {} for 99% and {} for 99.9%{ordinary}{outside}",
        network.name,
        direction("up", up),
        direction("down", down),
        late(990),
        late(999),
    )
}

fn shown_command(words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").replace(char::is_control, "?")
}

fn status(exit: CommandExit, is_void: bool) -> ExitCode {
    match exit {
        CommandExit::Exited(0) if is_void => ExitCode::from(VOID),
        CommandExit::Exited(status) => ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)),
        CommandExit::Killed(signal) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
        CommandExit::Running => ExitCode::from(VOID),
    }
}

/// Writes a sentence to standard error, wrapped between words.
fn tell(sentence: &str) {
    eprint!("{}", wrap("roundtrip: ", sentence, terminal::of_stderr().prose_width()));
}
