//! A page as tables: its hosts, its objects, and the notes.

use page::{Dependency, Hints, Host, Moment, Object, OfferedProtocols, Page, RecordedTimes};
use render::output::grid::{Column, Grid, hidden as hidden_columns, wrap};
use render::output::number;
use render::terminal::Terminal;
use wire::Duration;

use super::{HostCost, PageCosts, SimulatedLoad};

/// Width where the terminal has none.
const WIDTH: usize = 80;

/// The tables of every page.
pub fn text(pages: &[Page], terminal: Terminal) -> String {
    let terminal = Terminal { width: Some(terminal.width.unwrap_or(WIDTH)), ..terminal };
    pages.iter().map(|page| tables(page, terminal)).collect::<Vec<_>>().join("\n")
}

fn tables(page: &Page, terminal: Terminal) -> String {
    let width = terminal.prose_width();
    let mut text = format!("{}\n", terminal.bold(&shortened(&page.name, width)));
    text += &wrap("", &summary(page), width);
    let spare = terminal.width.unwrap_or(WIDTH).saturating_sub(WIDTH);
    let costs = PageCosts::of(page);
    let [hosts, objects] = [hosts(page, &costs, spare), objects(page, spare)];
    text += &format!("\n{}\n{}", hosts.render(terminal), objects.render(terminal));
    let path = costs.load.as_ref().map(path_sentence);
    let notes: Vec<String> = path.into_iter().chain(hints(page)).chain(page.notes.iter().cloned()).collect();
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in &notes {
        text += &wrap("  ", note, width);
    }
    let hidden = [hosts, objects].iter().flat_map(|grid| grid.hidden(terminal)).collect::<Vec<_>>();
    text + &hidden_columns(&hidden, "json", terminal)
}

/// The load of which the table's path column is.
fn path_sentence(load: &SimulatedLoad) -> String {
    let SimulatedLoad { network, protocol, elapsed, client } = load;
    format!(
        "path: time on the critical path of a load over {network} by {}, simulated: {} ms with {} ms of the client's own work. \
         `roundtrip compare` takes other networks",
        protocol.name(),
        millis(*elapsed),
        millis(*client)
    )
}

/// `110 objects of 1.2 MB from 3 hosts; recorded: load 3233 ms`.
fn summary(page: &Page) -> String {
    let [hosts, objects] = [(page.hosts.len(), "host"), (page.objects.len(), "object")]
        .map(|(count, what)| number::counted(count as f64, what));
    let bytes = number::counted(page.size().as_f64(), "byte");
    let RecordedTimes { content_loaded: _, load, last_end, before_load: _, client_time: _ } =
        page.recorded.unwrap_or_default();
    let recorded = [("load", load), ("last response", last_end)]
        .map(|(event, time)| Some(format!("{event} at {:.0} ms", time?.as_millis_f64())));
    let recorded: Vec<String> = recorded.into_iter().flatten().collect();
    let recorded =
        if recorded.is_empty() { String::new() } else { format!("; recorded: {}", recorded.join(", ")) };
    format!("{objects} of {bytes}, {hosts}{recorded}")
}

/// The hosts, the most expensive first.
fn hosts(page: &Page, costs: &PageCosts, spare: usize) -> Grid {
    let columns = vec![
        Column::name(["host", ""]),
        Column::number(["path", "ms"], 1),
        Column::number(["bytes", ""], 0),
        Column::number(["objects", ""], 0),
        Column::number(["extra RTT", "ms"], 2),
        Column::number(["DNS", "ms"], 1),
        Column::number(["server", "ms"], 0),
        Column::text(["offers", ""], 1),
    ];
    let has_lookups = page.hosts.iter().any(|host| host.lookup > Duration::ZERO);
    let rows = costs.ranked().into_iter().map(|index| {
        let Host { name, extra_rtt, lookup, processing, protocols, .. } = &page.hosts[index];
        let HostCost { requests, bytes, path_time } = costs.hosts[index];
        vec![
            shortened(name, 32 + spare),
            path_time.map(millis).unwrap_or_default(),
            size(bytes as f64),
            requests.to_string(),
            millis(*extra_rtt),
            if has_lookups { millis(*lookup) } else { String::new() },
            millis(*processing),
            offers(*protocols).to_owned(),
        ]
    });
    Grid { columns, rows: rows.collect() }
}

/// `preconnect: cdn.example.com after 1 at 800 bytes; dns-prefetch: ads.example.com after 1`, with the numbers of objects.
fn hints(page: &Page) -> Option<String> {
    let listed = |kind: &str, of: fn(&Hints) -> Option<Dependency>| {
        let hosts = page.hosts.iter();
        let hosts: Vec<String> =
            hosts.filter_map(|host| Some(format!("{} after {}", host.name, of(&host.hints)?))).collect();
        (!hosts.is_empty()).then(|| format!("{kind}: {}", hosts.join(", ")))
    };
    let listed =
        [listed("preconnect", |hints| hints.preconnect), listed("dns-prefetch", |hints| hints.dns_prefetch)];
    let listed: Vec<String> = listed.into_iter().flatten().collect();
    (!listed.is_empty()).then(|| listed.join("; "))
}

const fn offers(protocols: OfferedProtocols) -> &'static str {
    let OfferedProtocols { tls, http2, http3 } = protocols;
    match (tls, http2, http3) {
        (false, _, _) => "http",
        (true, false, false) => "1.1",
        (true, true, false) => "1.1 h2",
        (true, false, true) => "1.1 h3",
        (true, true, true) => "1.1 h2 h3",
    }
}

fn objects(page: &Page, spare: usize) -> Grid {
    let columns = vec![
        Column::number(["", ""], 0),
        Column::name(["object", ""]),
        Column::name(["host", ""]),
        Column::number(["size", "bytes"], 0),
        Column::name(["priority", ""]),
        Column::text(["waits for", ""], 0),
        Column::number(["think", "ms"], 0),
    ];
    let rows = page.objects.iter().enumerate().map(|(index, object)| {
        let Object { host, path, size, priority, local, after, .. } = object;
        let host = match local {
            None => shortened(&page.hosts[*host].name, 15 + spare / 3),
            Some(_) => "no network".to_owned(),
        };
        vec![
            (index + 1).to_string(),
            name(path.as_deref(), 18 + spare - spare / 3),
            host,
            if local.is_none() { self::size(size.as_f64()) } else { String::new() },
            priority.name().to_owned(),
            waits_for(after),
            think(after, index),
        ]
    });
    Grid { columns, rows: rows.collect() }
}

/// `12`, `1 begun`, `1 at 24k`, and the number of further objects.
fn waits_for(after: &[Dependency]) -> String {
    let Some(longest) = after.iter().max_by_key(|dependency| dependency.plus) else { return String::new() };
    let on_one = after.iter().filter(|dependency| dependency.on == longest.on);
    let on = longest.on + 1;
    let text = match on_one.clone().map(|dependency| dependency.at).max().unwrap_or(longest.at) {
        Moment::Ended => on.to_string(),
        Moment::Begun => format!("{on} begun"),
        Moment::Delivered(bytes) => format!("{on} at {}", prefixed(bytes.get())),
    };
    match after.len() - on_one.count() {
        0 => text,
        more => format!("{text}, +{more}"),
    }
}

fn think(after: &[Dependency], index: usize) -> String {
    let longest = after.iter().map(|dependency| dependency.plus).max();
    if index == 0 { String::new() } else { millis(longest.unwrap_or_default()) }
}

/// The last part of a path, the directory before it where it ends there.
fn name(path: Option<&str>, width: usize) -> String {
    let path = path.unwrap_or_default();
    let (before_query, _) = path.split_once('?').unwrap_or((path, ""));
    let trimmed = before_query.trim_end_matches('/');
    let last = before_query.get(trimmed.rfind('/').map_or(0, |at| at + 1)..).unwrap_or_default();
    shortened(if last.is_empty() { before_query } else { last }, width)
}

/// At most this many characters: the first ones, three dots, and the last ones.
fn shortened(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let tail = width.saturating_sub(3) / 2;
    let head = width.saturating_sub(3) - tail;
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(count - tail).collect();
    format!("{first}...{last}")
}

/// `1.3`, `120`; above 100 seconds `3600s`.
fn millis(time: Duration) -> String {
    let millis = time.as_millis_f64();
    match millis {
        100_000.0.. => format!("{:.0}s", millis / 1e3),
        0.05..9.95 => format!("{millis:.1}"),
        _ => format!("{millis:.0}"),
    }
}

/// Bytes, from 10 MB in MB.
fn size(bytes: f64) -> String {
    if bytes < 1e7 { number::count(bytes) } else { format!("{}M", number::count((bytes / 1e6).round())) }
}

/// `700`, `24k`, `3M`, `1099G`.
fn prefixed(bytes: u64) -> String {
    match bytes {
        0..1_000 => bytes.to_string(),
        1_000..1_000_000 => format!("{}k", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{}M", bytes / 1_000_000),
        _ => format!("{}G", bytes / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_80_columns() {
        let long = "x".repeat(300);
        let toml = format!(
            "[[host]]\nname = 'www.{long}.example.com'\n[[object]]\nsize = 1099511627776\npath = '/{long}?{long}'\n\
             [[object]]\nsize = 9\nafter = ['1 at 1099511627776 bytes + 1h', '1 begun']\npriority = 'highest'"
        )
        .replace("1h", "60min");
        let page = page::file::read("long", &toml).unwrap();
        let text = text(&[page], Terminal { width: None, colour: false });
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 80), "{widest:?}\n{text}");
    }

    #[test]
    fn names_are_the_last_part_of_a_path() {
        let names = ["/a/b.js?c/d", "/", "/dir/", ""].map(|path| name(Some(path), 18));
        assert_eq!(names, ["b.js", "/", "dir/", ""]);
        assert_eq!(shortened("abcdefghij", 7), "ab...ij");
    }
}
