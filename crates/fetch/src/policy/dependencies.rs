//! Dependencies of a page's objects: moments of other objects in, objects that the client knows out.
//!
//! An object that has ended has passed all its moments, even if it failed: a page always ends.

use std::collections::BTreeSet;

use page::{Dependency, Moment};
use wire::{Bytes, Time};

use crate::plan::{Plan, Release};

/// Dependencies of each object, and the moments at which they were met.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    objects: Vec<Unmet>,
    /// For each object, those that wait for it.
    dependents: Vec<Vec<(usize, Dependency)>>,
    /// Objects whose dependencies are met, by the time from which they may be requested.
    known: BTreeSet<(Time, usize)>,
    /// Number of objects that have not been taken.
    waiting: usize,
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
        let known = objects.iter().enumerate().filter(|(_, unmet)| unmet.count == 0);
        let known = known.map(|(index, _)| (Time::ZERO, index)).collect();
        Self { waiting: objects.len(), objects, dependents, known }
    }

    /// Dependencies of the hints of a graph, each of one moment of the page that begins there.
    pub(super) fn of_hints(plan: &Plan) -> Self {
        let hints = if plan.release == Release::Graph { &plan.hints[..] } else { &[] };
        let mut dependents = vec![Vec::new(); plan.objects.len()];
        for (index, hint) in hints.iter().enumerate() {
            if let Some(dependents) = dependents.get_mut(plan.begins_at + hint.after.on) {
                dependents.push((index, hint.after));
            }
        }
        let objects = vec![Unmet { count: 1, ready: Time::ZERO }; hints.len()];
        Self { waiting: objects.len(), objects, dependents, known: BTreeSet::new() }
    }

    /// Adds an object that depends on nothing.
    pub(super) fn add(&mut self, object: usize) {
        self.known.insert((Time::ZERO, object));
        self.waiting += 1;
    }

    /// Notes the progress of an object.
    pub(super) fn note(&mut self, now: Time, object: usize, progress: Progress) {
        let Self { objects, dependents, known, waiting: _ } = self;
        let Some(dependents) = dependents.get_mut(object) else { return };
        dependents.retain(|(dependent, Dependency { on: _, at, plus })| {
            let is_met = match (progress, *at) {
                (Progress::Ended, _) | (Progress::Begun, Moment::Begun) => true,
                (Progress::Delivered(received), Moment::Delivered(bytes)) => received >= bytes,
                (Progress::Begun, Moment::Delivered(_) | Moment::Ended)
                | (Progress::Delivered(..), Moment::Begun | Moment::Ended) => false,
            };
            if is_met && let Some(unmet) = objects.get_mut(*dependent) {
                unmet.count -= 1;
                unmet.ready = unmet.ready.max(now + *plus);
                if unmet.count == 0 {
                    known.insert((unmet.ready, *dependent));
                }
            }
            !is_met
        });
    }

    /// Takes the objects that may be requested now and that are allowed, in order.
    pub(super) fn take_due(&mut self, now: Time, is_allowed: impl Fn(usize) -> bool) -> Vec<usize> {
        let due = self.known.iter().take_while(|(ready, _)| *ready <= now);
        let mut due: Vec<(Time, usize)> = due.filter(|(_, object)| is_allowed(*object)).copied().collect();
        for place in &due {
            self.known.remove(place);
        }
        self.waiting -= due.len();
        due.sort_unstable_by_key(|(_, object)| *object);
        due.into_iter().map(|(_, object)| object).collect()
    }

    /// Time from which the next object that is allowed may be requested.
    pub(super) fn next_ready(&self, is_allowed: impl Fn(usize) -> bool) -> Option<Time> {
        self.known.iter().find(|(_, object)| is_allowed(*object)).map(|(ready, _)| *ready)
    }

    /// Whether no object waits.
    pub(super) const fn is_done(&self) -> bool {
        self.waiting == 0
    }
}
