//! Whole pages, made from a seed.

use page::{Dependency, Host, Kind, Moment, Object, Page, Priority};
use wire::{Bytes, Duration, Random, Seed};

/// Distance of a page's hosts beyond the network's round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// None.
    None,
    /// Up to 40 ms.
    Varied,
}

/// A page from a seed: 1 to 120 objects on 1 to 12 hosts, most of them discovered in the document, some by others.
///
/// # Errors
/// A page that is not consistent, which would be an error here.
pub fn page(number: u64, distance: Distance) -> Result<Page, String> {
    let mut random = Seed::new(number).stream("page", 0);
    let hosts = *pick(&mut random, &[1, 1, 2, 4, 8, 12]);
    let objects = *pick(&mut random, &[1, 3, 8, 15, 30, 60, 120]);
    let extra_ms = |index: usize| match distance {
        Distance::None => 0,
        Distance::Varied => [0, 0, 10, 40][index % 4],
    };
    let host = |index: usize| Host {
        extra_rtt: Duration::from_millis(extra_ms(index)),
        ..Host::new(&format!("h{index}.example"))
    };
    let mut page =
        Page { hosts: (0..hosts).map(host).collect(), ..Page::of(&format!("p{number}"), Vec::new()) };
    for index in 0..objects {
        let size = Bytes::new(200 + (1 << (6 + random.up_to(12 - 1))) + random.up_to(4_000 - 1));
        let processing = random.up_to(4 - 1) == 0;
        let after = match index {
            0 => Vec::new(),
            _ => {
                let on = if random.up_to(4 - 1) == 0 { below(&mut random, index) } else { 0 };
                let at = if on == 0 {
                    Moment::Delivered(Bytes::new(1 + random.up_to(page.objects[0].size.get() - 1)))
                } else {
                    Moment::Ended
                };
                vec![Dependency {
                    on,
                    at,
                    plus: Duration::from_millis(*pick(&mut random, &[0, 0, 0, 5, 20])),
                }]
            }
        };
        let priorities = [Priority::Low, Priority::Low, Priority::Medium, Priority::High, Priority::Highest];
        page.objects.push(Object {
            host: if index == 0 { 0 } else { below(&mut random, hosts) },
            kind: *pick(&mut random, &[Kind::Image, Kind::Image, Kind::Script, Kind::Data]),
            is_render_blocking: random.up_to(5) == 0,
            priority: if index == 0 { Priority::Highest } else { *pick(&mut random, &priorities) },
            processing: processing.then_some(Duration::from_millis(50)),
            after,
            ..Object::sized(size)
        });
    }
    page.check().map(|()| page).map_err(|error| error.to_string())
}

fn below(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.up_to(limit as u64 - 1)).unwrap_or(0)
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[below(random, from.len())]
}
