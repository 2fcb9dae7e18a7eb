//! What is not computed from the papers alone, or takes a while: what the kernel measures for a table, what is counted of
//! logs, what crowds do. Each is asked for once, whatever the number of cells it fills.
//!
//! Not the laboratory and not the logs: whoever calls `reproduce` hands them in, or none.

use std::path::PathBuf;

use measure::Peers;
use scenario::Scenario;
use simulate::connections::Counts;
use simulate::town::{self, Asks};
use trace::Row;
use wire::{Duration, Seed};

use super::rabinovich::logs::Log;

/// Runs a scenario as often as it says, by these programs; `None` if they are not there, and a sentence if it cannot.
pub type Measure<'a> = dyn FnMut(&Scenario, Peers) -> Result<Option<Found>, String> + 'a;

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
    pub fn new(measure: Option<&'a mut Measure<'a>>, logs: Option<PathBuf>) -> Self {
        let (found, crowds) = (Vec::new(), Vec::new());
        Self { measure, found, logs, counted: CountedLogs::default(), crowds }
    }

    /// What came of so many machines with a hundred users of DHTTP each.
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

    /// What was counted, for who draws it.
    pub fn into_counted(self) -> CountedLogs {
        self.counted
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
