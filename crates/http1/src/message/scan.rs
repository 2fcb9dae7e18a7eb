//! Finds the end of a head, byte by byte, and rejects input that parsers interpret differently.
//!
//! Not a parser: it distinguishes lines, not their meaning. It decides on each byte in turn, so the fault is the same however
//! the input is split (RFC 9112, sections 2.2 and 5).

use super::PeerFault;

/// Received bytes of a head (or a trailer section), until the empty line that ends it.
#[derive(Debug)]
pub(crate) struct Scan {
    rules: Rules,
    buffered: Vec<u8>,
    /// Bytes taken since the last head, empty lines before this one included.
    taken: usize,
    blank_lines: usize,
    line: LineState,
}

/// Limits of the scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) opening: FirstLine,
    /// Maximum bytes.
    pub(crate) bytes: usize,
    /// Fault reported beyond them.
    pub(crate) too_many: PeerFault,
}

/// Kind of the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstLine {
    /// A request line, after at most this many empty lines.
    RequestLine { blank_lines: usize },
    /// A status line. Anything else is refused immediately: a peer that speaks another protocol may be waiting for data.
    StatusLine,
    /// A field, or the end immediately: trailers.
    Field,
}

/// Position of the scan in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    /// Before the first byte; `first` until a non-empty line has ended.
    Start { first: bool },
    /// After its first byte.
    Inside,
    /// After the carriage return of a non-empty line.
    Ending,
    /// After the carriage return of an empty line.
    EndingEmpty { first: bool },
}

/// Result of a byte.
enum ScanStep {
    More,
    /// An empty line before the start line; it does not count as part of the head.
    Blank,
    /// The head ended.
    End,
}

const STATUS_LINE_BEGINS: &[u8] = b"HTTP/";

impl Scan {
    pub(crate) const fn new(rules: Rules) -> Self {
        Self { rules, buffered: Vec::new(), taken: 0, blank_lines: 0, line: LineState::Start { first: true } }
    }

    /// Whether only empty lines have arrived since the last head.
    pub(crate) fn is_empty(&self) -> bool {
        self.line == LineState::Start { first: true }
    }

    /// Takes bytes off the front of `input` up to the end of the head. If the head is complete, passes it to `parse` and is
    /// then ready for the next.
    pub(crate) fn take<T>(
        &mut self,
        input: &mut &[u8],
        parse: impl FnOnce(&[u8]) -> Result<T, PeerFault>,
    ) -> Result<Option<T>, PeerFault> {
        // Start of the head in `input`: after 0 if empty lines precede it.
        let mut from = 0;
        let mut at = 0;
        while let Some(byte) = input.get(at) {
            let step = self.step(*byte)?;
            at += 1;
            match step {
                ScanStep::More => at += self.skip_lines(&input[at..]),
                ScanStep::Blank => {
                    self.buffered.clear();
                    from = at;
                }
                ScanStep::End => {
                    let (last, rest) = input.split_at(at);
                    *input = rest;
                    return self.finish(&last[from..], parse).map(Some);
                }
            }
        }
        self.buffered.extend_from_slice(&input[from..]);
        *input = &[];
        Ok(None)
    }

    /// Skips the rest of a line and complete valid lines after it in one step, within the limit. Without it, most of the time
    /// would be spent on single bytes.
    fn skip_lines(&mut self, input: &[u8]) -> usize {
        let checks_status_line =
            self.rules.opening == FirstLine::StatusLine && self.taken < STATUS_LINE_BEGINS.len();
        if self.line != LineState::Inside || checks_status_line {
            return 0;
        }
        let allowed = input.get(..self.rules.bytes - self.taken).unwrap_or(input);
        let mut skipped = text_at_front(allowed);
        while let Some([b'\r', b'\n', 0x21..=0x7e | 0x80.., rest @ ..]) = allowed.get(skipped..) {
            skipped += 3 + text_at_front(rest);
        }
        self.taken += skipped;
        skipped
    }

    /// Parses the head: in place if it arrived in one piece, as most do.
    fn finish<T>(
        &mut self,
        last: &[u8],
        parse: impl FnOnce(&[u8]) -> Result<T, PeerFault>,
    ) -> Result<T, PeerFault> {
        let mut buffered = std::mem::take(&mut self.buffered);
        *self = Self::new(self.rules);
        if buffered.is_empty() {
            return parse(last);
        }
        buffered.extend_from_slice(last);
        parse(&buffered)
    }

    fn step(&mut self, byte: u8) -> Result<ScanStep, PeerFault> {
        if self.taken == self.rules.bytes {
            return Err(self.rules.too_many);
        }
        let opening = (self.rules.opening == FirstLine::StatusLine).then_some(STATUS_LINE_BEGINS);
        if opening
            .and_then(|expected_bytes| expected_bytes.get(self.taken))
            .is_some_and(|expected| *expected != byte)
        {
            return Err(PeerFault::StatusLine);
        }
        self.taken += 1;
        let (line, step) = match (self.line, byte) {
            (LineState::Inside, b'\t' | 0x20..=0x7e | 0x80..) => (LineState::Inside, ScanStep::More),
            (LineState::Inside, b'\r') => (LineState::Ending, ScanStep::More),
            (LineState::Ending, b'\n') => (LineState::Start { first: false }, ScanStep::More),
            (LineState::Start { first }, b'\r') => (LineState::EndingEmpty { first }, ScanStep::More),
            (LineState::EndingEmpty { first: true }, b'\n') => {
                (LineState::Start { first: true }, self.blank()?)
            }
            (LineState::EndingEmpty { first: false }, b'\n') => {
                (LineState::Start { first: true }, ScanStep::End)
            }
            (LineState::Ending | LineState::EndingEmpty { first: _ }, _) => {
                return Err(PeerFault::BareCarriageReturn);
            }
            (LineState::Start { first: _ } | LineState::Inside, b'\n') => {
                return Err(PeerFault::BareLineFeed);
            }
            (LineState::Start { first: _ }, b' ' | b'\t') => return Err(PeerFault::FoldedLine),
            (LineState::Start { first: _ } | LineState::Inside, 0..=0x1f | 0x7f) => {
                return Err(PeerFault::ControlCharacter);
            }
            (LineState::Start { first: _ }, 0x21..=0x7e | 0x80..) => (LineState::Inside, ScanStep::More),
        };
        self.line = line;
        Ok(step)
    }

    /// Handles an empty line before any other.
    fn blank(&mut self) -> Result<ScanStep, PeerFault> {
        match self.rules.opening {
            FirstLine::Field => Ok(ScanStep::End),
            FirstLine::RequestLine { blank_lines } if self.blank_lines < blank_lines => {
                self.blank_lines += 1;
                Ok(ScanStep::Blank)
            }
            FirstLine::RequestLine { blank_lines: _ } | FirstLine::StatusLine => Err(PeerFault::BlankLines),
        }
    }
}

/// Returns the number of bytes at the front that may be inside a line.
fn text_at_front(bytes: &[u8]) -> usize {
    // Without a branch for each byte, so that the compiler can vectorize it.
    let is_text = |byte: &u8| (*byte >= 0x20 && *byte != 0x7f) | (*byte == b'\t');
    let all_text = |piece: &[u8]| piece.iter().fold(true, |all, byte| all & is_text(byte));
    let mut skipped = bytes.as_chunks::<16>().0.iter().take_while(|piece| all_text(*piece)).count() * 16;
    for size in [8, 4] {
        let piece = bytes.get(skipped..skipped + size);
        skipped += piece.filter(|piece| all_text(piece)).map_or(0, <[u8]>::len);
    }
    let rest = bytes.get(skipped..).unwrap_or_default();
    skipped + rest.iter().take_while(|byte| is_text(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_rules() -> Rules {
        Rules {
            opening: FirstLine::RequestLine { blank_lines: 1 },
            bytes: 64,
            too_many: PeerFault::HeadTooLarge,
        }
    }

    /// Returns the head and the rest, or the fault, when the input is split into pieces of `cut` bytes.
    fn scan(text: &str, rules: Rules, cut: usize) -> Result<Option<(String, String)>, PeerFault> {
        let mut scan = Scan::new(rules);
        for (index, mut piece) in text.as_bytes().chunks(cut).enumerate() {
            if let Some(head) =
                scan.take(&mut piece, |head| Ok(String::from_utf8_lossy(head).into_owned()))?
            {
                let remaining = (index + 1) * cut - piece.len();
                assert!(scan.is_empty());
                return Ok(Some((head, text[remaining.min(text.len() - piece.len())..].to_owned())));
            }
        }
        Ok(None)
    }

    fn at_every_cut(text: &str, rules: Rules) -> Result<Option<(String, String)>, PeerFault> {
        let whole = scan(text, rules, text.len());
        for cut in 1..text.len() {
            let result = scan(text, rules, cut).map(|result| result.map(|(head, _)| head));
            assert_eq!(
                result,
                whole.clone().map(|result| result.map(|(head, _)| head)),
                "cut {cut}: {text:?}"
            );
        }
        whole
    }

    #[test]
    fn a_header_section_ends_at_its_empty_line() {
        let result = at_every_cut("\r\nA b\r\nC: d\r\n\r\nbody", request_rules());
        assert_eq!(result, Ok(Some(("A b\r\nC: d\r\n\r\n".to_owned(), "body".to_owned()))));
        assert_eq!(at_every_cut("A b\r\n\r", request_rules()), Ok(None));
    }

    #[test]
    fn rejects_input_that_parsers_disagree_about() {
        for (text, fault) in [
            ("A\nB\n\n", PeerFault::BareLineFeed),
            ("A\rB\r\n", PeerFault::BareCarriageReturn),
            ("A\r\n\rB", PeerFault::BareCarriageReturn),
            ("A\r\n B\r\n", PeerFault::FoldedLine),
            (" A\r\n", PeerFault::FoldedLine),
            ("A\0\r\n", PeerFault::ControlCharacter),
            ("\u{7f}", PeerFault::ControlCharacter),
            ("\r\n\r\nA\r\n", PeerFault::BlankLines),
            ("\n", PeerFault::BareLineFeed),
        ] {
            assert_eq!(at_every_cut(text, request_rules()), Err(fault), "{text:?}");
        }
        assert_eq!(at_every_cut(&"x".repeat(65), request_rules()), Err(PeerFault::HeadTooLarge));
    }

    #[test]
    fn other_protocols_are_detected_by_their_first_bytes() {
        let rules = Rules { opening: FirstLine::StatusLine, ..request_rules() };
        assert_eq!(at_every_cut("SSH-2.0", rules), Err(PeerFault::StatusLine));
        assert_eq!(at_every_cut("HTTP!", rules), Err(PeerFault::StatusLine));
    }

    #[test]
    fn trailers_may_be_empty() {
        let rules = Rules { opening: FirstLine::Field, ..request_rules() };
        assert_eq!(at_every_cut("\r\nx", rules), Ok(Some(("\r\n".to_owned(), "x".to_owned()))));
    }
}
