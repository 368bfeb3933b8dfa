//! What Berth has to show, as rows of a report.

use super::contender::Scale;
use super::evict::{self, restart};
use super::floor::RESTED;
use super::settle::{DECIDED, MEMORY, PROCESSOR_QUIET, REQUESTS, RESTART_WRITES};
use super::sheet::{Column, Kind, Sheet};
use super::silence;
use super::steady::{CHURN_CORE, CHURN_WRITES, MEDIAN, NINETY_NINTH, REACT_PROCESSOR};
use crate::figure::Figure;
use crate::report::{Report, Row};

/// How much slower than a bare client the controller may be.
const OVER_FLOOR_MAX: f64 = 1.3;
/// Requests for a new placement, events included; OCM makes six.
const REQUESTS_MAX: f64 = 5.5;
/// How many times less of the processors Berth must need than the patched peer.
const PROCESSOR_MIN: f64 = 20.0;
/// How many times less memory.
const MEMORY_MIN: f64 = 2.0;
/// How many round trips of a write, after a rest as long as before a taint, a reaction may take. The clock starts with the answer
/// to the taint, so that its own round trip is not among them.
const ROUND_TRIPS_MAX: f64 = 3.0;
/// How many times less of the processors and of memory the controllers of nodes must need than kube-controller-manager.
const EVICTION_MIN: f64 = 2.0;
/// How much later than it is due something may be seen to happen, in seconds.
const LATE_MAX: f64 = 1.0;
/// The processor time that a change of a taint may take, in milliseconds.
const REACT_PROCESSOR_MAX: f64 = 1.0;
/// The share of a core that changes which concern nobody may take, in percent.
const CHURN_PERCENT_MAX: f64 = 1.0;

/// Holds Berth to what it has to show.
pub(crate) fn tell(sheet: &Sheet, scale: Scale, report: &mut Report) {
    let mut judge = Judge { sheet, scale, report };
    match scale {
        Scale::Fleet => judge.fleet(),
        Scale::Nodes => judge.nodes(),
        Scale::Silence => judge.silence(),
    }
}

/// One scale's figures, and the report they go into.
struct Judge<'a> {
    sheet: &'a Sheet,
    scale: Scale,
    report: &'a mut Report,
}

impl Judge<'_> {
    fn fleet(&mut self) {
        self.over_floor(DECIDED, DECIDED, OVER_FLOOR_MAX);
        self.at_most(REQUESTS, REQUESTS_MAX, true);
        self.behind(PROCESSOR_QUIET, PROCESSOR_MIN);
        self.behind(MEMORY, MEMORY_MIN);
        self.row(MEDIAN).floor = self.sheet.value(RESTED, Column::Floor);
        self.over_floor(NINETY_NINTH, RESTED, ROUND_TRIPS_MAX);
        self.at_most(REACT_PROCESSOR, REACT_PROCESSOR_MAX, false);
        self.at_most(RESTART_WRITES, 0.0, true);
        self.row(CHURN_CORE).floor = self.sheet.value(CHURN_CORE, Column::Floor);
        self.report.hold(&named(CHURN_CORE), CHURN_CORE.unit, CHURN_PERCENT_MAX, false);
        self.at_most(CHURN_WRITES, 0.0, true);
    }

    fn nodes(&mut self) {
        self.over_floor(evict::LAST, evict::LAST, OVER_FLOOR_MAX);
        self.behind(evict::PROCESSOR, EVICTION_MIN);
        self.behind(evict::MEMORY, EVICTION_MIN);
        self.at_most(restart::LAST, f64::from(restart::BORNE) + LATE_MAX, false);
    }

    fn silence(&mut self) {
        self.row(silence::LATE_LAST).floor = self.sheet.value(silence::LATE_LAST, Column::Floor);
        self.report.hold(&named(silence::LATE_LAST), silence::LATE_LAST.unit, LATE_MAX, false);
        self.behind(silence::CALM_CORE, EVICTION_MIN);
        self.behind(silence::CALM_MEMORY, EVICTION_MIN);
        self.behind(silence::SILENT_PROCESSOR, EVICTION_MIN);
    }

    /// At most so many times what the bare client needs for something.
    fn over_floor(&mut self, kind: Kind, of: Kind, times: f64) {
        let floor = self.sheet.value(of, Column::Floor);
        self.row(kind).floor = floor;
        if let Some(floor) = floor {
            self.report.hold(&named(kind), kind.unit, times * floor, false);
        }
    }

    /// At most so much.
    fn at_most(&mut self, kind: Kind, most: f64, is_binding: bool) {
        self.row(kind);
        self.report.hold(&named(kind), kind.unit, most, is_binding);
    }

    /// The peer needs at least so many times as much.
    fn behind(&mut self, kind: Kind, times: f64) {
        self.row(kind);
        self.report.hold_ratio(&named(kind), kind.unit, times);
    }

    /// Berth's figure beside the peer's.
    fn row(&mut self, kind: Kind) -> &mut Row {
        let [ours, peer] =
            [self.scale.ours(), self.scale.peer()].map(|one| self.sheet.value(kind, Column::Of(one)));
        let value = ours.map_or(Figure::Absent("not measured"), Figure::Number);
        let row = self.report.add(named(kind), kind.unit, value);
        row.peer = peer;
        row.ratio = peer.zip(ours).filter(|(_, ours)| *ours > 0.0).map(|(peer, ours)| peer / ours);
        row
    }
}

fn named(kind: Kind) -> String {
    format!("{}: {}", kind.stage, kind.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::contender::Contender;

    /// Whether a target is missed that holds on any machine, when Berth and its peer need so much of something.
    fn misses(scale: Scale, kind: Kind, ours: f64, peer: f64) -> bool {
        let mut sheet = Sheet::default();
        sheet.note(kind, Column::Of(scale.ours()), ours);
        sheet.note(kind, Column::Of(scale.peer()), peer);
        let mut report = Report::default();
        tell(&sheet, scale, &mut report);
        report.misses_a_binding_target()
    }

    #[test]
    fn being_ahead_of_the_peer_by_less_than_was_promised_is_a_miss() {
        assert!(!misses(Scale::Fleet, PROCESSOR_QUIET, 2.0, 40.0));
        assert!(misses(Scale::Fleet, PROCESSOR_QUIET, 2.1, 40.0));
        for kind in [evict::PROCESSOR, evict::MEMORY] {
            assert!(!misses(Scale::Nodes, kind, 1.0, 2.0));
            assert!(misses(Scale::Nodes, kind, 1.1, 2.0));
        }
    }

    #[test]
    fn an_eviction_is_held_to_the_bare_client_and_to_the_clock() {
        let told = |last: f64, restarted: f64| {
            let mut sheet = Sheet::default();
            let berth = Column::Of(Contender::BerthEvict);
            sheet.note(evict::LAST, Column::Floor, 2.0);
            sheet.note(evict::LAST, berth, last);
            sheet.note(restart::LAST, berth, restarted);
            let mut report = Report::default();
            tell(&sheet, Scale::Nodes, &mut report);
            report.to_string().matches("target missed").count()
        };
        assert_eq!([told(2.6, 60.4), told(2.7, 60.4), told(2.6, 92.0), told(2.7, 92.0)], [0, 1, 1, 2]);
    }
}
