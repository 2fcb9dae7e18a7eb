//! Dependencies of a page's objects: moments of other objects in, objects that the client knows out.
//!
//! An object that has ended has passed all its moments, even if it failed: a page always ends.

use page::{Dependency, Moment};
use wire::{Bytes, Time};

use crate::plan::{Plan, Release};

/// Dependencies of each object, and the moments at which they were met.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    objects: Vec<Unmet>,
    /// For each object, those that wait for it.
    dependents: Vec<Vec<(usize, Dependency)>>,
}

/// Dependencies of one object.
#[derive(Clone, Debug, Default)]
struct Unmet {
    count: usize,
    /// Latest time at which one that is met lets the object be requested.
    ready: Time,
}

/// Progress of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Begun,
    /// This number of bytes of the body has arrived.
    Delivered(Bytes),
    Ended,
}

impl Dependencies {
    /// Dependencies of the plan's objects, if they count.
    pub(super) fn of(plan: &Plan) -> Self {
        if plan.release != Release::Graph {
            return Self::default();
        }
        let mut objects = vec![Unmet::default(); plan.objects.len()];
        let mut dependents = vec![Vec::new(); plan.objects.len()];
        for (index, object) in plan.objects.iter().enumerate() {
            // Every page of a session has the same graph.
            let first = plan.first_object_of_page(index);
            for dependency in &object.after {
                if let Some(dependents) = dependents.get_mut(first + dependency.on) {
                    objects[index].count += 1;
                    dependents.push((index, *dependency));
                }
            }
        }
        Self { objects, dependents }
    }

    /// Notes the progress of an object.
    pub(super) fn note(&mut self, now: Time, object: usize, progress: Progress) {
        let Some(dependents) = self.dependents.get_mut(object) else { return };
        dependents.retain(|(dependent, Dependency { on: _, at, plus })| {
            let is_met = match (progress, *at) {
                (Progress::Ended, _) | (Progress::Begun, Moment::Begun) => true,
                (Progress::Delivered(received), Moment::Delivered(bytes)) => received >= bytes,
                (Progress::Begun, Moment::Delivered(_) | Moment::Ended)
                | (Progress::Delivered(..), Moment::Begun | Moment::Ended) => false,
            };
            if is_met && let Some(unmet) = self.objects.get_mut(*dependent) {
                unmet.count -= 1;
                unmet.ready = unmet.ready.max(now + *plus);
            }
            !is_met
        });
    }

    /// Time from which an object may be requested; `None` if something that it waits for has not happened.
    pub(super) fn ready(&self, object: usize) -> Option<Time> {
        match self.objects.get(object) {
            Some(unmet) if unmet.count > 0 => None,
            Some(unmet) => Some(unmet.ready),
            None => Some(Time::ZERO),
        }
    }
}
