//! A picture of a page's graph: the time that no network saves.
//!
//! Objects begin as early as what they wait for lets them, over a network that takes no time. What remains is think
//! times and server times; the longest chain of them is the critical path.

use page::{Kind, Moment, Object, Page};
use render::output::number;
use render::plot::palette;
use render::plot::waterfall::{Bar, Row, Waterfall};
use wire::Duration;

/// Maximum number of rows in a picture.
const MAX_ROWS: usize = 1_000;

/// When an object begins and ends, and what it waited for last.
#[derive(Clone, Copy, Default)]
struct Span {
    /// When what it waits for has happened.
    known: Duration,
    /// After its think time.
    begins: Duration,
    ends: Duration,
    after: Option<usize>,
}

/// The picture; `source` is its provenance.
pub fn picture(page: &Page, source: &str) -> String {
    let spans = spans(page);
    let is_critical = critical_path(&spans);
    let rows: Vec<Row> =
        (0..page.objects.len().min(MAX_ROWS)).map(|index| row(page, index, &spans, &is_critical)).collect();
    let end = spans.iter().map(|span| span.ends).max().unwrap_or_default();
    let about = format!(
        "{}, {}; at least {} over any network: the longest chain of think and server times",
        number::counted(page.objects.len() as f64, "object"),
        number::counted(page.hosts.len() as f64, "host"),
        format_args!("{:.0} ms", end.as_millis_f64()),
    );
    let cut = format!("the first {MAX_ROWS} objects");
    let lines: Vec<&str> = if page.objects.len() > MAX_ROWS { vec![&about, &cut] } else { vec![&about] };
    Waterfall {
        title: &page.name,
        lines: &lines,
        axis: "think and server time, ms",
        key: &[
            (palette::FAINT, "think"),
            (palette::BLUE, "document"),
            (palette::ORANGE, "script"),
            (palette::PURPLE, "style sheet, font"),
            (palette::GREEN, "image, media"),
            (palette::GREY, "other"),
            (palette::ACCENT, "critical path"),
        ],
        rows: &rows,
        source,
    }
    .picture()
}

/// Times of every object.
fn spans(page: &Page) -> Vec<Span> {
    let mut spans = vec![Span::default(); page.objects.len()];
    for index in page.in_order_of_discovery() {
        let object = &page.objects[index];
        let moments = object.after.iter().map(|dependency| {
            let on: &Span = &spans[dependency.on];
            let moment = match dependency.at {
                Moment::Begun => on.begins,
                Moment::Delivered(_) | Moment::Ended => on.ends,
            };
            (moment + dependency.plus, moment, dependency.on)
        });
        let (begins, known, after) = moments
            .max()
            .map_or((Duration::ZERO, Duration::ZERO, None), |(begins, known, on)| (begins, known, Some(on)));
        let ends = begins + own_time(page, object);
        spans[index] = Span { known, begins, ends, after };
    }
    spans
}

fn own_time(page: &Page, object: &Object) -> Duration {
    let server = || object.processing.unwrap_or(page.hosts[object.host].processing);
    object.local.unwrap_or_else(server)
}

/// Whether each object is in the longest chain.
fn critical_path(spans: &[Span]) -> Vec<bool> {
    let mut is_critical = vec![false; spans.len()];
    let mut next = (0..spans.len()).max_by_key(|index| spans[*index].ends);
    while let Some(index) = next.filter(|index| !is_critical[*index]) {
        is_critical[index] = true;
        next = spans[index].after;
    }
    is_critical
}

fn row(page: &Page, index: usize, spans: &[Span], is_critical: &[bool]) -> Row {
    let Span { known, begins, ends, after } = spans[index];
    let object = &page.objects[index];
    let [known, begins, ends] = [known, begins, ends].map(Duration::as_millis_f64);
    let think = Bar { from: known, to: begins, colour: palette::FAINT };
    let own = Bar { from: begins, to: ends, colour: colour(object.kind) };
    let url = page.url(index);
    Row {
        name: format!("{} {url}", index + 1),
        tooltip: format!(
            "{} {url}: {} bytes, think {:.1} ms, {:.1} ms",
            index + 1,
            object.size.get(),
            begins - known,
            ends - begins
        ),
        bars: if begins > known { vec![think, own] } else { vec![own] },
        after: after.filter(|on| *on < MAX_ROWS).map(|on| (on, known)),
        is_critical: is_critical[index],
    }
}

const fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => palette::BLUE,
        Kind::Script => palette::ORANGE,
        Kind::StyleSheet | Kind::Font => palette::PURPLE,
        Kind::Image | Kind::Media => palette::GREEN,
        Kind::Data | Kind::Other => palette::GREY,
    }
}
