//! A page in the client's cache: a graph of responses without bodies.

use page::{Moment, Object};
use scenario::serving::changed_objects;
use scenario::{Protocol, Scenario};
use wire::Bytes;

/// Returns the scenario with a 304 with these headers for every object that has not changed. It is complete when a part of the
/// object would have arrived. HPACK and QPACK send fields of earlier responses as indices, as in requests.
pub(crate) fn revalidated(scenario: &Scenario, head: Bytes) -> Scenario {
    let (changed, mut revised) = (changed_objects(scenario), scenario.clone());
    let is_compressed =
        matches!(scenario.protocol, Protocol::Http2 | Protocol::Http3 | Protocol::Http3Upgrade);
    let unchanged = |index: &usize| !changed.contains(index);
    for index in (0..scenario.page.objects.len()).filter(unchanged) {
        let repeated = if is_compressed && index > 0 { 4 } else { 1 };
        let Object { size, response_head, .. } = &mut revised.page.objects[index];
        (*size, *response_head) = (Bytes::ZERO, Some(Bytes::new(head.get() / repeated)));
    }
    for dependency in revised.page.objects.iter_mut().flat_map(|object| &mut object.after) {
        if matches!(dependency.at, Moment::Delivered(_)) && unchanged(&dependency.on) {
            dependency.at = Moment::Ended;
        }
    }
    revised
}
