//! The formats of access logs, and the single entry point of their readers.
//!
//! Each format is parsed in a module of its own.

use quantity::names::UnknownName;

use crate::client::ClientDefinition;
use crate::clock::Clock;
use crate::tally::{MAX_LINE_BYTES, Reason, Tally};
use crate::target::{LoggedRequest, Target};
use crate::template::{Template, TemplateError};
use crate::w3c::Columns;
use crate::{Record, alb, clf, json};

/// Format of a log's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Common and Combined Log Format.
    Clf,
    /// nginx's or Apache's, by a format string.
    Template(Template),
    /// W3C extended: IIS, CloudFront.
    W3c(Columns),
    /// One JSON object per line.
    Json,
    /// AWS Application Load Balancer.
    Alb,
}

/// Reason why a format is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// Neither the name of a format nor a format string.
    #[error("{0}; or give a format string such as nginx's or Apache's")]
    Unknown(UnknownName),
    /// An unusable format string.
    #[error("{0}")]
    Template(TemplateError),
    /// A field name was given for a format without field names.
    #[error("{0} has no names for its fields; give the log's format string to name one")]
    NoNames(&'static str),
}

impl Format {
    /// Names of formats; `combined` and `cloudfront` are aliases of the first and the second.
    pub const NAMES: [&'static str; 6] = ["clf", "combined", "w3c", "cloudfront", "json", "alb"];

    /// The format by name, or by a format string if the text contains `$` or `%`.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn named(text: &str, definition: &ClientDefinition) -> Result<Self, FormatError> {
        let format = match text {
            "clf" | "combined" => Self::Clf,
            "w3c" | "cloudfront" => Self::W3c(Columns::default()),
            "json" => Self::Json,
            "alb" => Self::Alb,
            _ if text.contains(['$', '%']) => {
                Self::Template(Template::compile(text, definition).map_err(FormatError::Template)?)
            }
            _ => return Err(FormatError::Unknown(UnknownName::new("log format", text, Self::NAMES))),
        };
        format.check_client_field(definition)?;
        Ok(format)
    }

    /// Checks that the field of the client can be found.
    ///
    /// # Errors
    /// [`FormatError::NoNames`].
    pub fn check_client_field(&self, definition: &ClientDefinition) -> Result<(), FormatError> {
        match self {
            Self::Clf | Self::Alb if definition.field.is_some() => Err(FormatError::NoNames(self.name())),
            Self::Clf | Self::Alb | Self::Template(_) | Self::W3c(_) | Self::Json => Ok(()),
        }
    }

    /// Name for users.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Clf => "Common Log Format",
            Self::Template(_) => "a format string",
            Self::W3c(_) => "W3C extended",
            Self::Json => "JSON lines",
            Self::Alb => "AWS load balancer",
        }
    }
}

/// Reader of blocks of whole lines. Its state is small: clone it, [`skim`](Self::skim) the block with one and
/// read it with the other, and blocks can be read in parallel.
#[derive(Clone, Debug)]
pub struct Reader {
    format: Format,
    definition: ClientDefinition,
    clock: Clock,
}

impl Reader {
    /// A reader of a format.
    pub fn new(format: Format, definition: ClientDefinition) -> Self {
        Self { format, definition, clock: Clock::default() }
    }

    /// Processes only those parts of a block that later blocks need.
    pub fn skim(&mut self, block: &[u8]) {
        match &mut self.format {
            Format::W3c(columns) => columns.skim(block, &self.definition),
            Format::Clf | Format::Template(_) | Format::Json | Format::Alb => {}
        }
    }

    /// Passes every record of a block to `sink`, in the order of its lines.
    #[inline]
    pub fn read(&mut self, block: &[u8], sink: impl FnMut(Record)) -> Tally {
        let Self { format, definition, clock } = self;
        match format {
            Format::Clf => clf_lines(block, sink, clock, definition),
            Format::Template(template) => {
                lines(block, sink, |line| template.read(line, clock, definition).map(Some))
            }
            Format::Json => lines(block, sink, |line| json::read(line, clock, definition).map(Some)),
            Format::Alb => lines(block, sink, |line| alb::read(line, definition).map(Some)),
            Format::W3c(columns) => lines(block, sink, |line| {
                if line.starts_with(b"#") {
                    columns.directive(line, definition);
                    return Ok(None);
                }
                columns.read(line, definition).map(Some)
            }),
        }
    }

    /// The same, with the hash of each line's request target, where the log records it; slower.
    pub fn read_targets(&mut self, block: &[u8], mut sink: impl FnMut(Record, Option<Target>)) -> Tally {
        self.read_requests(block, |record, request| {
            sink(record, request.and_then(|request| request.target()))
        })
    }

    /// The same, with the request of each line, where the log records it.
    pub fn read_requests(
        &mut self,
        block: &[u8],
        mut sink: impl FnMut(Record, Option<LoggedRequest<'_>>),
    ) -> Tally {
        let Self { format, definition, clock } = self;
        let read = |line: &[u8]| {
            let (record, request) = match format {
                Format::Clf => (clf::read(line, clock, definition)?, clf::request(line)),
                Format::Template(template) => {
                    (template.read(line, clock, definition)?, template.request(line))
                }
                Format::Json => (json::read(line, clock, definition)?, json::request(line)),
                Format::Alb => (alb::read(line, definition)?, alb::request(line)),
                Format::W3c(columns) if line.starts_with(b"#") => {
                    columns.directive(line, definition);
                    return Ok(None);
                }
                Format::W3c(columns) => (columns.read(line, definition)?, columns.request(line)),
            };
            // The line is still available here: an unwrapped one is dropped when `lines` has its record.
            sink(record, request);
            Ok(Some(record))
        };
        lines(block, |_| (), read)
    }
}

/// Reads the lines of a block in Common Log Format: plain lines on the fast path, the others like those of
/// other formats.
#[inline]
fn clf_lines(
    mut block: &[u8],
    mut sink: impl FnMut(Record),
    clock: &mut Clock,
    definition: &ClientDefinition,
) -> Tally {
    let mut tally = Tally::default();
    while !block.is_empty() {
        if let Some((record, length)) = clf::read_plain(block, clock, definition) {
            tally.lines += 1;
            tally.record(record.time);
            sink(record);
            block = &block[length..];
            continue;
        }
        let end = memchr::memchr(b'\n', block).unwrap_or(block.len());
        line(&block[..end], &mut tally, &mut sink, &mut |line| clf::read(line, clock, definition).map(Some));
        block = &block[block.len().min(end + 1)..];
    }
    tally
}

/// Passes each line of a block to `read`, counts it, and passes its record to `sink`.
#[inline]
fn lines(
    block: &[u8],
    mut sink: impl FnMut(Record),
    mut read: impl FnMut(&[u8]) -> Result<Option<Record>, Reason>,
) -> Tally {
    let mut tally = Tally::default();
    let mut from = 0;
    let ends = memchr::memchr_iter(b'\n', block);
    let last = (!block.ends_with(b"\n") && !block.is_empty()).then_some(block.len());
    for end in ends.chain(last) {
        line(&block[from..end], &mut tally, &mut sink, &mut read);
        from = end + 1;
    }
    tally
}

/// Reads one line, without its line ending.
#[inline]
fn line(
    line: &[u8],
    tally: &mut Tally,
    sink: &mut impl FnMut(Record),
    read: &mut impl FnMut(&[u8]) -> Result<Option<Record>, Reason>,
) {
    tally.lines += 1;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return;
    }
    match read(line).or_else(|reason| retry_unquoted(line, reason, read)) {
        Ok(Some(record)) => {
            tally.record(record.time);
            sink(record);
        }
        Ok(None) => {}
        Err(reason) => tally.reject(reason, line),
    }
}

/// Retries a line that could not be parsed: some exports wrap each line in quotes and double those within.
#[cold]
fn retry_unquoted(
    line: &[u8],
    reason: Reason,
    read: &mut impl FnMut(&[u8]) -> Result<Option<Record>, Reason>,
) -> Result<Option<Record>, Reason> {
    if line.len() > MAX_LINE_BYTES {
        return Err(Reason::TooLong);
    }
    let Some(inner) = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")) else {
        return Err(reason);
    };
    let mut unwrapped = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if matches!(byte, b'"' | b'\\') {
            bytes.next_if_eq(&b'"');
            unwrapped.push(if byte == b'\\' && bytes.peek().is_some() { b'"' } else { byte });
            continue;
        }
        unwrapped.push(byte);
    }
    // Directives are found without parsing these lines, so they cannot be wrapped.
    if unwrapped.starts_with(b"#") {
        return Err(reason);
    }
    read(&unwrapped).map_err(|_| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"192.0.2.1 - - [25/Oct/2015:04:11:25 +0100] "GET / HTTP/1.1" 200 24323 "-" "curl""#;

    fn read(block: &str) -> (Vec<Record>, Tally) {
        let mut records = Vec::new();
        let tally = Reader::new(Format::Clf, ClientDefinition::default())
            .read(block.as_bytes(), |record| records.push(record));
        (records, tally)
    }

    #[test]
    fn line_ends_of_every_kind_make_no_difference() {
        let (expected, _) = read(LINE);
        assert_eq!(expected.len(), 1);
        for block in [format!("{LINE}\n"), format!("{LINE}\r\n"), format!("\n\r\n{LINE}\n\n")] {
            assert_eq!(read(&block).0, expected, "{block:?}");
        }
    }

    #[test]
    fn whole_lines_in_quotes_are_unwrapped() {
        let doubled = format!("\"{}\"", LINE.replace('"', "\"\""));
        let escaped = format!("\"{}\"", LINE.replace('"', "\\\""));
        let (expected, _) = read(LINE);
        assert_eq!(read(&doubled).0, expected);
        assert_eq!(read(&escaped).0, expected);
    }

    #[test]
    fn targets_come_with_their_records_wrapped_or_not() {
        let doubled = format!("\"{}\"", LINE.replace("/ ", "/a ").replace('"', "\"\""));
        let block = format!("{LINE}\nnonsense\n{doubled}\n");
        let (mut records, mut targets) = (Vec::new(), Vec::new());
        let tally = Reader::new(Format::Clf, ClientDefinition::default()).read_targets(
            block.as_bytes(),
            |record, target| {
                records.push(record);
                targets.push(target);
            },
        );
        assert_eq!((&records, tally.lines), (&read(&block).0, 3));
        assert_eq!(targets, [Target::of(b"/"), Target::of(b"/a")]);
    }

    #[test]
    fn bad_lines_and_times_that_run_backwards_are_counted() {
        let earlier = LINE.replace("04:11:25", "04:11:24");
        let (records, tally) = read(&format!("{LINE}\nnonsense\n{earlier}\n{LINE}\n\u{fffd}\0\n"));
        assert_eq!((records.len(), tally.lines, tally.records), (3, 5, 3));
        assert_eq!((tally.backwards, tally.bad()), (1, 2));
        let (_, _, examples) = tally.reasons().next().unwrap();
        assert_eq!((examples[0].line, examples[0].text.as_str()), (2, "nonsense"));
    }

    #[test]
    fn unknown_name_suggests_the_nearest() {
        let error = Format::named("cfl", &ClientDefinition::default()).unwrap_err().to_string();
        assert!(error.starts_with("unknown log format `cfl`; did you mean `clf`?"), "{error}");
        let definition = ClientDefinition { field: Some("x".to_owned()), prefix: None };
        assert!(Format::named("clf", &definition).is_err() && Format::named("json", &definition).is_ok());
    }
}
