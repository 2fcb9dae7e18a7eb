//! The event `load`: the objects that it waits for, and its race with rendering.
//!
//! The event comes when the parser has ended and nothing that the browser has requested is outstanding (HTML, "the end").
//! Rendering requests the images and fonts that a style sheet names with the next frame after the sheet has arrived. Where nothing
//! else is outstanding then, either comes first. Chromium brings styles up to date when its parser ends, so that what arrived before that
//! has no race.

use std::collections::BTreeSet;

use wire::Duration;

use super::{Dependency, Kind, Moment, Object, Page};

/// Maximum time from the end of a style sheet to the frame that requests what it names, on a client that is busy.
const MAX_FRAME_DELAY: Duration = Duration::from_millis(100);

impl Page {
    /// Time of the event `load`, if objects end at these times: the last byte of those that it waits for, and the client's
    /// recorded work after it. `None` if it waits for every object, and no work is known.
    pub fn load(&self, ends: impl IntoIterator<Item = (usize, Duration)>) -> Option<Duration> {
        let work = self.recorded.and_then(|recorded| recorded.before_load);
        if work.is_none() && self.objects.iter().all(|object| object.counts_for_load) {
            return None;
        }
        let counts = |object: usize| self.objects.get(object).is_some_and(|object| object.counts_for_load);
        let counted = ends.into_iter().filter(|(object, _)| counts(*object));
        Some(counted.map(|(_, end)| end).max()? + work.unwrap_or_default())
    }

    /// Time of the event `load` if its race with rendering ends otherwise than in [`Page::load`], where the page of a recording
    /// has one: without what style sheets name, if that counts, or with it.
    pub fn other_load(&self, ends: impl IntoIterator<Item = (usize, Duration)>) -> Option<Duration> {
        let work = self.recorded?.before_load?;
        let mut times = vec![None; self.objects.len()];
        for (object, end) in ends {
            *times.get_mut(object)? = Some(end);
        }
        let rendering = Rendering { page: self, ends: &times };
        let parsed = rendering.end_of_parser()?;
        let request = |index| Some((rendering.request(index, parsed)?, index));
        let named: BTreeSet<_> = (0..times.len()).filter_map(request).collect();
        let by_rendering: BTreeSet<usize> = named.iter().map(|(_, index)| *index).collect();
        let counts = |index: &usize| self.objects[*index].counts_for_load;
        let others = (0..times.len()).filter(|index| counts(index) && !by_rendering.contains(index));
        let mut last = others.filter_map(|index| times[index]).max()?;
        // In order of their requests: what is requested while something else is outstanding has no race.
        for (requested, index) in named.iter().filter(|(_, index)| counts(index)) {
            if *requested <= last {
                last = last.max(times[*index]?);
            }
        }
        let (without, load) = (last + work, self.load(each_end(&times))?);
        if without < load {
            return Some(without);
        }
        let with = by_rendering.iter().filter_map(|index| times[*index]).max()? + work;
        (with > load).then_some(with)
    }
}

fn each_end(times: &[Option<Duration>]) -> impl Iterator<Item = (usize, Duration)> {
    times.iter().enumerate().filter_map(|(index, end)| Some((index, (*end)?)))
}

/// Requests that rendering makes.
struct Rendering<'a> {
    page: &'a Page,
    /// End of each object that arrived.
    ends: &'a [Option<Duration>],
}

impl Rendering<'_> {
    /// End of the document, and of the scripts that it names.
    fn end_of_parser(&self) -> Option<Duration> {
        let is_script = |(index, object): &(usize, &Object)| {
            *index > 0 && object.kind == Kind::Script && object.after.iter().all(|after| after.on == 0)
        };
        let scripts = self.page.objects.iter().enumerate().filter(is_script);
        scripts.filter_map(|(index, _)| self.ends[index]).chain(self.ends[0]).max()
    }

    /// Time at which rendering requests an object that only style sheets name, of which the last ended after the parser.
    fn request(&self, index: usize, parsed: Duration) -> Option<Duration> {
        let object = &self.page.objects[index];
        let is_of_styles = matches!(object.kind, Kind::Font | Kind::Image | Kind::Media | Kind::Other);
        let end = |after: &Dependency| (after.at == Moment::Ended).then_some(self.ends[after.on]?);
        let ends = object.after.iter().map(end).collect::<Option<Vec<_>>>()?;
        let styles = object.after.iter().zip(&ends);
        let is_style =
            |(after, _): &(&Dependency, &Duration)| self.page.objects[after.on].kind == Kind::StyleSheet;
        let last = styles.clone().filter(is_style).map(|(_, end)| *end).max()?;
        let request = styles.map(|(after, end)| *end + after.plus).max()?;
        let is_in_race = last >= parsed && request <= last + MAX_FRAME_DELAY;
        (is_of_styles && is_in_race).then_some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecordedTimes;
    use super::*;
    use wire::Bytes;

    /// Times of `load` in milliseconds, as it is and if its race ends otherwise, of a page of a document, a style sheet, and an image
    /// that the sheet names: requested 10 ms after the sheet's end, and at 400 ms complete.
    fn loads(document: u64, sheet: u64, image_counts: bool, other: Option<u64>) -> [Option<u64>; 2] {
        let object = |kind, after: Vec<Dependency>| Object { kind, after, ..Object::sized(Bytes::new(10)) };
        let named = Dependency { plus: Duration::from_millis(10), ..Dependency::on_end(1) };
        let first_byte = Dependency { at: Moment::Delivered(Bytes::new(1)), ..Dependency::on_end(0) };
        let image = Object { counts_for_load: image_counts, ..object(Kind::Image, vec![named]) };
        let mut objects =
            vec![object(Kind::Document, Vec::new()), object(Kind::StyleSheet, vec![first_byte]), image];
        objects.extend(other.map(|_| object(Kind::Image, vec![first_byte])));
        let before_load = Some(Duration::from_millis(5));
        let recorded = Some(RecordedTimes { before_load, ..RecordedTimes::default() });
        let page = Page { recorded, ..Page::of("race", objects) };
        let ends = || {
            [Some(document), Some(sheet), Some(400), other].into_iter().flatten().map(Duration::from_millis)
        };
        let millis = |time: Option<Duration>| time.map(|time| time.as_nanos() / 1_000_000);
        [page.load(ends().enumerate()), page.other_load(ends().enumerate())].map(millis)
    }

    #[test]
    fn load_may_come_before_what_a_late_style_sheet_names() {
        assert_eq!(loads(100, 200, true, None), [Some(405), Some(205)]);
        assert_eq!(loads(100, 200, true, Some(209)), [Some(405), Some(214)]);
    }

    #[test]
    fn load_may_come_after_what_a_late_style_sheet_names_where_it_came_before_in_the_recording() {
        assert_eq!(loads(100, 200, false, None), [Some(205), Some(405)]);
    }

    #[test]
    fn nothing_races_with_load_while_the_parser_or_another_object_is_awaited() {
        assert_eq!(
            loads(201, 200, true, None),
            [Some(405), None],
            "styles are up to date when the parser ends"
        );
        assert_eq!(loads(100, 200, true, Some(211)), [Some(405), None], "the image is requested meanwhile");
    }
}
