//! A waterfall as SVG, as HTML, and its critical path in a sentence.

use render::output::number;
use render::plot::waterfall::{Bar, Row, Waterfall};
use wire::Duration;

use super::{ObjectCourse, Phase, RunWaterfall, Wait};

/// Maximum number of rows in a picture.
const MAX_ROWS: usize = 1_000;
/// Objects of the critical path that a sentence names.
const MAX_NAMED: usize = 6;
/// Characters of a name in a row, before the host.
const ROW_NAME_CHARS: usize = 28;
/// Characters of a name in a sentence.
const NAME_CHARS: usize = 40;

impl RunWaterfall {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        self.draw(|waterfall| waterfall.picture())
    }

    /// The same as HTML, which also fits narrow screens.
    pub fn html(&self) -> String {
        self.draw(|waterfall| waterfall.html())
    }

    /// The critical path and what it waits for: `critical path 1 -> 7 -> 19: transfer 40%, request 31%`.
    pub fn shares(&self) -> String {
        let numbers: Vec<String> =
            self.critical.iter().map(|at| (self.courses[*at].object + 1).to_string()).collect();
        let path = match &numbers[..] {
            [first, .., last] if numbers.len() > MAX_NAMED => {
                format!("{first} -> ({} more) -> {last}", numbers.len() - 2)
            }
            all => all.join(" -> "),
        };
        let total = self.total().as_millis_f64();
        let mut waits: Vec<(Wait, f64)> =
            self.waits.iter().map(|(wait, time)| (*wait, time.as_millis_f64() / total.max(1e-9))).collect();
        waits.sort_by(|one, other| other.1.total_cmp(&one.1));
        let waits = waits.into_iter().filter(|(_, share)| *share >= 0.005);
        let waits: Vec<String> =
            waits.map(|(wait, share)| format!("{} {:.0}%", wait.name(), share * 100.0)).collect();
        format!("critical path {path}: {}", waits.join(", "))
    }

    /// The same with the names of the objects, and times.
    pub fn sentence(&self) -> String {
        let names: Vec<String> = self.critical.iter().map(|at| named(&self.courses[*at])).collect();
        let path = match &names[..] {
            [start @ .., last] if names.len() > MAX_NAMED => {
                let start = &start[..MAX_NAMED - 1];
                format!("{} -> ({} more) -> {last}", start.join(" -> "), names.len() - MAX_NAMED)
            }
            all => all.join(" -> "),
        };
        let mut waits: Vec<(Wait, Duration)> = self.waits.iter().map(|(wait, time)| (*wait, *time)).collect();
        waits.sort_by_key(|(wait, time)| (std::cmp::Reverse(*time), *wait));
        let waits = waits.into_iter().filter(|(_, time)| *time >= Duration::from_micros(500));
        let waits: Vec<String> = waits
            .map(|(wait, time)| format!("{} ms {}", number::significant(time.as_millis_f64()), wait.name()))
            .collect();
        format!("The critical path is {path}: {}.", waits.join(", "))
    }

    fn total(&self) -> Duration {
        self.waits.values().copied().sum()
    }

    fn draw(&self, draw: impl FnOnce(&Waterfall<'_>) -> String) -> String {
        let rows: Vec<Row> = (0..self.courses.len().min(MAX_ROWS)).map(|at| self.row(at)).collect();
        let about = format!(
            "{} objects in {} ms; {}",
            self.courses.len(),
            number::significant(self.total().as_millis_f64()),
            self.shares()
        );
        let cut = format!("the first {MAX_ROWS} objects");
        let lines: Vec<&str> =
            if self.courses.len() > MAX_ROWS { vec![&about, &cut] } else { vec![about.as_str()] };
        let is_there = |wait: &Wait| {
            self.courses.iter().any(|course| course.phases.iter().any(|phase| phase.wait == *wait))
        };
        let mut key: Vec<(&str, &str)> =
            Wait::ALL.into_iter().filter(is_there).map(|wait| (wait.colour(), wait.name())).collect();
        key.push((render::plot::palette::ACCENT, "critical path"));
        let source = format!("roundtrip simulate, version {}, seed {}", env!("CARGO_PKG_VERSION"), self.seed);
        draw(&Waterfall {
            title: &self.title,
            lines: &lines,
            axis: "time, ms",
            key: &key,
            rows: &rows,
            source: &source,
        })
    }

    fn row(&self, at: usize) -> Row {
        let course = &self.courses[at];
        let millis = Duration::as_millis_f64;
        let bars = course.phases.iter().map(|Phase { wait, from, to }| Bar {
            from: millis(*from),
            to: millis(*to),
            colour: wait.colour(),
        });
        let waits = course.phases.iter().map(|Phase { wait, from, to }| {
            format!("{} {} ms", wait.name(), number::significant(millis(to.saturating_sub(*from))))
        });
        let tooltip = format!(
            "{} {}: {} bytes; {}",
            course.object + 1,
            course.name,
            course.size.get(),
            waits.collect::<Vec<_>>().join(", ")
        );
        // The line comes from the course that it waited for on the critical path, elsewhere from what made it known.
        let on_path = self.critical.iter().position(|critical| *critical == at);
        let before = on_path.and_then(|index| index.checked_sub(1)).map(|index| self.critical[index]);
        let after = match before {
            Some(before) if course.after != Some(before) => Some((before, self.courses[before].end())),
            _ => course.after.map(|after| (after, course.known)),
        };
        Row {
            name: short_name(course),
            tooltip,
            bars: bars.collect(),
            after: after.filter(|(on, _)| *on < MAX_ROWS).map(|(on, known)| (on, millis(known))),
            is_critical: on_path.is_some(),
        }
    }
}

/// `7 app.js www.example.com`: the number, the end of the path, and the host.
fn short_name(course: &ObjectCourse) -> String {
    let host = course.name.split('/').next().unwrap_or_default();
    let name = named(course);
    let cut: String = name.chars().take(ROW_NAME_CHARS).collect();
    let ellipsis = if cut.len() < name.len() { "..." } else { "" };
    let host = if host.contains('.') { host } else { "" };
    format!("{cut}{ellipsis} {host}").trim_end().to_owned()
}

/// `7 app.js`: the number and the end of the name.
fn named(course: &ObjectCourse) -> String {
    let last = course.name.split('?').next().unwrap_or_default().trim_end_matches('/');
    let last = last.rsplit('/').next().unwrap_or_default();
    let name: String = last.chars().take(NAME_CHARS).collect();
    let number = course.object + 1;
    // An object whose path is unknown has its number as a name.
    if name == number.to_string() {
        return format!("{number} ({} bytes)", number::count(course.size.as_f64()));
    }
    format!("{number} {name}")
}
