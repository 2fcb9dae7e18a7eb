//! nginx's `log_format` and Apache's `LogFormat`, compiled to fields and the text between them.
//!
//! A field ends where the format's following text begins. Variables without meaning here (`$request`, `%r`)
//! are skipped. Formats: <https://nginx.org/en/docs/http/ngx_http_log_module.html>,
//! <https://httpd.apache.org/docs/2.4/mod/mod_log_config.html>.

use memchr::memmem;
use quantity::names::Quoted;
use wire::{Bytes, Duration, Time};

use crate::client::ClientDefinition;
use crate::clock::{self, Clock};
use crate::tally::Reason;
use crate::target::LoggedRequest;
use crate::{Record, SizeScope, client, number};

/// A format string, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Text before the first field.
    before: Vec<u8>,
    /// Each field and the text that ends it.
    fields: Vec<(Field, Vec<u8>)>,
}

/// Meaning of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Client,
    /// By name: the client, if the user chose the field.
    Named(String),
    Time(TimeNotation),
    Status,
    Size(SizeScope),
    /// Duration, with the nanoseconds per unit.
    Taken(u64),
}

/// Notation of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeNotation {
    Clf,
    /// With the brackets of Apache's `%t`.
    Bracketed,
    Iso,
    /// Since 1970, with the nanoseconds per unit; with decimals, seconds.
    Since(u64),
}

/// Reason why a format string is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A required field is missing: the client, or the time.
    #[error("the format string lacks {0}; add it, or name the field of the client")]
    Lacks(&'static str),
    /// A field that may not be safe to skip.
    #[error("unknown directive {}; use a format without it", Quoted(.0))]
    Unknown(String),
    /// Two fields with no text between them.
    #[error("{} follows a field without a separator; add one", Quoted(.0))]
    Touching(String),
}

impl Template {
    /// Compiles a format string: with `$` it is nginx's, else Apache's.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub fn compile(format: &str, definition: &ClientDefinition) -> Result<Self, TemplateError> {
        let pieces = if format.contains('$') { nginx(format) } else { apache(format)? };
        let mut template = Self { before: Vec::new(), fields: Vec::new() };
        for piece in pieces {
            match piece {
                TemplatePart::Text(text) => {
                    template.fields.last_mut().map_or(&mut template.before, |(_, end)| end).extend(text)
                }
                TemplatePart::Field(field, name) => {
                    if template.fields.last().is_some_and(|(_, end)| end.is_empty()) {
                        return Err(TemplateError::Touching(name));
                    }
                    template.fields.push((named(field, &name, definition), Vec::new()));
                }
            }
        }
        let has = |wanted: fn(&Field) -> bool| template.fields.iter().any(|(field, _)| wanted(field));
        if !has(|field| *field == Field::Client) {
            return Err(TemplateError::Lacks("the client ($remote_addr, %h)"));
        }
        if !has(|field| matches!(field, Field::Time(_))) {
            return Err(TemplateError::Lacks("the time ($time_local, %t)"));
        }
        Ok(template)
    }

    /// The request of a line; `None` where it is not recorded.
    pub(super) fn request<'a>(&self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        let text = self.text_of(line, &TARGETS)?;
        let request = LoggedRequest::of_line(text).or_else(|| LoggedRequest::of_path(text))?;
        Some(request.with_method(self.text_of(line, &METHODS)))
    }

    /// The text of the field with the first of these names that the format has.
    fn text_of<'a>(&self, line: &'a [u8], names: &[&str]) -> Option<&'a [u8]> {
        let index = |name: &&str| {
            let is_it = |(field, _): &(Field, Vec<u8>)| matches!(field, Field::Named(named) if named == name);
            self.fields.iter().position(is_it)
        };
        let index = names.iter().find_map(index)?;
        let mut rest = line.strip_prefix(self.before.as_slice())?;
        let mut text = &[][..];
        for (field, end) in self.fields.get(..=index)? {
            (text, rest) = cut(rest, end, matches!(field, Field::Named(_)))?;
        }
        Some(text)
    }

    /// Whether lines of this format record sizes.
    pub fn has_sizes(&self) -> bool {
        self.fields.iter().any(|(field, _)| matches!(field, Field::Size(_)))
    }

    /// Parses one line, without its line ending.
    ///
    /// # Errors
    /// The reason why the line gives no record.
    pub fn read(
        &self,
        line: &[u8],
        clock: &mut Clock,
        definition: &ClientDefinition,
    ) -> Result<Record, Reason> {
        let mut rest = line.strip_prefix(self.before.as_slice()).ok_or(Reason::Shape)?;
        let (mut client, mut time, mut taken) = (None, None, None);
        let (mut status, mut size, mut covers) = (0, None, SizeScope::Body);
        for (field, end) in &self.fields {
            let text;
            (text, rest) = cut(rest, end, matches!(field, Field::Named(_))).ok_or(Reason::Shape)?;
            match field {
                Field::Client => client = Some(text),
                Field::Named(_) => {}
                Field::Time(when) => time = Some(when.read(text, clock).ok_or(Reason::Time)?),
                Field::Status => status = number::status(text)?,
                Field::Size(what) => (size, covers) = (number::size(text)?, *what),
                Field::Taken(unit) => taken = in_units(text, *unit).map(Duration::from_nanos),
            }
        }
        // A quote at the beginning wraps the whole line.
        let client =
            client.filter(|client| !matches!(*client, b"-" | b"" | [b'"', ..])).ok_or(Reason::Client)?;
        let size: Option<Bytes> = size;
        let client = definition.client(client::without_port(client));
        Ok(Record { time: time.ok_or(Reason::Time)?, client, status, size, covers, taken })
    }
}

/// Splits the text at `end`; everything belongs to the field where nothing ends it. Free text in quotes may
/// contain an escaped quote.
#[inline]
fn cut<'a>(text: &'a [u8], end: &[u8], free: bool) -> Option<(&'a [u8], &'a [u8])> {
    if end.is_empty() {
        return Some((text, &[]));
    }
    let mut from = 0;
    loop {
        let at = from + memmem::find(text.get(from..)?, end)?;
        let escapes = text[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        if free && end[0] == b'"' && escapes % 2 == 1 {
            from = at + 1;
            continue;
        }
        return Some((&text[..at], &text[at + end.len()..]));
    }
}

impl TimeNotation {
    fn read(self, text: &[u8], clock: &mut Clock) -> Option<Time> {
        match self {
            Self::Clf => clock.read(text.try_into().ok()?),
            Self::Bracketed => {
                let inner = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
                clock.read(inner.try_into().ok()?)
            }
            Self::Iso => clock::iso_8601(text),
            Self::Since(unit) => in_units(text, unit).map(Time::from_nanos),
        }
    }
}

/// Parses a whole number of units, or seconds with decimals.
fn in_units(text: &[u8], unit: u64) -> Option<u64> {
    match unit {
        SECOND => number::billionths(text),
        _ => number::whole(text)?.checked_mul(unit),
    }
}

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;
const MICRO: u64 = 1_000;

/// Names of the request target, best first: nginx's, then Apache's.
const TARGETS: [&str; 5] = ["request_uri", "uri", "request", "r", "U"];

/// Fields with the method, of nginx and of Apache.
const METHODS: [&str; 2] = ["request_method", "m"];

enum TemplatePart {
    Text(Vec<u8>),
    /// The field, and its name in the format.
    Field(Field, String),
}

/// Applies the user's choice: the named field is the client, and the default client field is not.
fn named(field: Field, name: &str, definition: &ClientDefinition) -> Field {
    match (&definition.field, field) {
        (Some(wanted), _) if wanted.eq_ignore_ascii_case(name) => Field::Client,
        (Some(_), Field::Client) => Field::Named(name.to_owned()),
        (Some(_) | None, field) => field,
    }
}

fn nginx(format: &str) -> Vec<TemplatePart> {
    let mut pieces = Vec::new();
    let mut parts = format.split('$');
    pieces.push(TemplatePart::Text(parts.next().unwrap_or_default().into()));
    for part in parts {
        // `${name}` separates a name from the following letters.
        let (name, text) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some((name, text)) => (name, text),
            None => {
                let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                part.split_at(end.unwrap_or(part.len()))
            }
        };
        let field = match name {
            "remote_addr" => Field::Client,
            "time_local" => Field::Time(TimeNotation::Clf),
            "time_iso8601" => Field::Time(TimeNotation::Iso),
            "msec" => Field::Time(TimeNotation::Since(SECOND)),
            "status" => Field::Status,
            "body_bytes_sent" => Field::Size(SizeScope::Body),
            "bytes_sent" => Field::Size(SizeScope::Whole),
            "request_time" => Field::Taken(SECOND),
            other => Field::Named(other.to_owned()),
        };
        pieces.push(TemplatePart::Field(field, name.to_owned()));
        pieces.push(TemplatePart::Text(text.into()));
    }
    pieces
}

fn apache(format: &str) -> Result<Vec<TemplatePart>, TemplateError> {
    // As written in a configuration file, between quotes.
    let format = format.replace("\\\"", "\"").replace("\\t", "\t");
    let mut pieces = Vec::new();
    let mut parts = format.split('%');
    pieces.push(TemplatePart::Text(parts.next().unwrap_or_default().into()));
    let mut literal = false;
    for part in parts {
        if literal {
            literal = false;
            pieces.push(TemplatePart::Text(part.into()));
            continue;
        }
        if part.is_empty() {
            // `%%` is a percent sign.
            literal = true;
            pieces.push(TemplatePart::Text(b"%".to_vec()));
            continue;
        }
        // `%>s`, `%<u`, `%!200,304r`: which of several, or for which status.
        let name = part.trim_start_matches(|letter: char| letter.is_ascii_digit() || "<>!,".contains(letter));
        let (argument, rest) = match name.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some((argument, rest)) => (argument, rest),
            None => ("", name),
        };
        let letter = rest.chars().next().unwrap_or_default();
        let text = &rest[letter.len_utf8().min(rest.len())..];
        let field = directive(letter, argument).ok_or_else(|| TemplateError::Unknown(format!("%{part}")))?;
        let name = if argument.is_empty() { format!("%{letter}") } else { argument.to_owned() };
        pieces.push(TemplatePart::Field(field, name));
        pieces.push(TemplatePart::Text(text.into()));
    }
    Ok(pieces)
}

fn directive(letter: char, argument: &str) -> Option<Field> {
    Some(match (letter, argument) {
        ('h' | 'a', _) => Field::Client,
        ('t', "") => Field::Time(TimeNotation::Bracketed),
        ('t', "sec") => Field::Time(TimeNotation::Since(SECOND)),
        ('t', "msec") => Field::Time(TimeNotation::Since(MILLI)),
        ('t', "usec") => Field::Time(TimeNotation::Since(MICRO)),
        ('t', _) => return None,
        ('s', _) => Field::Status,
        ('b' | 'B', _) => Field::Size(SizeScope::Body),
        ('O', _) => Field::Size(SizeScope::Whole),
        ('D', _) | ('T', "us") => Field::Taken(MICRO),
        ('T', "ms") => Field::Taken(MILLI),
        ('T', _) => Field::Taken(SECOND),
        (letter, argument) if letter.is_ascii_alphabetic() => Field::Named(format!("{letter}{argument}")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    fn read(format: &str, line: &str) -> Result<Record, Reason> {
        let definition = ClientDefinition::default();
        Template::compile(format, &definition).unwrap().read(
            line.as_bytes(),
            &mut Clock::default(),
            &definition,
        )
    }

    #[test]
    fn nginx_s_and_apache_s_combined_give_the_same_record() {
        let nginx = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;
        let apache = r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-agent}i\""#;
        let line = r#"192.0.2.1 - joe [25/Oct/2015:04:11:25 +0100] "GET /\"x\" HTTP/1.1" 200 24323 "-" "Mozilla \"q\"""#;
        let record = read(nginx, line).unwrap();
        assert_eq!((record.client, record.status), (Client::of(b"192.0.2.1"), 200));
        assert_eq!(record.size, Some(Bytes::new(24_323)));
        assert_eq!(read(apache, line), Ok(record));
        for format in [nginx, apache] {
            let template = Template::compile(format, &ClientDefinition::default()).unwrap();
            let request = template.request(line.as_bytes()).unwrap();
            assert_eq!((request.method, request.path), (Some(&b"GET"[..]), &br#"/\"x\""#[..]), "{format}");
        }
    }

    #[test]
    fn parses_durations_and_other_time_formats() {
        let line = "1646861401.524 192.0.2.1 200 10 0.250";
        let record = read("$msec $remote_addr $status $bytes_sent $request_time", line).unwrap();
        assert_eq!(record.time, Time::from_nanos(1_646_861_401_524_000_000));
        assert_eq!((record.taken, record.covers), (Some(Duration::from_millis(250)), SizeScope::Whole));
        let record =
            read("%{usec}t|%a|%s|%O|%D|100%%", "1646861401524000|192.0.2.1|200|10|250000|100%").unwrap();
        assert_eq!((record.taken, record.covers), (Some(Duration::from_millis(250)), SizeScope::Whole));
    }

    #[test]
    fn another_field_can_be_the_client() {
        let definition = ClientDefinition { field: Some("http_x_forwarded_for".to_owned()), prefix: None };
        let template =
            Template::compile(r#"$remote_addr [$time_local] $status "$http_x_forwarded_for""#, &definition)
                .unwrap();
        let line = br#"10.0.0.1 [25/Oct/2015:04:11:25 +0100] 200 "192.0.2.1""#;
        assert_eq!(
            template.read(line, &mut Clock::default(), &definition).unwrap().client,
            Client::of(b"192.0.2.1")
        );
        assert!(!template.has_sizes());
    }

    #[test]
    fn formats_that_cannot_work_are_refused_with_the_remedy() {
        let refused =
            |format| Template::compile(format, &ClientDefinition::default()).unwrap_err().to_string();
        assert!(refused("$status $time_local").starts_with("the format string lacks the client"));
        assert!(refused("%h %s").starts_with("the format string lacks the time"));
        assert!(
            refused("$remote_addr$time_local")
                .starts_with("`time_local` follows a field without a separator")
        );
        assert!(refused("%h %{%Y-%m-%d}t").contains("unknown directive"));
    }
}
