//! W3C extended logs: `#Fields` names the columns, and may recur and change in the middle of a file.
//!
//! Written by IIS (fields separated by spaces, `time-taken` in milliseconds) and CloudFront (by tabs, in
//! seconds with decimals). The format is <https://www.w3.org/TR/WD-logfile>; times are UTC. `sc-bytes`
//! includes the response's headers.

use wire::Duration;

use crate::client::ClientDefinition;
use crate::tally::Reason;
use crate::target::LoggedRequest;
use crate::{Record, SizeScope, client, clock, number};

/// Meaning of the columns; none before the first `#Fields`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    indices: Option<ColumnIndices>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ColumnIndices {
    date: Option<usize>,
    time: usize,
    client: usize,
    status: Option<usize>,
    size: Option<usize>,
    taken: Option<usize>,
    target: Option<usize>,
    query: Option<usize>,
    method: Option<usize>,
}

impl Columns {
    /// Processes a line that begins with `#`.
    pub fn directive(&mut self, line: &[u8], definition: &ClientDefinition) {
        let Some(names) = line.strip_prefix(b"#Fields:") else { return };
        let names: Vec<&[u8]> = fields(names.trim_ascii()).collect();
        let find = |name: &str| names.iter().position(|values| values.eq_ignore_ascii_case(name.as_bytes()));
        let client = definition.field.as_deref().map_or_else(|| find("c-ip"), find);
        self.indices = find("time").zip(client).map(|(time, client)| ColumnIndices {
            date: find("date"),
            time,
            client,
            status: find("sc-status"),
            size: find("sc-bytes"),
            taken: find("time-taken"),
            target: find("cs-uri-stem"),
            query: find("cs-uri-query"),
            method: find("cs-method"),
        });
    }

    /// Processes the lines of a block that begin with `#`.
    pub fn skim(&mut self, block: &[u8], definition: &ClientDefinition) {
        for at in memchr::memmem::find_iter(block, b"#Fields:") {
            if at == 0 || block[at - 1] == b'\n' {
                let line = block[at..].split(|byte| *byte == b'\n').next().unwrap_or_default();
                self.directive(line.strip_suffix(b"\r").unwrap_or(line), definition);
            }
        }
    }

    /// Parses one line of data.
    ///
    /// # Errors
    /// The reason why the line gives no record.
    pub fn read(&self, line: &[u8], definition: &ClientDefinition) -> Result<Record, Reason> {
        let Some(ColumnIndices { date, time, client, status, size, taken, target: _, query: _, method: _ }) =
            self.indices
        else {
            return Err(Reason::Fields);
        };
        let fields = Fields::of(line);
        let field = |index: usize| fields.get(index).ok_or(Reason::Shape);
        let optional =
            |index: Option<usize>| index.map(field).transpose().map(|values| values.unwrap_or(b"-"));
        let time = match date {
            Some(date) => clock::date_and_time(field(date)?, field(time)?),
            None => clock::iso_8601(field(time)?),
        };
        let client = field(client)?;
        if matches!(client, b"-" | b"") {
            return Err(Reason::Client);
        }
        Ok(Record {
            time: time.ok_or(Reason::Time)?,
            client: definition.client(client::without_port(client)),
            status: number::status(optional(status)?)?,
            size: number::size(optional(size)?)?,
            covers: SizeScope::Whole,
            taken: span(optional(taken)?),
        })
    }

    /// The request of a line; `None` where it is not recorded.
    pub(super) fn request<'a>(&self, line: &'a [u8]) -> Option<LoggedRequest<'a>> {
        let indices = self.indices.as_ref()?;
        let fields = Fields::of(line);
        let field = |index: Option<usize>| index.and_then(|index| fields.get(index));
        let request = LoggedRequest::of_path(field(indices.target)?)?.with_method(field(indices.method));
        let query = field(indices.query).filter(|query| !matches!(*query, b"" | b"-"));
        Some(LoggedRequest { query, ..request })
    }
}

/// Parses a duration: in seconds with a decimal point, as in CloudFront and the draft; in milliseconds
/// without, as in IIS.
fn span(text: &[u8]) -> Option<Duration> {
    match text.contains(&b'.') {
        true => number::seconds(text),
        false => number::whole(text).map(Duration::from_millis),
    }
}

/// Beginnings of a line's fields; the 64th and later ones are never used.
struct Fields<'a> {
    values: [&'a [u8]; 64],
    count: usize,
}

impl<'a> Fields<'a> {
    fn of(line: &'a [u8]) -> Self {
        let mut values = [&[][..]; 64];
        let mut count = 0;
        for (index, field) in values.iter_mut().zip(fields(line)) {
            *index = field;
            count += 1;
        }
        Self { values, count }
    }

    fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.values[..self.count].get(index).copied()
    }
}

/// Splits at tabs if there is one, else at spaces.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let tabs = memchr::memchr(b'\t', line).is_some();
    line.split(move |byte| if tabs { *byte == b'\t' } else { *byte == b' ' })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    fn columns(directive: &str) -> Columns {
        let mut columns = Columns::default();
        columns.directive(directive.as_bytes(), &ClientDefinition::default());
        columns
    }

    #[test]
    fn a_line_of_iis_is_read_by_its_fields() {
        let iis = columns("#Fields: date time s-ip cs-method cs-uri-stem sc-status sc-bytes time-taken c-ip");
        let record = iis
            .read(b"2015-10-25 04:11:25 10.0.0.1 GET /x 200 4510 46 192.0.2.7", &ClientDefinition::default())
            .unwrap();
        assert_eq!((record.client, record.status), (Client::of(b"192.0.2.7"), 200));
        assert_eq!((record.size.unwrap().get(), record.taken), (4_510, Some(Duration::from_millis(46))));
        let request = iis.request(b"2015-10-25 04:11:25 10.0.0.1 GET /x 200").unwrap();
        assert_eq!((request.method, request.path), (Some(&b"GET"[..]), &b"/x"[..]));
    }

    #[test]
    fn a_line_of_cloudfront_is_read_between_tabs_and_in_seconds() {
        let cloudfront =
            columns("#Fields: date time x-edge-location sc-bytes c-ip cs-method sc-status time-taken");
        let line = b"2019-12-04\t21:02:31\tLAX 1\t392\t2001:db8::1\tGET\t200\t0.001";
        let record = cloudfront.read(line, &ClientDefinition::default()).unwrap();
        assert_eq!(
            (record.client, record.taken),
            (Client::of(b"2001:db8::1"), Some(Duration::from_millis(1)))
        );
    }

    #[test]
    fn rejects_data_before_its_fields_and_short_lines() {
        assert_eq!(Columns::default().read(b"x", &ClientDefinition::default()), Err(Reason::Fields));
        assert_eq!(
            columns("#Fields: date time c-ip").read(b"2015-10-25 04:11:25", &ClientDefinition::default()),
            Err(Reason::Shape)
        );
        assert_eq!(
            columns("#Fields: date time").read(b"x", &ClientDefinition::default()),
            Err(Reason::Fields)
        );
    }

    #[test]
    fn skimming_a_block_finds_its_last_fields() {
        let mut columns = Columns::default();
        columns.skim(
            b"#Fields: time\r\nx #Fields: y\n#Fields: date time c-ip\r\n2015",
            &ClientDefinition::default(),
        );
        let indices = columns.indices.unwrap();
        assert_eq!((indices.date, indices.time, indices.client), (Some(0), 1, 2));
    }
}
