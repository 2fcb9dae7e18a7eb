//! One connection: takes its segments in the order of the capture; produces gaps, findings and an account.
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Flow`]: what each segment is to the connection |
//! | `acknowledgements` | acknowledgements, and windows with them |
//! | `clock_step` | clocks of the capture that jump or step back |
//! | `handshake` | what SYNs agree on |
//! | `closed_windows` | windows that a receiver closes |
//! | `message_progress` | progress of a message: what a wider window would save |
//! | `facts` | facts of a gap when it ends |
//! | `repairs` | facts about data that came late or twice |
//! | `one_way` | connections of which one direction was captured |
//! | `opening` | openings that fail |
//! | `roles` | which side is the client; the connections before and after this one |
//! | `failures` | connections that fail later |
//! | `tls` | TLS handshakes |
//! | `notes` | facts about the path and the capture |
//! | `ledger`, `spending` | judged gaps, in the account and as findings |
//! | `state` | state of each side |
//!
//! Not a TCP: it sends nothing and assumes nothing that the packets do not show. Contradictory segments are skipped.

mod acknowledgements;
mod clock_step;
mod closed_windows;
mod facts;
mod failures;
mod handshake;
mod ledger;
mod message_progress;
mod notes;
mod one_way;
mod opening;
mod repairs;
mod roles;
mod spending;
mod state;
mod tls;

use core::net::SocketAddr;

use dissect::clock_step::CaptureClock;
use dissect::connections::{Slot, Sockets};
use dissect::exchange::{Content, Exchanges, Kind, SegmentData};
use dissect::hosts::Hosts;
use dissect::multipath::Multipath;
use dissect::path::Path;
use dissect::plot::Plot;
use dissect::sender::SequenceRelation;
use dissect::serial::SerialRequests;
use dissect::service_queue::ServiceQueue;
use dissect::turns::Turns;
use dissect::warm_up::WarmUp;
use dissect::{Both, Mark, Segment, Side, record};
use wire::packet::{Flags, Packet};
use wire::{Bytes, Duration, Time};

use crate::cause::Cause;
use crate::causes::connection_per_request::PreviousConnection;
use crate::causes::one_direction_only::LONG;
use crate::doubt::{Doubt, Doubts};
use crate::failure::{Opening, SmallMtu};
use crate::finding::{Finding, Findings};
use crate::gap::{GapEnd, GapStart};
use crate::options::Options;
use crate::program::Program;
use crate::report::{ExchangeReport, FlowReport, Oddities, Protocol};
use crate::retention::RetentionLimits;
use crate::tick;
use trace::account::{Account, Share};

pub(crate) use ledger::WARM_UP;
use state::{EndState, Handshake, ReferenceValues};

/// A connection, as far as it was captured.
///
/// The order of fields is that of memory: with thousands of connections, the time for each packet is dominated by cache
/// misses. Fields used for every packet are adjacent; rarely used ones follow or are boxed.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Flow {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) last_at: Time,
    packets: u64,
    bytes: Bytes,
    last: Mark,
    /// The last packet of either side.
    last_frame: u64,
    last_flight: u64,
    /// Kind and mark of the last event (`last`), and its sender's data in flight at that time (`last_flight`).
    before: GapStart,
    limits: RetentionLimits,
    reference: Both<ReferenceValues>,
    /// Time up to which the account reaches, and from which on time counts.
    spent: Time,
    since: Time,
    plot: Option<Box<Plot>>,
    /// Multipath TCP's options, if it has any.
    multipath: Option<Box<Multipath>>,
    /// Unusual events before the first SYN/ACK.
    opening: Option<Box<Opening>>,
    is_reset: bool,
    /// Whether bytes have proven which side is the client, where the handshake was not captured.
    are_roles_proven: bool,
    /// Whether the TLS handshake is over and reported.
    is_handshake_settled: bool,
    /// Whether the server has sent unsolicited data; and data within some milliseconds of the client's.
    has_pushed: bool,
    has_prompt_data: bool,
    /// Whether a DHTTP server opened it.
    is_within_dialogue: bool,
    /// Whether only segments of the handshake were lost.
    is_opening_lost: bool,
    path: Path,
    ends: Both<EndState>,
    handshake: Handshake,
    account: Account,
    findings: Findings,
    pub(crate) conversation: Exchanges<Account>,
    turns: Turns,
    warm_up: WarmUp,
    /// Time up to which repairs already count.
    claimed: Time,
    /// Reasons for unknown time.
    doubts: Doubts,
    exchanges: Vec<ExchangeReport>,
    serial: SerialRequests,
    queue: ServiceQueue,
    pub(crate) started: Mark,
    oddities: Oddities,
    /// Waits that one captured direction does not explain.
    unexplained: Duration,
    /// The connection before it, if a finding is due once this one is set up and used like that one.
    follows: Option<Box<PreviousConnection>>,
    /// The connection that was opened while this one was idle, by its slot and first packet.
    follower: Option<Box<(Slot, u64)>>,
    /// Time until the first request could be sent: set-up of the connection, of TLS and of a session.
    set_up_time: Option<Duration>,
    /// Waits that the open window of the previous connection would have spared.
    reopened: Duration,
    /// An MTU that a router reported, and a reset in the middle of a transfer, by its sender.
    small_mtu: Option<Box<SmallMtu>>,
    cut: Option<Box<(Side, Finding)>>,
    capture_clock: CaptureClock,
}

impl Sockets for Flow {
    #[inline]
    fn sockets(&self) -> (SocketAddr, SocketAddr) {
        (self.client, self.server)
    }
}

impl Flow {
    pub(crate) fn new(client: SocketAddr, server: SocketAddr, first: &Segment<'_>, options: Options) -> Self {
        let mark = Mark { at: first.at, frame: first.frame };
        let mut ends: Both<EndState> = Both::default();
        for end in [&mut ends.client, &mut ends.server] {
            // A capture may begin in the middle of a message.
            end.burst.progress.began = first.at;
        }
        Self {
            client,
            server,
            last_at: first.at,
            packets: 0,
            bytes: Bytes::ZERO,
            is_reset: false,
            limits: RetentionLimits::among(1),
            reference: Both::default(),
            before: GapStart::Nothing,
            last: mark,
            last_frame: mark.frame,
            last_flight: 0,
            spent: first.at,
            since: options.since,
            path: Path::default(),
            ends,
            conversation: Exchanges::default(),
            findings: Findings::default(),
            account: Account::default(),
            plot: options.is_plotted.then(|| Box::new(Plot::new(mark.at))),
            exchanges: Vec::new(),
            serial: SerialRequests::default(),
            queue: ServiceQueue::default(),
            started: mark,
            handshake: Handshake::default(),
            oddities: Oddities::default(),
            unexplained: Duration::ZERO,
            follows: None,
            follower: None,
            set_up_time: None,
            is_within_dialogue: false,
            reopened: Duration::ZERO,
            claimed: Time::ZERO,
            opening: None,
            multipath: None,
            is_opening_lost: false,
            are_roles_proven: false,
            is_handshake_settled: false,
            has_pushed: false,
            has_prompt_data: false,
            turns: Turns::default(),
            warm_up: WarmUp::default(),
            small_mtu: None,
            cut: None,
            capture_clock: CaptureClock::default(),
            doubts: Doubts::default(),
        }
    }

    /// Marks that the client had just closed another connection to the same server.
    pub(crate) fn follows(&mut self, follows: PreviousConnection) {
        self.follows = Some(Box::new(follows));
    }

    /// Marks it as opened by a DHTTP server for its responses.
    pub(crate) fn is_of_a_dialogue(&mut self) {
        self.is_within_dialogue = true;
    }

    /// Returns the side that sent a packet of this connection.
    pub(crate) fn side_of(&self, packet: &Packet<'_>) -> Side {
        let is_client = packet.sockets().is_some_and(|(source, _)| source == self.client);
        if is_client { Side::Client } else { Side::Server }
    }

    /// Returns whether either side has begun to close it.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_reset || self.reference.client.has_ended || self.reference.server.has_ended
    }

    /// Returns whether a SYN from the client begins another connection between the same ports.
    pub(crate) fn is_reused_by(&self, segment: &Segment<'_>) -> bool {
        let opens = segment.has(Flags::SYN) && !segment.has(Flags::ACK);
        let sender = &self.ends.of(segment.from).sender;
        let is_new = !sender.is_seen || sender.position(segment.tcp.seq).abs_diff(sender.next) > 1;
        let is_same_opening = self.handshake.opened.is_some() && self.handshake.answered.is_none() && !is_new;
        // A copy of its own SYN, delayed or from another interface, has the same sequence number. After its FIN a host sends none.
        let may_copy = !self.is_reset && !self.reference.of(segment.from).has_ended;
        let is_same = may_copy && self.ends.of(segment.from).first_number == Some(segment.tcp.seq);
        opens && self.packets > 0 && !is_same_opening && !is_same
    }

    /// Returns whether it has only had SYNs without a response.
    pub(crate) const fn is_half_open(&self) -> bool {
        self.handshake.answered.is_none() && !self.ends.server.sender.is_seen && self.bytes.get() == 0
    }

    /// Returns whether nothing but retransmissions may follow.
    pub(crate) fn is_over(&self) -> bool {
        self.is_reset || (self.reference.client.has_ended && self.reference.server.has_ended)
    }

    /// Returns whether packets of `from` on `interface` are analysed: on other interfaces the same packet appears
    /// again.
    pub(crate) fn is_watched_on(&mut self, from: Side, interface: u32) -> bool {
        let is_watched = *self.reference.of_mut(from).interface.get_or_insert(interface) == interface;
        // Written only if needed: the count is in another cache line than everything else.
        if !is_watched {
            self.oddities.captured_twice += 1;
        }
        is_watched
    }

    /// Handles the next segment of the capture.
    pub(crate) fn segment(&mut self, segment: &Segment<'_>, limits: RetentionLimits) {
        self.limits = limits;
        let mut segment = *segment;
        self.follow_clock(&mut segment);
        if segment.at < self.last_at {
            self.oddities.backwards += 1;
            segment.at = self.last_at;
        }
        (self.last_at, self.last_frame) = (segment.at, segment.frame);
        self.packets += 1;
        self.bytes += Bytes::new(segment.length());
        let end = self.ends.of_mut(segment.from);
        if end.recent.has(&segment, end.sender.mss.get()) {
            self.ends.of_mut(segment.from.other()).sender.receive_copy(&segment);
            self.oddities.captured_twice += 1;
            return;
        }
        // A proxy nearby numbers the packets of all its connections, and so does Windows (TTL 128).
        let is_own = segment.hop_limit <= 64 && self.path.beyond_proxy(segment.from).is_none();
        let skipped = if is_own { end.recent.skipped() } else { 0 };
        self.reference.of_mut(segment.from).skipped += u32::from(skipped);
        self.path.passed(segment.from, segment.hop_limit);
        if let Some(stamp) = segment.options.stamp {
            self.skip_jump(&segment, stamp);
            let end = self.ends.of_mut(segment.from);
            end.late = end.clock.passed(segment.at, stamp.value);
            self.observe_echo(&segment, stamp);
        }
        if let Some(option) = segment.options.multipath {
            self.multipath.get_or_insert_default().observe(segment.from, option);
        }
        self.reference.of_mut(segment.from).last_packet_at = Some(segment.at);
        if segment.has(Flags::RST) {
            self.reset(&segment);
            return;
        }
        if self.is_challenge(&segment) {
            self.record_challenge(Mark { at: segment.at, frame: segment.frame });
            return;
        }
        if self.is_of_another_responder(&segment) {
            return;
        }
        if segment.has(Flags::SYN) {
            self.handle_syn(&segment);
        }
        if segment.has(Flags::ACK) {
            self.open_unseen(&segment);
            self.handle_ack(&segment);
        }
        if segment.has(Flags::SYN) {
            self.handle_handshake_segment(&segment);
        } else if segment.carries() {
            self.handle_data(&segment);
        } else {
            self.handle_bare_ack(&segment);
        }
        if let Some(plot) = &mut self.plot {
            plot.add(
                &segment,
                self.ends.of(segment.from).sender.next,
                &self.ends.of(segment.from.other()).sender,
            );
        }
    }

    /// Handles data or a FIN.
    fn handle_data(&mut self, segment: &Segment<'_>) {
        let Segment { from, at, frame, .. } = *segment;
        let mark = Mark { at, frame };
        let end = self.ends.of_mut(from);
        let start = end.sender.position(segment.tcp.seq);
        let stop = start + segment.tcp.sequence_length();
        end.sender.mss.observe(segment.length());
        end.sender.mss.has_timestamps = segment.options.stamp.is_some();
        let is_next = start == end.sender.next;
        let last_ack_at = end.last_ack_at.take();
        let data = self.data_of(segment, start);
        let content = self.conversation.content(&data);
        if content == Content::Control
            && is_next
            && !segment.has(Flags::FIN)
            && self.before != GapStart::Nothing
        {
            self.handle_control(segment, &data);
            return;
        }
        let facts = self.before_sending(segment);
        // Updated only now: a gap must not be measured by itself.
        if let Some(last_ack_at) = last_ack_at {
            self.path.echoed(from, at.since(last_ack_at));
        }
        let soon = self.soonest_retransmission(segment);
        let end = self.ends.of_mut(from);
        // A FIN flushes held data, and urgent data bypasses Nagle's algorithm.
        if segment.has(Flags::URG) {
            end.urgent = stop;
        }
        // So does a probe for the end of a flight: it takes new data if there is some (RFC 8985, section 7.3), held or not.
        // For a single segment it waits 200 ms longer than two round trips; less a tick.
        const PROBE: Duration = Duration::from_millis(190);
        let may_be_probe = end.sender.sent_last.is_some_and(|last| at.since(last) >= PROBE);
        let may_be_held = !segment.has(Flags::FIN) && end.sender.acknowledged >= end.urgent && !may_be_probe;
        end.sends_shorts |= may_be_held && end.sender.sends_short(start, segment.length());
        let order = end.sender.send(start, stop, mark, segment.identification, soon);
        end.sender.forget(self.limits.segments.into());
        let is_retransmission = matches!(order, SequenceRelation::Retransmission(_));
        let kind = match order {
            SequenceRelation::New if segment.length() == 0 => GapEnd::Fin,
            SequenceRelation::New => {
                self.sample_pace(segment);
                GapEnd::Data
            }
            SequenceRelation::Probe => return self.record_window_probe(from),
            SequenceRelation::Twice => {
                self.oddities.captured_twice += 1;
                return;
            }
            SequenceRelation::Retransmission(None) => {
                self.record_needless_retransmission(from, start, segment.length(), mark);
                self.oddities.needless += 1;
                return;
            }
            // No side waits for a retransmitted FIN or close_notify, nor for data after a reset.
            SequenceRelation::Retransmission(Some(_)) | SequenceRelation::Filled(_)
                if self.is_reset
                    || (is_retransmission && segment.length() == 0)
                    || (segment.length() > 0 && record::closes(segment)) =>
            {
                self.spend(Share::Closing, at.since(self.last.at));
                self.before = GapStart::Ending;
                self.begin_gap(mark);
                return;
            }
            SequenceRelation::Retransmission(Some(before)) => {
                let sender = &self.ends.of(from).sender;
                let sender_next = sender.next;
                if stop <= sender.acknowledged {
                    self.record_needless_retransmission(from, start, segment.length(), mark);
                    self.oddities.needless += 1;
                    let is_end = stop >= sender_next;
                    let reference = self.reference.of_mut(from);
                    if reference.needless.is_none() {
                        (reference.needless, reference.is_needless_of_end) = (Some(mark), is_end);
                    }
                    return;
                }
                self.record_repeated_retransmission(from, &before, start, segment.length(), mark);
                self.suspect(segment, start, stop);
                let earlier = Mark { at: before.at, frame: before.frame };
                GapEnd::Repair(self.repair(
                    from,
                    stop,
                    earlier,
                    mark,
                    at.since(before.last_sent_at),
                    before.times,
                ))
            }
            SequenceRelation::Filled(hole) => {
                let missed = at.since(hole.since);
                if self.was_overtaken(from, missed, segment, &hole) {
                    self.oddities.out_of_order += 1;
                    GapEnd::Data
                } else {
                    self.record_split_repair(from, &hole, (start, segment.length()), mark);
                    let earlier = Mark { at: hole.since, frame: hole.frame };
                    GapEnd::Repair(self.repair(from, stop, earlier, mark, missed, 0))
                }
            }
        };
        self.close_with(facts, kind, segment);
        if segment.length() > 0 {
            self.settle_closed_window(from, segment.length(), at);
        }
        let end = self.ends.of_mut(from);
        let earlier = if self.before == GapStart::Data(from) { end.pieces } else { 0 };
        end.pieces = earlier.saturating_add((segment.length() < end.sender.mss.get()).into());
        let text = self.conversation.text(from, data.payload);
        match from {
            Side::Client if self.before != GapStart::Data(from) => self.turns.requests(text),
            Side::Server if segment.length() > 0 => self.turns.responds(text),
            Side::Client | Side::Server => {}
        }
        // Data that does not acknowledge the whole request is no response: the request still waits for its own.
        let is_response = from == Side::Client || data.covers_all || self.conversation.unanswered().is_some();
        if is_response || self.before != GapStart::Data(Side::Client) {
            self.before = GapStart::Data(from);
        }
        let sender = &self.ends.of(from).sender;
        self.last_flight = sender.next.saturating_sub(sender.acknowledged);
        self.read_messages(&data, content);
        if self.reference.of(from.other()).has_ended && record::closes(segment) {
            self.ends.of_mut(from).alert += segment.tcp.sequence_length();
        }
        if segment.has(Flags::FIN) {
            self.record_early_close(segment);
            self.conversation.ended(from, mark);
            self.take_exchanges();
            self.reference.of_mut(from).has_ended = true;
            let waits_half_closed = from == Side::Client && self.before == GapStart::Data(from);
            if self.is_over() || (segment.length() == 0 && !waits_half_closed) {
                self.before = GapStart::Ending;
            }
        }
    }

    /// Returns how soon after its transmission a segment may be retransmitted: sooner, it is a second capture of the same packet.
    fn soonest_retransmission(&self, segment: &Segment<'_>) -> Duration {
        // A copy has the IP ID of the original, and was recognized by that.
        if self.ends.of(segment.from).recent.shows_copies(segment) {
            return Duration::ZERO;
        }
        // Retransmitted data has been missing for at least most of a round trip.
        (self.path.round_trip_at_least() / 2).clamp(Duration::from_micros(100), Duration::from_millis(50))
    }

    /// Samples the pace: near its receiver, data arrives at the pace of the path. A short segment is no sample, since
    /// it may have been written late.
    fn sample_pace(&mut self, segment: &Segment<'_>) {
        let Segment { from, at, .. } = *segment;
        let is_full = segment.length() >= self.ends.of(from).sender.mss.get();
        if is_full && self.before == GapStart::Data(from) && self.is_near(from.other()) {
            let EndState { sender, queued, late, .. } = self.ends.of_mut(from);
            sender.pace.took(at.since(self.last.at), segment.length());
            // A connection that finds a queue loses its first segments there: four samples show it.
            *queued = (*queued * 3 + late.unwrap_or_default()) / 4;
        }
    }

    fn read_messages(&mut self, data: &SegmentData<'_>, content: Content) {
        self.time_readers();
        self.conversation.sent(data, content, &self.account);
        if self.set_up_time.is_none() && self.conversation.first_request().is_some() {
            let own = self.account.waited().saturating_sub(self.account.of(Share::Stall(Cause::ClientThink)));
            self.set_up_time = Some(own);
        }
        self.follow_tls();
        self.take_exchanges();
    }

    /// Informs readers of the path: how soon session tickets follow the handshake, and how long an update of a window takes.
    fn time_readers(&mut self) {
        if let Some(tls) = self.conversation.tls_mut() {
            tls.soon = self.path.round_trip_at_least() + ledger::PROMPT;
        }
        if self.conversation.kind() == Kind::Http2 {
            let to = |side| self.path.to(side).unwrap_or_default();
            self.conversation.set_distance(Both { client: to(Side::Client), server: to(Side::Server) });
        }
    }

    /// Returns the data of a segment for readers of messages.
    fn data_of<'a>(&self, segment: &Segment<'a>, start: u64) -> SegmentData<'a> {
        let Segment { from, at, frame, tcp, .. } = *segment;
        SegmentData {
            side: from,
            start,
            payload: tcp.payload,
            length: segment.length(),
            mark: Mark { at, frame },
            covers_all: self.has_messages(from),
        }
    }

    /// Returns whether `side` has acknowledged the messages of its peer: control traffic may still be in flight.
    pub(super) fn has_messages(&self, side: Side) -> bool {
        let sender = &self.ends.of(side.other()).sender;
        let request_end = self.conversation.request_end().filter(|_| side == Side::Server);
        sender.has_arrived() || request_end.is_some_and(|end| sender.acknowledged >= end)
    }

    /// Handles control traffic: it is data of its sender, but no turn of the conversation, and ends no gap.
    fn handle_control(&mut self, segment: &Segment<'_>, data: &SegmentData<'_>) {
        let SegmentData { side, start, length, mark, .. } = *data;
        let sender = &mut self.ends.of_mut(side).sender;
        sender.send(start, start + length, mark, segment.identification, Duration::ZERO);
        sender.forget(self.limits.segments.into());
        if data.covers_all {
            self.note_own_ack(segment);
        }
        self.read_messages(data, Content::Control);
    }

    fn take_exchanges(&mut self) {
        let answered = self.conversation.take_answered();
        if answered.is_empty() {
            return;
        }
        for exchange in answered.into_iter().filter(|exchange| exchange.ended.at > self.since) {
            if self.conversation.is_http2() {
                let thinking = self.account.of(Share::Stall(Cause::ServerThink));
                self.queue.ended(exchange.requested, exchange.ended, thinking);
            }
            // Grows by one: most connections have few exchanges, and there are many connections.
            self.exchanges.reserve_exact(1);
            let exchange = ExchangeReport::new(exchange, &self.account);
            let parts =
                [Share::Stall(Cause::ServerThink), Share::RoundTrip].map(|share| exchange.account.of(share));
            self.serial.add(exchange.at, exchange.elapsed, parts);
            self.serial.record(&exchange.request, exchange.status, exchange.at, exchange.elapsed);
            self.exchanges.push(exchange);
        }
        ExchangeReport::retain_longest(&mut self.exchanges, self.limits.exchanges.into());
    }

    fn reset(&mut self, segment: &Segment<'_>) {
        if self.is_reset || self.refuses(segment) {
            return;
        }
        let is_alone = self.is_hidden(segment.from.other()) && !self.reference.of(segment.from).has_ended;
        self.add_unexplained(LONG, LONG, is_alone);
        self.record_cut(segment);
        self.record_reset(segment);
        let last = self.last;
        self.close(segment, GapEnd::Reset);
        self.find_lost_responses(segment, last);
        self.before = GapStart::Ending;
        self.is_reset = true;
    }

    /// Weighs the findings of a slow server by all that followed.
    fn weigh_waits(&mut self, hosts: &Hosts) {
        // Where messages cannot be read, earlier data of a server that pushes may have been a push, too.
        let has_pushed = self.has_pushed && self.conversation.requests() == 0;
        let are_convincing = !has_pushed && self.turns.are_convincing();
        if are_convincing {
            self.findings.trust(Cause::ServerThink);
        }
        let is_of_streams = are_convincing && self.conversation.is_http2();
        if has_pushed || self.turns.are_doubtful() && !is_of_streams {
            self.findings.doubt_since(Cause::ServerThink, Time::ZERO, ledger::UNREADABLE);
        }
        let program = Program::of(self.server, self.conversation.requests());
        if self.are_roles_guessed() && self.server.port() >= SERVICES && program == Program::Other {
            self.findings.doubt_all(Cause::ServerThink, GUESSED);
            self.findings.doubt_all(Cause::ResetLostData, GUESSED);
        }
        if let Some(until) = self.warmed_up(hosts) {
            self.findings.doubt_if(Cause::ServerThink, ledger::WARM_UP, |finding| finding.at < until);
        }
        let (turns, serial, is_read) = (&self.turns, &self.serial, self.conversation.requests() > 0);
        let is_streamed = |wait: &Finding| !is_read && turns.is_of_stream(wait.lost);
        self.findings.doubt_if(Cause::ServerThink, ledger::STREAMED, is_streamed);
        self.findings.doubt_if(Cause::ServerThink, ledger::POLLED, |wait| serial.is_polled(wait.at));
        if self.is_answered_nearby() {
            self.findings.doubt_all(Cause::ServerThink, notes::NEARBY);
        }
        let is_of_openssh = |held: &Finding| *turns.is_openssh.of(held.side);
        self.findings.doubt_if(Cause::NagleDelayedAck, notes::OPENSSH, is_of_openssh);
    }

    /// Finishes the connection and returns its report, no more precise than the `tick` of a coarse clock.
    pub(crate) fn finish(mut self, tick: Option<Duration>, hosts: &Hosts) -> FlowReport {
        self.settle_tail();
        self.handle_client_step(None);
        self.weigh_waits(hosts);
        self.find_service_queues();
        self.doubt_by_capture();
        [Side::Client, Side::Server].into_iter().for_each(|side| self.settle_progress(side));
        self.find_needless_opening();
        self.settle_opening(hosts);
        self.settle_failures();
        self.settle_notes();
        let missing_direction = self.missing_direction();
        let is_first_of_java = self.is_first_of_java(hosts);
        let Self {
            client, server, started, last_at, packets, bytes, path, conversation, mut account, ..
        } = self;
        let mut exchanges = self.exchanges;
        exchanges.sort_by_key(|exchange| exchange.at);
        // A client that does not send waits for no one, and no time passed where the clock was set.
        let waited = account.waited() - account.of(Share::Stall(Cause::ClientThink));
        let waited = waited.saturating_sub(self.doubts.of(Doubt::ClockJumped));
        let (mut findings, mut counts) = self.findings.into_sorted(waited);
        if let Some(tick) = tick {
            let before = account.of(Share::Unknown);
            tick::retract_unmeasurable(tick, &mut findings, &mut counts, &mut account);
            self.doubts.add(Doubt::CoarseClock, account.of(Share::Unknown) - before);
        }
        let mut report = FlowReport {
            protocol: Protocol::Tcp,
            is_within_dialogue: self.is_within_dialogue,
            client,
            server,
            started: started.at,
            first_packet: started.frame,
            is_whole: self.handshake.opened.is_some(),
            elapsed: last_at.since(started.at),
            packets,
            bytes,
            round_trip: path.round_trip(),
            vantage_point: path.vantage_point(),
            requests: conversation.requests(),
            keys: conversation.key_use(),
            findings,
            counts,
            account,
            doubts: self.doubts,
            exchanges,
            serial: self.serial,
            oddities: self.oddities,
            missing_direction,
            unexplained: Some(self.unexplained).filter(|time| *time >= LONG).unwrap_or_default(),
            is_opening_lost: self.is_opening_lost,
            plot: self.plot.map(|plot| *plot),
            host: None,
        };
        if is_first_of_java {
            report.doubt_handshake(Side::Client);
        }
        report
    }

    /// Size of the server's window, here or on the previous connection that might have been reused. A window that was
    /// filled opens to twice its size as its acknowledgements arrive.
    pub(crate) fn window(&self) -> u64 {
        let before = self.follows.as_ref().map_or(0, |follows| follows.window);
        before.max(2 * u64::from(self.ends.server.sender.largest_flight))
    }
}

/// Ports below belong to services.
const SERVICES: u16 = 1_024;
/// Reason to doubt which side is the server.
const GUESSED: &str =
    "; the connection's opening was not captured, and only its ports show which side is the server";
