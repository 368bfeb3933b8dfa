//! What a candidate does, step by step.

use super::*;

fn now(millis: u64) -> Reading {
    let wall = Timestamp::from_millisecond(1_800_000_000_000 + millis as i64).unwrap();
    Reading { ticks: Duration::from_millis(millis), wall }
}

fn elector() -> Elector {
    Elector::new("me".to_owned(), Timing::default())
}

/// A record that another keeps, renewed so many times.
fn theirs(renewals: u64) -> Seen {
    let record = Record {
        holder: "other".to_owned(),
        duration_seconds: 15,
        acquired: Some(now(0).wall),
        // Years ahead of our clock: nobody may care.
        renewed: Some(Timestamp::from_second(1_900_000_000 + renewals as i64).unwrap()),
        transitions: 7,
    };
    Seen { record, version: format!("v{renewals}") }
}

fn stored(action: Action, version: &str) -> Answer {
    let (Action::Create(record) | Action::Update { record, .. }) = action else { panic!("{action:?}") };
    Answer::Found(Seen { record, version: version.to_owned() })
}

/// An elector that created the lease at 0 and holds it under version `1`.
fn leader() -> Elector {
    let mut elector = elector();
    assert_eq!(elector.next(now(0)), Action::Get);
    elector.answer(Answer::Absent, now(0), 0.0);
    let create = elector.next(now(0));
    elector.answer(stored(create, "1"), now(0), 0.0);
    assert!(elector.hold().is_some());
    elector
}

#[test]
fn a_lease_that_is_not_there_is_created_and_held() {
    let mut elector = elector();
    assert_eq!(elector.next(now(5)), Action::Get);
    elector.answer(Answer::Absent, now(10), 0.5);
    let Action::Create(record) = elector.next(now(11)) else { panic!() };
    let began = Some(now(11).wall);
    assert_eq!(
        record,
        Record {
            holder: "me".to_owned(),
            duration_seconds: 15,
            acquired: began,
            renewed: began,
            transitions: 0
        }
    );
    assert_eq!(elector.hold(), None);
    elector.answer(stored(Action::Create(record), "1"), now(900), 0.5);
    let hold = elector.hold().unwrap();
    assert_eq!(hold.since, now(11), "it counts from before the request was sent");
    assert!(hold.lasts(Timing::default(), now(10_010)) && !hold.lasts(Timing::default(), now(10_011)));
    assert_eq!(elector.leader(), Some("me"));
    assert_eq!(elector.next(now(900)), Action::Wait(Duration::from_millis(2900)));
}

#[test]
fn a_holder_renews_without_looking_and_keeps_its_term() {
    let mut elector = leader();
    let term = elector.hold().unwrap().term;
    let Action::Update { record, version } = elector.next(now(2000)) else { panic!() };
    assert_eq!((version.as_str(), record.transitions), ("1", 0));
    assert_eq!((record.acquired, record.renewed), (Some(now(0).wall), Some(now(2000).wall)));
    elector.answer(stored(Action::Update { record, version }, "2"), now(2100), 0.9);
    assert_eq!(elector.hold(), Some(Hold { term, since: now(2000) }));
    assert_eq!(elector.next(now(2100)), Action::Wait(Duration::from_millis(4100)), "without jitter");
}

#[test]
fn a_candidate_waits_for_the_duration_since_it_saw_the_record_change() {
    let mut elector = elector();
    elector.next(now(1000));
    elector.answer(Answer::Found(theirs(1)), now(1000), 0.0);
    assert_eq!(elector.leader(), Some("other"));
    assert_eq!(elector.next(now(1000)), Action::Wait(Duration::from_secs(3)));
    elector.next(now(3000));
    elector.answer(Answer::Found(theirs(2)), now(3000), 1.0);
    assert_eq!(
        elector.next(now(3000)),
        Action::Wait(Duration::from_millis(7400)),
        "jitter is 1.2 of the period"
    );
    elector.next(now(17_000));
    elector.answer(Answer::Found(theirs(2)), now(17_000), 1.0);
    assert_eq!(elector.next(now(17_000)), Action::Wait(Duration::from_secs(18)), "not after it has run out");
    assert_eq!(elector.next(now(18_000)), Action::Get);
    elector.answer(Answer::Found(theirs(2)), now(18_000), 0.0);
    let Action::Update { record, version } = elector.next(now(18_001)) else { panic!() };
    assert_eq!((version.as_str(), record.transitions, record.holder.as_str()), ("v2", 8, "me"));
    assert_eq!(record.acquired, Some(now(18_001).wall));
}

#[test]
fn a_change_that_is_not_in_the_record_does_not_count_as_a_renewal() {
    let mut elector = elector();
    elector.next(now(0));
    elector.answer(Answer::Found(theirs(1)), now(0), 0.0);
    elector.next(now(15_000));
    elector.answer(Answer::Found(Seen { version: "labelled".to_owned(), ..theirs(1) }), now(15_000), 0.0);
    assert!(matches!(elector.next(now(15_000)), Action::Update { version, .. } if version == "labelled"));
}

#[test]
fn a_released_lease_and_one_without_a_duration_are_free() {
    for change in
        [|record: &mut Record| record.holder.clear(), |record: &mut Record| record.duration_seconds = 0]
    {
        let mut seen = theirs(1);
        change(&mut seen.record);
        let mut elector = elector();
        elector.next(now(0));
        elector.answer(Answer::Found(seen), now(0), 0.0);
        assert!(matches!(elector.next(now(0)), Action::Update { record, .. } if record.transitions == 8));
    }
}

#[test]
fn a_holder_that_finds_another_in_its_place_has_lost_at_once() {
    let mut elector = leader();
    elector.next(now(2000));
    elector.answer(Answer::Conflict, now(2010), 0.0);
    assert!(elector.hold().is_some(), "somebody may have put a label on it");
    assert_eq!(elector.next(now(2010)), Action::Get);
    elector.answer(Answer::Found(theirs(1)), now(2020), 0.0);
    assert_eq!(elector.hold(), None);
    assert!(matches!(elector.next(now(2020)), Action::Wait(_)));
}

#[test]
fn a_holder_whose_lease_was_touched_by_others_goes_on() {
    let mut elector = leader();
    let term = elector.hold().unwrap().term;
    let Action::Update { record, .. } = elector.next(now(2000)) else { panic!() };
    elector.answer(Answer::Conflict, now(2010), 0.0);
    elector.next(now(2010));
    let touched = Record { renewed: Some(now(0).wall), ..record };
    elector.answer(Answer::Found(Seen { record: touched, version: "5".to_owned() }), now(2020), 0.0);
    let update = elector.next(now(2020));
    assert!(matches!(&update, Action::Update { version, .. } if version == "5"));
    elector.answer(stored(update, "6"), now(2030), 0.0);
    assert_eq!(elector.hold(), Some(Hold { term, since: now(2020) }));
}

#[test]
fn a_holder_that_cannot_renew_has_lost_at_the_deadline_and_begins_a_new_term_after() {
    let mut elector = leader();
    let first = elector.hold().unwrap().term;
    let renewal = elector.next(now(2000));
    elector.answer(Answer::Unknown, now(7000), 0.0);
    assert_eq!(elector.next(now(7000)), Action::Get, "a holder has no time to lose");
    elector.answer(Answer::Unknown, now(9000), 0.0);
    assert_eq!(elector.next(now(9000)), Action::Wait(Duration::from_secs(10)), "to tell of the loss in time");
    assert_eq!(elector.next(now(10_000)), Action::Wait(Duration::from_secs(11)));
    assert_eq!(elector.hold(), None);
    assert_eq!(elector.next(now(11_000)), Action::Get);
    // The renewal had arrived after all: the lease still has our name, and nobody else took it.
    elector.answer(stored(renewal, "2"), now(30_000), 0.0);
    let update = elector.next(now(30_000));
    assert!(matches!(&update, Action::Update { record, .. } if record.transitions == 0));
    elector.answer(stored(update, "3"), now(30_010), 0.0);
    assert!(elector.hold().unwrap().term > first);
}

#[test]
fn an_answer_that_comes_after_the_deadline_wins_nothing() {
    let mut elector = elector();
    elector.next(now(0));
    elector.answer(Answer::Absent, now(0), 0.0);
    let create = elector.next(now(0));
    elector.answer(stored(create, "1"), now(10_000), 0.0);
    assert_eq!(elector.hold(), None);
    assert_eq!(elector.next(now(10_000)), Action::Get);
}

#[test]
fn a_record_left_by_an_earlier_process_of_the_same_name_is_anothers() {
    let mut seen = theirs(1);
    seen.record.holder = "me".to_owned();
    let mut elector = elector();
    elector.next(now(0));
    elector.answer(Answer::Found(seen.clone()), now(0), 0.0);
    assert!(matches!(elector.next(now(0)), Action::Wait(_)));
    elector.next(now(15_000));
    elector.answer(Answer::Found(seen), now(15_000), 0.0);
    assert!(matches!(elector.next(now(15_000)), Action::Update { .. }));
}

#[test]
fn a_bid_whose_answer_was_lost_is_recognised() {
    let mut elector = elector();
    elector.next(now(0));
    elector.answer(Answer::Absent, now(0), 0.0);
    let create = elector.next(now(0));
    elector.answer(Answer::Unknown, now(5000), 0.0);
    assert!(matches!(elector.next(now(5000)), Action::Wait(_)));
    elector.next(now(7000));
    elector.answer(stored(create, "1"), now(7000), 0.0);
    let update = elector.next(now(7000));
    elector.answer(stored(update, "2"), now(7010), 0.0);
    assert_eq!(elector.hold().unwrap().since, now(7000));
}

#[test]
fn a_lease_that_is_deleted_is_lost_and_made_anew() {
    let mut elector = leader();
    elector.next(now(2000));
    elector.answer(Answer::Absent, now(2000), 0.0);
    assert_eq!(elector.hold(), None);
    assert_eq!(elector.next(now(2000)), Action::Get);
    elector.answer(Answer::Absent, now(2000), 0.0);
    assert!(
        matches!(elector.next(now(2000)), Action::Create(record) if record.acquired == Some(now(2000).wall))
    );
}

#[test]
fn a_lease_that_keeps_changing_is_met_at_the_usual_pace() {
    let mut elector = leader();
    let Action::Update { record, .. } = elector.next(now(2000)) else { panic!() };
    elector.answer(Answer::Conflict, now(2000), 0.0);
    assert_eq!(elector.next(now(2000)), Action::Get);
    elector.answer(Answer::Found(Seen { record, version: "9".to_owned() }), now(2000), 0.0);
    assert!(matches!(elector.next(now(2000)), Action::Update { .. }));
    elector.answer(Answer::Conflict, now(2000), 0.0);
    assert_eq!(elector.next(now(2000)), Action::Wait(Duration::from_secs(4)));
    assert!(elector.hold().is_some());
}

#[test]
fn a_nudge_makes_a_candidate_look_but_not_in_a_storm() {
    let mut elector = elector();
    elector.next(now(0));
    elector.answer(Answer::Found(theirs(1)), now(0), 0.0);
    elector.nudge(now(20));
    assert_eq!(elector.next(now(20)), Action::Wait(NUDGE_GAP));
    elector.nudge(now(500));
    assert_eq!(elector.next(now(500)), Action::Get);
    elector.nudge(now(505));
    elector.answer(Answer::Found(theirs(1)), now(510), 0.0);
    assert_eq!(elector.next(now(510)), Action::Wait(Duration::from_millis(600)), "it may have come too late");
    let mut leader = leader();
    leader.nudge(now(500));
    assert_eq!(leader.next(now(500)), Action::Wait(Duration::from_secs(2)), "a holder knows");
}

#[test]
fn a_holder_that_resigns_lets_go_as_client_go_does() {
    let mut elector = leader();
    elector.resign();
    assert_eq!(elector.hold(), None);
    let released = Some(now(500).wall);
    let record = Record {
        holder: String::new(),
        duration_seconds: 1,
        acquired: released,
        renewed: released,
        transitions: 0,
    };
    let release = elector.next(now(500));
    assert_eq!(release, Action::Update { record, version: "1".to_owned() });
    elector.answer(stored(release, "2"), now(510), 0.0);
    assert_eq!(elector.next(now(510)), Action::Done);
    assert_eq!(elector.leader(), None);
}

#[test]
fn one_that_resigns_lets_go_of_what_it_may_have_won() {
    let mut elector = elector();
    elector.next(now(0));
    elector.answer(Answer::Absent, now(0), 0.0);
    let create = elector.next(now(0));
    elector.resign();
    assert_eq!(elector.next(now(100)), Action::Get);
    elector.answer(stored(create, "1"), now(100), 0.0);
    assert!(matches!(elector.next(now(100)), Action::Update { record, .. } if record.holder.is_empty()));
}

#[test]
fn one_that_resigns_leaves_anothers_lease_alone() {
    let mut elector = elector();
    elector.next(now(0));
    elector.answer(Answer::Found(theirs(1)), now(0), 0.0);
    elector.resign();
    assert_eq!(elector.next(now(0)), Action::Done);

    let mut elector = leader();
    elector.resign();
    elector.next(now(0));
    elector.answer(Answer::Conflict, now(0), 0.0);
    assert_eq!(elector.next(now(0)), Action::Get);
    elector.answer(Answer::Found(theirs(1)), now(0), 0.0);
    assert_eq!(elector.next(now(0)), Action::Done);
}
