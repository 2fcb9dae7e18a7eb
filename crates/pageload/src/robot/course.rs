//! What a visit was like, from what the robot told of it: what had to be asked for again, what is not there, and when it
//! was known what the page consists of.
//!
//! Not how long it took, which an engine knows, nor what failed, which the reports say one by one.

use std::collections::BTreeMap;

use wire::Time;

use super::{Failure, Report, What};

/// What a visit was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Requests that were made again, because a connection ended before anything of their answers came.
    pub asked_again: u64,
    /// When the first bytes of the last object were there; `None` if they are not there of all that were asked for, or
    /// the plan did not want to know.
    pub first_bytes: Option<Time>,
    /// Objects that the document names and the server does not have.
    pub missing: u64,
    /// The document names more objects than these, which are all that were fetched.
    pub most: Option<usize>,
}

impl Course {
    /// Of the page that these reports are of.
    pub fn of(reports: &[Report]) -> Self {
        let (mut asked_again, mut missing, mut most_followed) = (0, 0, None);
        // Whether what was last asked for of each object has been answered.
        let mut answered: BTreeMap<usize, bool> = BTreeMap::new();
        let mut known: BTreeMap<usize, Time> = BTreeMap::new();
        for report in reports {
            match report.what {
                What::RequestSent { object, connection: _ } => {
                    asked_again += u64::from(answered.insert(object, false) == Some(false));
                }
                What::HeadReceived { object, status: _ } => drop(answered.insert(object, true)),
                What::FirstBytesReceived { object } => drop(known.insert(object, report.at)),
                What::TooManyObjects { most } => most_followed = Some(most),
                What::ObjectFailed { object: _, failure: Failure::Missing } => missing += 1,
                What::ObjectFound { object: _, path: _ }
                | What::ObjectComplete { object: _, status: _, body: _ }
                | What::ObjectFailed { object: _, failure: _ }
                | What::Fault { connection: _, fault: _ }
                | What::Finished { failed: _ } => {}
            }
        }
        let is_all = answered.keys().eq(known.keys());
        let most = most_followed;
        Self { asked_again, missing, most, first_bytes: known.into_values().max().filter(|_| is_all) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ConnectionId;
    use super::*;

    #[test]
    fn what_is_asked_for_again_is_what_had_no_answer() {
        let sent = |object| What::RequestSent { object, connection: ConnectionId(0) };
        let head = |object| What::HeadReceived { object, status: 206 };
        let whats = [
            sent(0),
            head(0),
            What::FirstBytesReceived { object: 0 },
            // A rest is no repetition.
            sent(0),
            sent(1),
            sent(1),
            head(1),
        ];
        let reports = |whats: &[What]| -> Vec<Report> {
            let at = |seconds: usize| Time::ZERO + wire::Duration::from_secs(seconds as u64);
            whats
                .iter()
                .enumerate()
                .map(|(index, what)| Report { at: at(index), what: what.clone() })
                .collect()
        };
        let mut whats = whats.to_vec();
        assert_eq!(Course::of(&reports(&whats)), Course { asked_again: 1, ..Course::default() });
        whats.push(What::FirstBytesReceived { object: 1 });
        let known = Some(Time::ZERO + wire::Duration::from_secs(7));
        assert_eq!(
            Course::of(&reports(&whats)),
            Course { asked_again: 1, first_bytes: known, ..Course::default() }
        );
    }
}
