//! What Berth has to show, as rows of a report.

use super::contender::Contender;
use super::floor::TRIP;
use super::settle::{DECIDED, MEMORY, PROCESSOR_QUIET, REQUESTS};
use super::sheet::{Column, Kind, Sheet};
use super::steady::{CHURN_CORE, CHURN_WRITES, MEDIAN, NINETY_NINTH};
use crate::figure::Figure;
use crate::report::Report;

/// How much slower than a bare client the controller may be.
const OVER_FLOOR_MAX: f64 = 1.3;
/// Requests for a new placement, events included; OCM makes six.
const REQUESTS_MAX: f64 = 5.5;
/// How many times less of the processors Berth must need than the patched peer.
const PROCESSOR_MIN: f64 = 20.0;
/// How many times less memory.
const MEMORY_MIN: f64 = 2.0;
/// How many round trips of a write a reaction may take, the write of the taint itself among them.
const ROUND_TRIPS_MAX: f64 = 3.0;
/// The share of a core that changes which concern nobody may take, in percent.
const CHURN_PERCENT_MAX: f64 = 1.0;

const BERTH: Column = Column::Of(Contender::Berth);
const PEER: Column = Column::Of(Contender::Patched);

/// Holds Berth to what it has to show.
pub(crate) fn tell(sheet: &Sheet, report: &mut Report) {
    let floor = sheet.value(DECIDED, Column::Floor);
    let name = named(DECIDED);
    row(sheet, report, DECIDED).floor = floor;
    if let Some(floor) = floor {
        report.hold(&name, DECIDED.unit, OVER_FLOOR_MAX * floor, false);
    }
    row(sheet, report, REQUESTS);
    report.hold(&named(REQUESTS), REQUESTS.unit, REQUESTS_MAX, true);
    row(sheet, report, PROCESSOR_QUIET);
    report.hold_ratio(&named(PROCESSOR_QUIET), PROCESSOR_QUIET.unit, PROCESSOR_MIN);
    row(sheet, report, MEMORY);
    report.hold_ratio(&named(MEMORY), MEMORY.unit, MEMORY_MIN);
    let trip = sheet.value(TRIP, Column::Floor);
    for kind in [MEDIAN, NINETY_NINTH] {
        row(sheet, report, kind).floor = trip;
    }
    if let Some(trip) = trip {
        report.hold(&named(NINETY_NINTH), NINETY_NINTH.unit, ROUND_TRIPS_MAX * trip, false);
    }
    row(sheet, report, CHURN_CORE);
    report.hold(&named(CHURN_CORE), CHURN_CORE.unit, CHURN_PERCENT_MAX, false);
    row(sheet, report, CHURN_WRITES);
    report.hold(&named(CHURN_WRITES), CHURN_WRITES.unit, 0.0, true);
}

fn named(kind: Kind) -> String {
    format!("{}: {}", kind.stage, kind.name)
}

/// Berth's figure beside the patched peer's.
fn row<'a>(sheet: &Sheet, report: &'a mut Report, kind: Kind) -> &'a mut crate::report::Row {
    let ours = sheet.value(kind, BERTH);
    let row = report.add(named(kind), kind.unit, ours.map_or(Figure::Absent("not measured"), Figure::Number));
    row.peer = sheet.value(kind, PEER);
    row.ratio = row.peer.zip(ours).filter(|(_, ours)| *ours > 0.0).map(|(peer, ours)| peer / ours);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn being_ahead_of_the_peer_by_less_than_was_promised_is_a_miss() {
        let told = |ours: f64| {
            let mut sheet = Sheet::default();
            sheet.note(PROCESSOR_QUIET, BERTH, ours);
            sheet.note(PROCESSOR_QUIET, PEER, 40.0);
            let mut report = Report::default();
            tell(&sheet, &mut report);
            report.misses_a_binding_target()
        };
        assert!(!told(2.0));
        assert!(told(2.1));
    }
}
