//! Text format of a plan: lines that people can read, and that represent the plan exactly.
//!
//! ```text
//! roundtrip-plan 1
//! set surge-1998
//! seed 1
//! cap 100000000
//! conditional 0.26
//! users 100 for 120.000000
//! files 2000
//! 11234
//! ...
//! pages 4110
//! 12 +2.113044 17 304+0.021500 9*+0.500000 !
//! ...
//! ```
//!
//! After the header lines, a line for each file, its size in bytes; and a line for each page. A page has the
//! user, then `+` and the seconds after the user's previous page or `@` and the seconds of the plan. Then
//! come the files, each but the first with `+` and the seconds after the previous one; `*` marks a
//! conditional request, `!` the end of a session. For an open schedule the sixth line is `rates poisson
//! 60.000000:100..100 ...`, with the seconds and rates of each leg. For a replayed log it is `replay 10 for
//! 60.000000`, with its speed. Distributions of a site's own log follow `set site`, one per line (`distributions`).
//!
//! JSON would be ten times as long. The input is untrusted: nothing here panics, and every number is checked against its
//! range.

mod distributions;

use std::fmt::{self, Write};
use std::str::{FromStr, Lines};

use wire::{Bytes, Duration, Probability, Seed, Time};

use crate::plan::{MAX_FILES, MAX_OBJECTS, MAX_REQUESTS, ObjectRequest, Page, PageStart, Plan, PlanSpec};
use crate::schedule::{Arrivals, Leg, Schedule};

/// First line, which identifies the format.
const MAGIC: &str = "roundtrip-plan 1";

/// Error in the text of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the plan is not {expected}; generate the plan again")]
pub struct PlanTextError {
    /// The line, from 1.
    pub line: usize,
    /// Description of the expected text.
    pub expected: String,
}

/// Writes the plan.
///
/// # Errors
/// Those of `out`.
pub fn write(plan: &Plan, out: &mut dyn Write) -> fmt::Result {
    let Plan { spec, files, pages } = plan;
    let PlanSpec { set, files: _, cap, schedule, duration, conditional, seed } = spec;
    writeln!(out, "{MAGIC}")?;
    distributions::write(set, out)?;
    writeln!(out, "seed {}\ncap {}", seed.get(), cap.get())?;
    writeln!(out, "conditional {}", conditional.get())?;
    match schedule {
        Schedule::Users(users) => writeln!(out, "users {users} for {}", Seconds(*duration))?,
        Schedule::Replay(speed) => writeln!(out, "replay {speed} for {}", Seconds(*duration))?,
        Schedule::Rates(legs, arrivals) => {
            write!(out, "rates {}", name(*arrivals))?;
            for Leg { duration, from, to } in legs {
                write!(out, " {}:{from}..{to}", Seconds(*duration))?;
            }
            writeln!(out)?;
        }
    }
    writeln!(out, "files {}", files.len())?;
    for size in files {
        writeln!(out, "{size}")?;
    }
    writeln!(out, "pages {}", pages.len())?;
    for Page { user, start, objects, ends_session } in pages {
        match start {
            PageStart::After(after) => write!(out, "{user} +{}", Seconds(*after))?,
            PageStart::At(at) => write!(out, "{user} @{}", Seconds(at.since(Time::ZERO)))?,
        }
        for (index, ObjectRequest { file, after, is_conditional }) in objects.iter().enumerate() {
            write!(out, " {file}{}", if *is_conditional { "*" } else { "" })?;
            if index > 0 {
                write!(out, "+{}", Seconds(*after))?;
            }
        }
        writeln!(out, "{}", if *ends_session { " !" } else { "" })?;
    }
    Ok(())
}

const fn name(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Constant => "constant",
        Arrivals::Poisson => "poisson",
    }
}

/// Seconds with the six decimals of a plan.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_nanos() / 1_000;
        write!(f, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}

/// Parses a plan.
///
/// # Errors
/// [`PlanTextError`] with the first invalid line.
pub fn read(text: &str) -> Result<Plan, PlanTextError> {
    let mut reader = Reader { lines: text.lines(), at: 0 };
    reader.line(&format!("`{MAGIC}`"), |line| (line == MAGIC).then_some(()))?;
    let set = distributions::read(&mut reader)?;
    let seed = Seed::new(reader.header("seed ", |value| value.parse().ok())?);
    let cap = Bytes::new(reader.header("cap ", |value| value.parse().ok())?);
    let conditional = reader.header("conditional ", |value| Probability::new(value.parse().ok()?))?;
    let (schedule, duration) = reader.line("`users N for SECONDS`, `rates ...` or `replay ...`", schedule)?;
    let count = reader
        .header("files ", |value| value.parse().ok().filter(|count| (2..=MAX_FILES).contains(count)))?;
    let files = (0..count)
        .map(|_| reader.line("the size of a file", |line| line.parse().ok()))
        .collect::<Result<_, _>>()?;
    let max_requests = MAX_REQUESTS;
    let pages = reader
        .header("pages ", |value| value.parse::<u64>().ok().filter(|pages| *pages as f64 <= max_requests))?;
    let pages =
        (0..pages).map(|_| reader.line("a page", |line| page(line, count))).collect::<Result<_, _>>()?;
    reader.end()?;
    let spec = PlanSpec { set, files: count, cap, schedule, duration, conditional, seed };
    Ok(Plan { spec, files, pages })
}

struct Reader<'a> {
    lines: Lines<'a>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn line<T>(&mut self, expected: &str, read: impl Fn(&'a str) -> Option<T>) -> Result<T, PlanTextError> {
        self.at += 1;
        let read = self.lines.next().and_then(read);
        read.ok_or_else(|| PlanTextError { line: self.at, expected: expected.to_owned() })
    }

    fn header<T>(&mut self, token: &str, read: impl Fn(&'a str) -> Option<T>) -> Result<T, PlanTextError> {
        self.line(&format!("`{}` with its value", token.trim_end()), |line| read(line.strip_prefix(token)?))
    }

    fn end(&mut self) -> Result<(), PlanTextError> {
        match self.lines.next() {
            None => Ok(()),
            Some(_) => Err(PlanTextError { line: self.at + 1, expected: "the end".to_owned() }),
        }
    }
}

fn schedule(line: &str) -> Option<(Schedule, Duration)> {
    if let Some(value) = line.strip_prefix("users ") {
        let (users, duration) = value.split_once(" for ")?;
        return Some((Schedule::Users(users.parse().ok()?), seconds(duration)?));
    }
    if let Some(value) = line.strip_prefix("replay ") {
        let (speed, duration) = value.split_once(" for ")?;
        let speed = speed.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0)?;
        return Some((Schedule::Replay(speed), seconds(duration)?));
    }
    let mut words = line.strip_prefix("rates ")?.split(' ');
    let arrivals = words.next()?;
    let arrivals = [Arrivals::Constant, Arrivals::Poisson]
        .into_iter()
        .find(|arrivals_kind| name(*arrivals_kind) == arrivals)?;
    let legs = words.map(leg).collect::<Option<Vec<Leg>>>()?;
    let duration = legs.iter().map(|leg| leg.duration).sum();
    Some((Schedule::Rates(legs, arrivals), duration))
}

fn leg(token: &str) -> Option<Leg> {
    let (duration, rates) = token.split_once(':')?;
    let (from, to) = rates.split_once("..")?;
    let rate = |text: &str| text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    Some(Leg { duration: seconds(duration)?, from: rate(from)?, to: rate(to)? })
}

fn page(line: &str, files: u32) -> Option<Page> {
    let mut words = line.split(' ');
    let user = words.next()?.parse().ok()?;
    let start = match words.next()?.split_at_checked(1)? {
        ("+", after) => PageStart::After(seconds(after)?),
        ("@", at) => PageStart::At(Time::ZERO + seconds(at)?),
        _ => return None,
    };
    let (mut objects, mut ends_session) = (Vec::new(), false);
    for token in words {
        if ends_session || u64::try_from(objects.len()).ok()? >= MAX_OBJECTS {
            return None;
        }
        match token {
            "!" => ends_session = true,
            token => objects.push(parse_request(token, objects.is_empty(), files)?),
        }
    }
    (!objects.is_empty()).then_some(Page { user, start, objects, ends_session })
}

fn parse_request(token: &str, is_first: bool, files: u32) -> Option<ObjectRequest> {
    let (file, after) = match token.split_once('+') {
        Some((file, after)) if !is_first => (file, seconds(after)?),
        None if is_first => (token, Duration::default()),
        _ => return None,
    };
    let (file, is_conditional) = file.strip_suffix('*').map_or((file, false), |file| (file, true));
    let file = digits(file).filter(|file| *file < files)?;
    Some(ObjectRequest { file, after, is_conditional })
}

/// Parses seconds with six decimals, up to a thousand years.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, micros) = text.split_once('.')?;
    let micros = digits::<u64>(micros).filter(|_| micros.len() == 6)?;
    let whole = digits::<u64>(whole).filter(|whole| *whole < 1 << 34)?;
    Some(Duration::from_nanos((whole * 1_000_000 + micros).checked_mul(1_000)?))
}

/// Parses a number without a sign.
fn digits<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::set::{PlanDistributions, SetName};

    fn plan(schedule: Schedule) -> Plan {
        let duration = match &schedule {
            Schedule::Users(_) => Duration::from_secs(20),
            Schedule::Rates(legs, _) => legs.iter().map(|leg| leg.duration).sum(),
            Schedule::Replay(_) => Duration::ZERO,
        };
        let spec = PlanSpec {
            set: PlanDistributions::Named(SetName::Surge1999),
            files: 40,
            cap: Bytes::new(1_000_000),
            schedule,
            duration,
            conditional: Probability::new(0.26).unwrap(),
            seed: Seed::new(7),
        };
        spec.plan().unwrap()
    }

    fn to_text(plan: &Plan) -> String {
        let mut text = String::new();
        write(plan, &mut text).unwrap();
        text
    }

    #[test]
    fn plan_round_trips_through_text() {
        let legs = vec![
            Leg { duration: Duration::from_secs(3), from: 0.0, to: 12.5 },
            Leg { duration: Duration::from_millis(1_500), from: 12.5, to: 12.5 },
        ];
        for schedule in [
            Schedule::Users(9),
            Schedule::Rates(legs.clone(), Arrivals::Poisson),
            Schedule::Rates(legs, Arrivals::Constant),
        ] {
            let plan = plan(schedule);
            assert_eq!(read(&to_text(&plan)), Ok(plan));
        }
    }

    #[test]
    fn plan_contains_the_distributions_of_a_site() {
        for name in SetName::ALL {
            let set = PlanDistributions::Site(Box::new(name.set()));
            let plan = PlanSpec { set, files: 40, ..PlanSpec::default() }.plan().unwrap();
            assert_eq!(read(&to_text(&plan)), Ok(plan));
        }
    }

    #[test]
    fn rejects_truncated_and_continued_plans() {
        let text = to_text(&plan(Schedule::Users(3)));
        let truncated = &text[..text.trim_end().rfind('\n').unwrap() + 1];
        assert!(read(truncated).unwrap_err().to_string().ends_with("is not a page; generate the plan again"));
        let continued = format!("{text}1 +0.000000 1\n");
        assert!(
            read(&continued).unwrap_err().to_string().ends_with("is not the end; generate the plan again")
        );
        assert_eq!(read("GET / HTTP/1.1").unwrap_err().line, 1);
        assert_eq!(read("").unwrap_err().line, 1);
    }

    #[test]
    fn rejects_malformed_pages() {
        for malformed in [
            "",
            "1",
            "1 +1.000000",
            "1 +1 2",
            "1 1.000000 2",
            "1 +1.000000 2+0.000000",
            "1 +1.000000 2 3",
            "1 +1.000000 9",
            "1 +1.000000 !",
            "1 +1.000000 2 ! 3+0.000000",
            "-1 +1.000000 2",
            "1 +-1.000000 2",
            "1 +1.000000 2 3+99999999999.000000",
        ] {
            assert_eq!(page(malformed, 9), None, "{malformed}");
        }
        assert!(page("1 +1.000000 2 3*+0.000001 !", 9).unwrap().ends_session);
    }

    proptest! {
        #[test]
        fn no_text_panics(lines in proptest::collection::vec("[0-9+@*!. a-z]{0,20}", 0..12)) {
            let _ = read(&format!("{MAGIC}\n{}", lines.join("\n")));
        }
    }
}
