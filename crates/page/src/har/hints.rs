//! Hosts for which a recorded document has the browser prepare.

use wire::Bytes;

use super::discovery::resolved;
use super::links::DocumentHint;
use super::origins::{Address, Origins};
use super::timeline::Item;
use crate::{Dependency, Hints, Kind, Moment};

/// Hints for each host of the recording: the first of its kind counts.
pub(super) fn of_hosts(items: &[Item], origins: &Origins) -> Vec<Hints> {
    let mut hints = vec![Hints::NONE; origins.len()];
    let documents = items.iter().enumerate();
    for (on, item) in documents.filter(|(_, item)| item.kind == Kind::Document && item.local.is_none()) {
        let base = item.entry.url.as_deref().unwrap_or_default();
        for DocumentHint { target, part, opens } in &item.entry.hints {
            let Some(host) = Address::of(&resolved(base, target)).and_then(|address| origins.known(&address))
            else {
                continue;
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a part of at most 1 TiB"
            )]
            let bytes = ((item.size() as f64 * part) as u64).clamp(1, item.size());
            let after = Dependency { at: Moment::Delivered(Bytes::new(bytes)), ..Dependency::on_end(on) };
            let Hints { preconnect, dns_prefetch } = &mut hints[host];
            let hint = if *opens { preconnect } else { dns_prefetch };
            hint.get_or_insert(after);
        }
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::super::pages;
    use super::super::test_archive::{Recorded, archive};
    use super::*;

    #[test]
    fn a_recorded_document_s_hints_are_those_of_its_hosts() {
        let link = "<link rel=preconnect href=https://cdn.example/ crossorigin>";
        let text = link.to_owned() + &"x".repeat(5_000 - link.len());
        let document = Recorded {
            response: &format!(
                r#""headers":[{{"name":"Link","value":"<//ads.example>;rel=dns-prefetch"}}],"content":{{"size":5000,"mimeType":"text/html","text":"{text}"}},"#
            ),
            ..Recorded::at(0, "https://www.example/")
        };
        let entries = [
            document.json(),
            Recorded::at(300, "https://cdn.example/a.png").json(),
            Recorded::at(400, "https://ads.example/b.png").json(),
        ];
        let page = pages("visit", archive(&entries).as_bytes()).unwrap().remove(0);
        let texts = |hint: Option<Dependency>| hint.map(|after| after.to_string());
        let hints: Vec<_> =
            page.hosts.iter().map(|host| (host.hints.preconnect, host.hints.dns_prefetch)).collect();
        let hints: Vec<_> = hints.into_iter().map(|(one, other)| (texts(one), texts(other))).collect();
        let size = page.objects[0].size.get();
        let at = |bytes: u64| Some(format!("1 at {bytes} bytes"));
        assert_eq!(hints, [(None, None), (at(size * link.len() as u64 / 5_000), None), (None, at(1))]);
    }
}
