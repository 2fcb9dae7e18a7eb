//! A live capture: this host's packets, while a command runs, for some time, or until Ctrl-C.
//!
//! Packets are diagnosed as they arrive and, on request, written to a file as well. With a key log they are stored, and
//! diagnosed at the end: programs log a connection's secrets after its first packets. Not the capturing itself: that is
//! `capture::sniffer`. Packets do not show which process they belong to. Connections opened while a command runs count
//! as the command's, except those that `kernel` attributes to other programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use linux::clock::Clock;
use packets::writer::{Interface, Packet, Writer};
use packets::{Frame, LinkType, Reader, Unreadable};
use report::Capture;
use report::filter::Filter;
use report::reading::CaptureReader;
use wire::packet::Flags;
use wire::{Duration, Time};

use crate::sniffer::{SniffedPacket, Sniffer, interface_name};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;

use crate::kernel::SocketMonitor;
use crate::process::{CaptureEnd, Interrupts, Process};
use crate::watch::Scope;
use crate::watch::session::Session;
use crate::{Error, keys, parallel, threads};

/// Options of a live capture.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Capture only packets from or to this port.
    pub port: Option<u16>,
    /// Capture only on this interface.
    pub interface: Option<&'static str>,
    /// Maximum duration.
    pub span: Option<Duration>,
    /// Command to run; none if empty.
    pub command: Vec<OsString>,
    /// Key log that the command is told to write, and with which its connections are read.
    pub keys: Option<PathBuf>,
}

/// Polling interval for the command and the kernel's sockets.
const POLL_INTERVAL_MS: u16 = 5;
const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Captures and diagnoses packets.
///
/// # Errors
/// A missing privilege, or a command that cannot be run.
pub fn capture(options: &LiveOptions, filter: &Filter, is_plotted: bool) -> Result<Capture, Error> {
    watch(options, filter, is_plotted, None, &CaptureControl::default())
}

/// Captures and diagnoses packets, and also writes every packet to `out`, as pcapng. Returns the diagnosis, and whether
/// everything was written.
pub fn capture_into(
    options: &LiveOptions,
    filter: &Filter,
    is_plotted: bool,
    out: &mut dyn Write,
) -> (Option<Result<Capture, Error>>, io::Result<()>) {
    watch_into(options, filter, is_plotted, out, &CaptureControl::default())
}

/// Control of a capture by another thread.
#[derive(Debug, Default)]
struct CaptureControl {
    /// Called when packets are captured.
    started: Option<mpsc::Sender<()>>,
    /// Set to end the capture; signals are not read then.
    stop: Option<Arc<AtomicBool>>,
}

/// Result of a capture in another thread; whether every packet was written.
type CaptureOutcome = (Option<Result<Capture, Error>>, io::Result<()>);

/// A capture in another thread.
#[derive(Debug)]
pub struct BackgroundCapture {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<CaptureOutcome>,
}

impl BackgroundCapture {
    /// Starts to capture and diagnose packets in the calling thread's network namespace; `out` receives them as pcapng. Returns
    /// when packets are captured.
    ///
    /// # Errors
    /// A missing privilege.
    pub fn start(
        options: LiveOptions,
        filter: Filter,
        is_plotted: bool,
        out: Option<Box<dyn Write + Send>>,
    ) -> Result<Self, Error> {
        let (started, start_signal) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let control = CaptureControl { started: Some(started), stop: Some(Arc::clone(&stop)) };
        let run = move || match out {
            None => (Some(watch(&options, &filter, is_plotted, None, &control)), Ok(())),
            Some(mut out) => watch_into(&options, &filter, is_plotted, &mut out, &control),
        };
        let started_thread = thread::Builder::new().name("capture".to_owned()).spawn(run);
        let thread = started_thread.map_err(linux::Error::io("start the thread that captures"))?;
        match start_signal.recv() {
            Ok(()) => Ok(Self { stop, thread }),
            // It ended before it began; a file that cannot be written is reported at the end.
            Err(_) => match thread.join() {
                Ok((Some(Err(error)), _)) => Err(error),
                Ok(_) | Err(_) => Err(linux::Error::Died { thread: "capture" }.into()),
            },
        }
    }

    /// Ends the capture; returns the diagnosis, and whether every packet was written.
    ///
    /// # Errors
    /// Those of the capture.
    pub fn stop(self) -> (Result<Capture, Error>, io::Result<()>) {
        self.stop.store(true, Ordering::Release);
        let died = || Err(linux::Error::Died { thread: "capture" }.into());
        match self.thread.join() {
            Ok((capture, written)) => (capture.unwrap_or_else(died), written),
            Err(_) => (died(), Ok(())),
        }
    }
}

/// Watches the command's sockets instead of packets, which needs no privilege.
///
/// # Errors
/// A command that cannot be run, or the kernel's error.
pub fn watch_sockets(options: &LiveOptions, filter: &Filter) -> Result<Capture, Error> {
    /// Short enough for single holds of a few milliseconds.
    const INTERVAL: Duration = Duration::from_millis(1);
    let LiveOptions { port, interface: _, span, command, keys: _ } = options;
    let scope = port.map_or(Scope::All, Scope::Port);
    let session = Session { scope, command: command.clone(), interval: INTERVAL, span: *span };
    let report = session.run(|_| Ok::<(), Error>(()))?;
    let mut capture = CaptureReader::new(name(options), filter, false).finish();
    capture.command = report.command;
    capture.is_command_stopped = report.is_command_stopped;
    capture.watched = Some(report);
    Ok(capture)
}

/// As [`watch`]; also writes the packets.
fn watch_into(
    options: &LiveOptions,
    filter: &Filter,
    is_plotted: bool,
    out: &mut dyn Write,
    control: &CaptureControl,
) -> CaptureOutcome {
    match CaptureFile::begin(out) {
        Ok(mut retained) => {
            let capture = watch(options, filter, is_plotted, Some(&mut retained), control);
            (Some(capture), retained.finish().map(drop))
        }
        Err(error) => (None, Err(error)),
    }
}

fn watch(
    options: &LiveOptions,
    filter: &Filter,
    is_plotted: bool,
    mut retained: Option<&mut CaptureFile<&mut dyn Write>>,
    control: &CaptureControl,
) -> Result<Capture, Error> {
    let mut sniffer = Sniffer::open(options.port, options.interface)?;
    let clock = Clock::start();
    let mut watch = SocketMonitor::begin(!options.command.is_empty())?;
    let mut process = Process::start(&options.command, options.keys.as_deref())?;
    let interrupts = Interrupts::begin()?;
    let signals = &interrupts.signals;
    let mut route = Route::new(CaptureReader::new(name(options), filter, is_plotted), options)?;
    let mut next_poll = Time::ZERO;
    let mut ending = CaptureEnd::new(options.span.map(|span| clock.now() + span));
    let CaptureControl { started, stop } = control;
    if let Some(started) = started {
        // The thread that waits for it may have given up.
        let _ = started.send(());
    }
    let has_signal = || match stop {
        Some(stop) => stop.swap(false, Ordering::AcqRel),
        None => signals.read_signal().is_ok_and(|one| one.is_some()),
    };
    while !ending.is_over(clock.now(), &mut process, has_signal()) {
        wait(&sniffer, signals)?;
        if clock.now() >= next_poll {
            let began = clock.now();
            watch.poll(began)?;
            // With many sockets, at most a tenth of the time is spent on them.
            next_poll = clock.now() + SOCKET_POLL_INTERVAL.max(clock.now().since(began) * 10);
        }
        sniffer.read(|packet| {
            if let Some((client, server)) = opened(packet.ip) {
                watch.opened(client, server, clock.now());
            }
            route.handle(&packet);
            if let Some(retained) = retained.as_deref_mut() {
                retained.add(&packet);
            }
        });
    }
    let mut capture = route.finish()?;
    capture.command = process.ended();
    capture.is_command_stopped = stop.is_none() && ending.was_interrupted();
    watch.read_final_counters(clock.now())?;
    take_others(&mut capture, &watch);
    watch.inform(&mut capture.flows);
    capture.kernel = watch.reported(&capture.flows);
    let lost = sniffer.lost()?;
    if lost > 0 {
        capture.warnings.push(format!(
            "packets that the kernel dropped, because its buffer was full: {lost}; give --port to capture fewer"
        ));
    }
    Ok(capture)
}

/// Leaves out connections of other programs, except those on which the command's own depend.
fn take_others(capture: &mut Capture, watch: &SocketMonitor) {
    let flows = std::mem::take(&mut capture.flows);
    let (others, own): (Vec<_>, Vec<_>) = flows.into_iter().partition(|flow| watch.is_of_others(flow));
    capture.selected = capture.selected.saturating_sub(others.len() as u64);
    let (between, rest) = watch.between(others);
    rest.iter().for_each(|flow| capture.others.hide(flow));
    capture.others.between = between.iter().map(|flow| (flow.client, flow.server)).collect();
    capture.flows = own;
    capture.flows.extend(between);
    capture.flows.sort_by_key(|flow| (flow.started, flow.first_packet));
    capture.warnings.extend(capture.others.hidden_sentence());
}

/// Returns the client and the server, if the packet is a server's SYN/ACK.
fn opened(ip: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let packet = wire::packet::Packet::read(ip).ok()?;
    let responses = packet.tcp()?.flags.contains(Flags::SYN | Flags::ACK);
    packet.sockets().filter(|_| responses).map(|(server, client)| (client, server))
}

fn name(options: &LiveOptions) -> String {
    let words: Vec<_> = options.command.iter().map(|word| word.to_string_lossy()).collect();
    match (words.is_empty(), options.port) {
        (true, Some(port)) => format!("port {port}, live"),
        (true, None) => "live".to_owned(),
        (false, _) => words.join(" ").replace(char::is_control, "?"),
    }
}

/// Waits for packets, a signal, or the next poll of the command.
fn wait(sniffer: &Sniffer, signals: &SignalFd) -> Result<(), Error> {
    let mut waiting =
        [sniffer.as_fd(), signals.as_fd()].map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
    match poll(&mut waiting, PollTimeout::from(POLL_INTERVAL_MS)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(Error::Packets(error)),
    }
}

/// Packets on their way to the diagnosis.
enum Route<'a> {
    /// Each at once.
    Direct { reading: CaptureReader<'a>, number: u64 },
    /// All at the end, from a file without a name.
    Stored { reading: CaptureReader<'a>, packets: CaptureFile<BufWriter<File>>, keys: &'a Path },
}

impl<'a> Route<'a> {
    fn new(reading: CaptureReader<'a>, options: &'a LiveOptions) -> Result<Self, Error> {
        let Some(keys) = options.keys.as_deref() else { return Ok(Self::Direct { reading, number: 0 }) };
        let packets = tempfile::tempfile().map(BufWriter::new).and_then(CaptureFile::begin);
        Ok(Self::Stored { reading, packets: packets.map_err(Error::Spool)?, keys })
    }

    fn handle(&mut self, packet: &SniffedPacket<'_>) {
        match self {
            Self::Direct { reading, number } => {
                *number += 1;
                let SniffedPacket { at, interface, cooked: _, ip, original_length: _ } = *packet;
                reading.handle(&Frame { number: *number, at, interface, link: LinkType::Raw, bytes: ip });
            }
            Self::Stored { packets, .. } => packets.add(packet),
        }
    }

    /// Diagnoses what was not yet. A key log without secrets is no error: the program may have had no connection over TLS.
    fn finish(self) -> Result<Capture, Error> {
        let (reading, packets, path) = match self {
            Self::Direct { reading, number: _ } => return Ok(reading.finish()),
            Self::Stored { reading, packets, keys } => (reading, packets, keys),
        };
        let rewound = packets.finish().and_then(|file| {
            let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind().map(|()| file)
        });
        let (keys, missing) = match keys::read(path) {
            Ok(keys) => (Some(Arc::new(keys)), None),
            Err(error) => (None, Some(format!("{error}; what is within TLS was not read"))),
        };
        let reader = rewound.map_err(Unreadable::Io).and_then(Reader::new);
        let capture = reader.and_then(|reader| parallel::read(reader, reading.with_keys(keys), threads()));
        let mut capture = capture.map_err(|error| Error::Spool(io::Error::other(error)))?;
        capture.warnings.extend(missing);
        Ok(capture)
    }
}

/// A file to which packets are written.
struct CaptureFile<W> {
    writer: Writer<W>,
    interfaces: BTreeMap<u32, Interface>,
    /// Buffer for a packet with its header, as written.
    packet: Vec<u8>,
    /// First error.
    failed: Option<io::Error>,
}

impl<W: Write> CaptureFile<W> {
    fn begin(out: W) -> io::Result<Self> {
        let application = concat!("roundtrip ", env!("CARGO_PKG_VERSION"));
        let writer = Writer::new(out, application, None)?;
        Ok(Self { writer, interfaces: BTreeMap::new(), packet: Vec::new(), failed: None })
    }

    fn add(&mut self, packet: &SniffedPacket<'_>) {
        if self.failed.is_none() {
            self.failed = self.try_add(packet).err();
        }
    }

    fn try_add(&mut self, packet: &SniffedPacket<'_>) -> io::Result<()> {
        let SniffedPacket { at, interface, cooked, ip, original_length } = packet;
        let interface = match self.interfaces.get(interface) {
            Some(known) => *known,
            None => {
                let new = self.writer.cooked_interface(&interface_name(*interface))?;
                *self.interfaces.entry(*interface).or_insert(new)
            }
        };
        self.packet.clear();
        self.packet.extend_from_slice(cooked);
        self.packet.extend_from_slice(ip);
        self.writer.packet(&Packet {
            interface,
            at: at.since(Time::ZERO),
            bytes: &self.packet,
            original_length: cooked.len() + original_length,
            comment: None,
        })
    }

    fn finish(self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }
}
