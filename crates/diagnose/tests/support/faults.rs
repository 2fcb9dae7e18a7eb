//! Faults that scripted packets show, for unit tests.

use wire::Duration;

use crate::Cause;
use crate::cause::Describe as _;
use crate::report::VantagePoint;
use crate::script::Script;

impl Script<'_> {
    /// Returns the causes found, with the lost time in whole milliseconds, without notes.
    pub(crate) fn faults(&self, vantage_point: VantagePoint) -> Vec<(Cause, u64)> {
        self.diagnose(vantage_point)
            .findings
            .iter()
            .filter(|finding| finding.cause.about().is_fault)
            .map(|finding| {
                (finding.cause, (finding.lost + Duration::from_micros(500)).as_nanos() / 1_000_000)
            })
            .collect()
    }

    /// Returns the same faults for every point of capture, which must agree.
    pub(crate) fn faults_everywhere(&self) -> Vec<(Cause, u64)> {
        let found = self.faults(VantagePoint::Client);
        for vantage_point in [VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(self.faults(vantage_point), found, "{vantage_point:?} (left), at the client (right)");
        }
        found
    }
}
