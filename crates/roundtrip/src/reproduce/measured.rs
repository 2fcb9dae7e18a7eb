//! What is not computed from the papers alone, or takes a while: what the kernel measures for a table, what is counted of
//! logs, what crowds do. Each is asked for once, whatever the number of cells it fills.
//!
//! Not the laboratory and not the logs: whoever calls `reproduce` hands them in, or none.

use std::path::PathBuf;

use accesslog::connections::Counts;
use measure::Peers;
use scenario::Scenario;
use simulate::town::{self, Asks};
use trace::Row;
use wire::{Duration, Seed};

use super::rabinovich::logs::Log;
use crate::contest::bout::{Bout, Outcome};
use crate::contest::crowd::{self, Crowd};

/// Runs a scenario as often as it says, by these programs; `None` if they are not there, and a sentence if it cannot.
pub type Measure<'a> = dyn FnMut(&Scenario, Peers) -> Result<Option<Found>, String> + 'a;

/// Lets servers answer users; `None` if a server is not installed, and a sentence if it cannot.
pub type Contest<'a> = dyn FnMut(&[Bout]) -> Result<Option<Vec<Outcome>>, String> + 'a;

/// Lets users fill a line; as [`Contest`].
pub type Gather<'a> = dyn FnMut(&[Crowd]) -> Result<Option<Vec<crowd::Outcome>>, String> + 'a;

/// Where servers answer users.
pub struct Contests<'a> {
    /// What lets them.
    pub run: &'a mut Contest<'a>,
    /// What lets them behind a line that may be full.
    pub gather: &'a mut Gather<'a>,
    /// By how many users each is asked, ascending.
    pub users: &'static [u32],
}

/// What came of servers under users.
#[derive(Clone, Debug, Default)]
pub struct Bouts {
    /// By how many users each was asked, ascending.
    pub users: &'static [u32],
    found: Vec<(Bout, Outcome)>,
    gathered: Vec<(Crowd, crowd::Outcome)>,
}

impl Bouts {
    /// Of users behind a line; `None` where there were none, or it was void.
    pub fn crowd(&self, crowd: Crowd) -> Option<&crowd::Outcome> {
        let found = self.gathered.iter().find(|(known, _)| *known == crowd);
        found.map(|(_, outcome)| outcome).filter(|outcome| outcome.void.is_none())
    }

    /// Whether it was run, void or not.
    fn knows(&self, bout: &Bout) -> bool {
        self.found.iter().any(|(known, _)| known == bout)
    }

    /// Of this one; `None` where there was none.
    pub fn of(&self, bout: &Bout) -> Option<&Outcome> {
        let found = self.found.iter().find(|(known, _)| known == bout);
        found.map(|(_, outcome)| outcome)
    }
}

/// What the kernel did.
#[derive(Clone, Debug)]
pub struct Found {
    /// Over all runs.
    pub row: Row,
    /// What the server really took for an answer, the mean over all answers: the scenario's time, and what the
    /// machine added.
    pub processing: Duration,
}

/// A laboratory, if there is one, and what it has measured.
pub struct Measured<'a> {
    measure: Option<&'a mut Measure<'a>>,
    found: Vec<(Scenario, Peers, Option<Found>)>,
    logs: Option<PathBuf>,
    counted: CountedLogs,
    crowds: Vec<(usize, town::Found)>,
    contests: Option<Contests<'a>>,
    bouts: Bouts,
}

/// What was counted of one log.
#[derive(Clone, Debug)]
pub struct Counted {
    /// With "oldest" read as the least recently used.
    pub least_recently_used: Counts,
    /// With "oldest" read as the first created, perhaps for fewer time-outs.
    pub first_created: Counts,
}

/// What was counted of all that were asked for.
#[derive(Debug, Default)]
pub struct CountedLogs(Vec<(Log, Counted)>);

impl CountedLogs {
    /// Of this one; `None` where nobody asked, or it is not to be had.
    pub fn of(&self, log: Log) -> Option<&Counted> {
        self.0.iter().find(|(counted, _)| *counted == log).map(|(_, counts)| counts)
    }
}

impl<'a> Measured<'a> {
    /// With nothing measured yet.
    pub fn new(
        measure: Option<&'a mut Measure<'a>>,
        logs: Option<PathBuf>,
        contests: Option<Contests<'a>>,
    ) -> Self {
        let (found, crowds) = (Vec::new(), Vec::new());
        let users: &[u32] = contests.as_ref().map_or(&[], |contests| contests.users);
        let bouts = Bouts { users, ..Bouts::default() };
        Self { measure, found, logs, counted: CountedLogs::default(), crowds, contests, bouts }
    }

    /// By how many users servers are asked; by none where they cannot be.
    pub fn users(&self) -> &'static [u32] {
        self.bouts.users
    }

    /// What came of these, and of those before; `None` where servers cannot be asked, or are not installed.
    ///
    /// # Errors
    /// Why they could not.
    pub fn bouts(&mut self, wanted: &[Bout]) -> Result<Option<&Bouts>, String> {
        let Some(Contests { run, gather: _, users: _ }) = &mut self.contests else { return Ok(None) };
        let new: Vec<Bout> = wanted.iter().filter(|bout| !self.bouts.knows(bout)).copied().collect();
        if !new.is_empty() {
            let Some(outcomes) = run(&new)? else {
                // Nor will it be there for the next cell.
                self.contests = None;
                return Ok(None);
            };
            self.bouts.found.extend(new.into_iter().zip(outcomes));
        }
        Ok(Some(&self.bouts))
    }

    /// What came of these crowds, and of those before; `None` as for [`Measured::bouts`].
    ///
    /// # Errors
    /// Why they could not.
    pub fn crowds(&mut self, wanted: &[Crowd]) -> Result<Option<&Bouts>, String> {
        let Some(Contests { run: _, gather, users: _ }) = &mut self.contests else { return Ok(None) };
        let is_known = |crowd: &Crowd| self.bouts.gathered.iter().any(|(known, _)| known == crowd);
        let new: Vec<Crowd> = wanted.iter().filter(|crowd| !is_known(crowd)).copied().collect();
        if !new.is_empty() {
            let Some(outcomes) = gather(&new)? else {
                self.contests = None;
                return Ok(None);
            };
            self.bouts.gathered.extend(new.into_iter().zip(outcomes));
        }
        Ok(Some(&self.bouts))
    }

    /// What came of so many machines with a hundred users of DHTTP each, simulated.
    ///
    /// # Errors
    /// What the simulator says.
    pub fn crowd(&mut self, machines: usize) -> Result<&town::Found, String> {
        let place = match self.crowds.iter().position(|(known, _)| *known == machines) {
            Some(place) => place,
            None => {
                let found = town::found(machines, Asks::Dhttp, Seed::default());
                self.crowds.push((machines, found.map_err(|error| error.to_string())?));
                self.crowds.len() - 1
            }
        };
        Ok(&self.crowds[place].1)
    }

    /// What is counted of a log; `None` where logs are not to be had.
    ///
    /// # Errors
    /// Why it could not be counted.
    pub fn counts(&mut self, log: Log) -> Result<Option<&Counted>, String> {
        if self.counted.of(log).is_none() {
            let Some(folder) = &self.logs else { return Ok(None) };
            self.counted.0.push((log, log.count(folder)?));
        }
        Ok(self.counted.of(log))
    }

    /// What was counted, and what came of servers, for who draws it.
    pub fn into_found(self) -> (CountedLogs, Bouts) {
        (self.counted, self.bouts)
    }

    /// What our own programs took for this scenario; `None` without a laboratory.
    ///
    /// # Errors
    /// Why the laboratory could not.
    pub fn found(&mut self, scenario: &Scenario) -> Result<Option<Found>, String> {
        self.found_by(Peers::default(), scenario)
    }

    /// What these programs took for it; `None` without a laboratory, or where they are not installed.
    ///
    /// # Errors
    /// Why the laboratory could not.
    pub fn found_by(&mut self, peers: Peers, scenario: &Scenario) -> Result<Option<Found>, String> {
        let is_it =
            |(measured, by, _): &&(Scenario, Peers, Option<Found>)| measured == scenario && *by == peers;
        if let Some((_, _, found)) = self.found.iter().find(is_it) {
            return Ok(found.clone());
        }
        let Some(measure) = &mut self.measure else { return Ok(None) };
        let found = measure(scenario, peers)?;
        self.found.push((scenario.clone(), peers, found.clone()));
        Ok(found)
    }
}
