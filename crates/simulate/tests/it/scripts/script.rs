//! Parser of scripts: text to typed lines. They are executed by `endpoint`.

use wire::Duration;

/// A script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) profiles: Vec<String>,
    pub(crate) is_client: bool,
    pub(crate) mss: u64,
    pub(crate) overrides: Vec<(String, String)>,
    pub(crate) reads_late: bool,
    pub(crate) lines: Vec<ScriptLine>,
}

/// One line of the timeline.
#[derive(Debug)]
pub(crate) struct ScriptLine {
    pub(crate) number: usize,
    /// Time since the line before.
    pub(crate) after: Duration,
    pub(crate) event: ScriptEvent,
}

/// Event or expectation.
#[derive(Debug)]
pub(crate) enum ScriptEvent {
    Write(usize),
    Read,
    Shutdown,
    Close,
    Abort,
    Arrive(SegmentFields),
    Sends(SegmentFields),
    Notified(String),
    Quiet,
}

/// A segment, with the fields that scripts use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentFields {
    pub(crate) flags: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) ack: Option<u64>,
    pub(crate) window: Option<u64>,
    pub(crate) sack: Vec<(u64, u64)>,
}

pub(crate) fn parse(text: &str) -> Result<Script, String> {
    let mut script = Script { mss: 1460, ..Script::default() };
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let number = index + 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        parse_line(&mut script, number, &words).map_err(|error| format!("{number}: {error}: {line}"))?;
    }
    Ok(script)
}

fn parse_line(script: &mut Script, number: usize, words: &[&str]) -> Result<(), String> {
    match words {
        [] => {}
        ["profiles", names @ ..] => script.profiles = names.iter().map(|name| name.to_string()).collect(),
        ["server"] => script.is_client = false,
        ["client"] => script.is_client = true,
        ["mss", mss] => script.mss = number_of(mss)?,
        ["reads", "late"] => script.reads_late = true,
        ["set", setting, value] => script.overrides.push((setting.to_string(), value.to_string())),
        [after, event @ ..] if after.starts_with('+') => {
            let after = quantity::duration(&after[1..]).map_err(|error| error.to_string())?;
            script.lines.push(ScriptLine { number, after, event: parse_event(event)? });
        }
        _ => return Err("unknown line".to_owned()),
    }
    Ok(())
}

fn parse_event(words: &[&str]) -> Result<ScriptEvent, String> {
    Ok(match words {
        ["write", bytes] => {
            ScriptEvent::Write(bytes.parse().map_err(|_| format!("{bytes} is not a number"))?)
        }
        ["read"] => ScriptEvent::Read,
        ["shutdown"] => ScriptEvent::Shutdown,
        ["close"] => ScriptEvent::Close,
        ["abort"] => ScriptEvent::Abort,
        ["quiet"] => ScriptEvent::Quiet,
        ["notified", event] => ScriptEvent::Notified(event.to_string()),
        ["<", numbers @ ..] => ScriptEvent::Arrive(parse_numbers(numbers)?),
        [">", numbers @ ..] => ScriptEvent::Sends(parse_numbers(numbers)?),
        _ => return Err("unknown event".to_owned()),
    })
}

fn parse_numbers(mut words: &[&str]) -> Result<SegmentFields, String> {
    let mut numbers = SegmentFields::default();
    if let [flags, rest @ ..] = words
        && flags.chars().all(char::is_alphabetic)
    {
        numbers.flags = flags.to_string();
        words = rest;
    }
    let [range, rest @ ..] = words else { return Err("missing sequence numbers".to_owned()) };
    (numbers.start, numbers.end) = range_of(range)?;
    let mut rest = rest;
    loop {
        rest = match rest {
            [] => return Ok(numbers),
            ["ack", ack, rest @ ..] => {
                numbers.ack = Some(number_of(ack)?);
                rest
            }
            ["win", window, rest @ ..] => {
                numbers.window = Some(number_of(window)?);
                rest
            }
            ["sack", range, rest @ ..] => {
                numbers.sack.push(range_of(range)?);
                rest
            }
            [other, ..] => return Err(format!("unknown field {other}")),
        }
    }
}

fn range_of(text: &str) -> Result<(u64, u64), String> {
    let (start, end) = text.split_once(':').ok_or("not a range FIRST:NEXT")?;
    Ok((number_of(start)?, number_of(end)?))
}

fn number_of(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}
