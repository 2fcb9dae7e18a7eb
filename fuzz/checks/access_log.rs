//! Invariants for any bytes as an access log: each line is a record, a comment, or bad for a reason; blocks that are read
//! separately give the same result; nothing panics. Not a generator: the bytes are the log, and each target has its own
//! format.

use accesslog::{ClientDefinition, Format, Reader, Record, Sizing, Tally, recognise};

/// Panics if these bytes violate an invariant, read as Common or Combined Log Format.
#[allow(dead_code, reason = "each target includes this file and uses one format")]
pub(crate) fn check_clf(bytes: &[u8]) {
    check("clf", bytes);
    if let Some(format) = recognise(bytes, &ClientDefinition::default()) {
        let tally = Reader::new(format, ClientDefinition::default()).read(bytes, |_| {});
        assert!(tally.records > 0, "a format was recognised in which nothing can be read");
    }
}

/// The same for nginx's and Apache's format strings; a first line is the string, if it is one.
#[allow(dead_code, reason = "each target includes this file and uses one format")]
pub(crate) fn check_template(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (first, rest) = bytes.split_at(end);
    let given = String::from_utf8_lossy(first);
    if given.contains(['$', '%']) && Format::named(&given, &ClientDefinition::default()).is_ok() {
        check(&given, rest);
    }
    check(
        "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\"",
        bytes,
    );
    check("%h %l %u %t \\\"%r\\\" %>s %b %D", bytes);
}

/// The same for W3C extended logs.
#[allow(dead_code, reason = "each target includes this file and uses one format")]
pub(crate) fn check_w3c(bytes: &[u8]) {
    check("w3c", bytes);
}

/// The same for JSON lines.
#[allow(dead_code, reason = "each target includes this file and uses one format")]
pub(crate) fn check_json(bytes: &[u8]) {
    check("json", bytes);
}

/// The same for AWS load balancers.
#[allow(dead_code, reason = "each target includes this file and uses one format")]
pub(crate) fn check_alb(bytes: &[u8]) {
    check("alb", bytes);
}

fn check(format: &str, bytes: &[u8]) {
    let format = Format::named(format, &ClientDefinition::default()).expect("a format that there is");
    let (whole, tally) = read(&format, &[bytes]);
    assert!(tally.records + tally.bad() <= tally.lines, "more came of lines than there were");
    assert_eq!(tally.records, whole.len() as u64);
    assert_eq!(tally.reasons().map(|(_, count, _)| count).sum::<u64>(), tally.bad());
    let mut same = Vec::new();
    Reader::new(format.clone(), ClientDefinition::default())
        .read_targets(bytes, |record, _target| same.push(record));
    assert_eq!(same, whole, "with targets other records are read");
    for record in &whole {
        assert!(record.status == 0 || (100..1_000).contains(&record.status));
        let sized = Sizing::default().request(record).is_some();
        assert_eq!(sized, record.size.is_some(), "only what has no size is left out");
    }
    // Cut after a line, wherever there is one: read apart, the parts give the whole.
    for cut in (1..=bytes.len()).filter(|cut| bytes[cut - 1] == b'\n').take(8) {
        let (first, second) = bytes.split_at(cut);
        let (parts, added) = read(&format, &[first, second]);
        assert_eq!(parts, whole);
        assert_eq!(added, tally);
    }
}

/// As threads do: every block by a reader of its own, that knows of earlier blocks only what was skimmed.
fn read(format: &Format, blocks: &[&[u8]]) -> (Vec<Record>, Tally) {
    let mut master = Reader::new(format.clone(), ClientDefinition::default());
    let (mut records, mut tally) = (Vec::new(), Tally::default());
    for block in blocks {
        let mut reader = master.clone();
        master.skim(block);
        tally.append(reader.read(block, |record| records.push(record)));
    }
    (records, tally)
}
