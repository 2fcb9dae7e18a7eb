//! Pages as browsers meet them, made from seeds: style sheets and scripts in the head, images in the body, fonts of style sheets, what
//! scripts fetch and when.

use page::{Dependency, Host, Kind, Moment, Object, Page, Priority};
use wire::{Bytes, Duration, Random, Seed};

/// The page of this number: 1 to 120 objects on 1 to 12 hosts.
pub(crate) fn page(number: u64) -> Result<Page, String> {
    let mut random = Seed::new(number).stream("browser-page", 0);
    let hosts = *pick(&mut random, &[1, 1, 2, 3, 5, 8, 12]);
    let count = *pick(&mut random, &[1, 4, 9, 16, 30, 60, 120]);
    let document = 4_000 + 150 * count as u64 + random.up_to(40_000);
    let mut page = Page {
        hosts: (0..hosts).map(|index| Host::new(&format!("h{index}.example"))).collect(),
        ..Page::of(&format!("p{number}"), Vec::new())
    };
    page.objects.push(Object {
        kind: Kind::Document,
        priority: Priority::Highest,
        processing: Some(Duration::from_millis(*pick(&mut random, &[0, 20, 50, 120]))),
        is_render_blocking: true,
        ..Object::sized(Bytes::new(document))
    });
    for index in 1..count {
        let object = object(&mut random, &page, index, document);
        page.objects.push(Object { host: below(&mut random, hosts), ..object });
    }
    page.check().map(|()| page).map_err(|error| error.to_string())
}

/// An object that the page's earlier ones make known.
fn object(random: &mut Random, page: &Page, index: usize, document: u64) -> Object {
    let of = |kind: Kind| {
        let all = page.objects.iter().enumerate();
        all.filter(|(_, object)| object.kind == kind).map(|(index, _)| index).collect::<Vec<_>>()
    };
    let (sheets, scripts) = (of(Kind::StyleSheet), of(Kind::Script));
    let in_head = |random: &mut Random| named(300 + 140 * index as u64 / 4 + random.up_to(50));
    let in_body = |random: &mut Random| named(document / 3 + random.up_to(document - document / 3 - 200));
    let processing = (random.up_to(3) == 0).then(|| Duration::from_millis(10 + random.up_to(70)));
    let new = |kind, priority, size, after| Object {
        kind,
        priority,
        processing,
        after: vec![after],
        ..Object::sized(Bytes::new(size))
    };
    match random.up_to(99) {
        _ if index == 1 => {
            let sheet = new(Kind::StyleSheet, Priority::Highest, size(random, 12, 4), in_head(random));
            Object { is_render_blocking: true, ..sheet }
        }
        0..8 => {
            let sheet = new(Kind::StyleSheet, Priority::Highest, size(random, 11, 5), in_head(random));
            Object { is_render_blocking: true, ..sheet }
        }
        8..20 => {
            let script = new(Kind::Script, Priority::High, size(random, 13, 4), in_head(random));
            Object { is_render_blocking: true, ..script }
        }
        20..32 => new(Kind::Script, Priority::Low, size(random, 12, 5), in_body(random)),
        32..40 if !scripts.is_empty() => {
            let after = Dependency::on_end(*pick(random, &scripts));
            new(Kind::Script, Priority::Low, size(random, 12, 4), after)
        }
        40..52 if !scripts.is_empty() => {
            let plus = Duration::from_millis(*pick(random, &[0, 30, 80]));
            let after = Dependency { plus, ..Dependency::on_end(*pick(random, &scripts)) };
            let data = new(Kind::Data, Priority::High, size(random, 9, 5), after);
            Object { counts_for_load: false, is_anonymous: true, ..data }
        }
        52..58 if !scripts.is_empty() => {
            // The script's own work before it: a list is rendered, and its images are requested.
            let plus = Duration::from_millis(*pick(random, &[0, 0, 40]));
            let after = Dependency { plus, ..Dependency::on_end(*pick(random, &scripts)) };
            new(Kind::Image, Priority::Low, size(random, 11, 5), after)
        }
        58..65 => {
            let after = Dependency::on_end(*pick(random, &sheets));
            let font = new(Kind::Font, Priority::Highest, size(random, 14, 2), after);
            Object { is_anonymous: true, ..font }
        }
        65..69 => {
            new(Kind::Image, Priority::Low, size(random, 10, 5), Dependency::on_end(*pick(random, &sheets)))
        }
        _ => new(Kind::Image, Priority::Low, size(random, 10, 6), in_body(random)),
    }
}

/// Made known by this byte of the document.
fn named(byte: u64) -> Dependency {
    Dependency { at: Moment::Delivered(Bytes::new(byte)), ..Dependency::on_end(0) }
}

/// A size between two to the power of `bits` and `octaves` more.
fn size(random: &mut Random, bits: u32, octaves: u32) -> u64 {
    let octave = bits + u32::try_from(random.up_to(u64::from(octaves) - 1)).unwrap_or(0);
    (1 << octave) + random.up_to((1 << octave) - 1)
}

fn below(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.up_to(limit as u64 - 1)).unwrap_or(0)
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[below(random, from.len())]
}
