//! What there is to say about one member, in sentences.

use berth_api::replacement::{Mode, Sighting, SightingSource, StrategyType};
use berth_engine::Moment;
use berth_engine::moment::Span;
use berth_engine::replace::Cause;

use super::roll::{Entry, State, is_an_end, moment};

/// A cause in words.
pub(crate) fn cause(sighting: &Sighting) -> String {
    // Written by a program that knows more than this one.
    Cause::read(sighting)
        .map_or_else(|| format!("{} (unknown here)", sighting.kind), |cause| cause.to_string())
}

/// What there is to say, how it stands first.
pub(crate) fn sentences(entry: &Entry<'_>, now: Moment) -> Vec<String> {
    let mut told = vec![standing(entry, now)];
    told.extend(entry.causes().iter().map(|sighting| clock(sighting, now)));
    if let Some(replacement) = entry.replacement {
        told.extend(course(entry, now));
        let status = replacement.status.clone().unwrap_or_default();
        told.extend(status.gates.iter().flatten().map(|gate| {
            let said = gate.message.as_deref().filter(|said| !said.is_empty());
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            let asked =
                moment(gate.last_checked.as_ref()).map(|at| format!(", asked at {at}")).unwrap_or_default();
            format!("Gate {} says {}{asked}{said}.", gate.name, gate.verdict)
        }));
    }
    let record = entry.member.and_then(|member| member.record.as_ref()).filter(|record| record.attempts > 0);
    told.extend(record.map(|record| {
        let times =
            if record.attempts == 1 { "once".to_owned() } else { format!("{} times", record.attempts) };
        let ended = moment(record.ended_at.as_ref()).map(|at| format!(", the last time until {at}"));
        format!(
            "It has been replaced {times} without having been well for long enough since{}.",
            ended.unwrap_or_default()
        )
    }));
    told.push(policy(entry));
    told
}

fn standing(entry: &Entry<'_>, now: Moment) -> String {
    let why = entry.why().map(|why| format!(": {why}")).unwrap_or_default();
    match entry.state(now) {
        State::Healthy => "Nothing is wrong with it that its policy speaks of.".to_owned(),
        State::Detected => {
            let next =
                entry.next().map(|at| format!("; it changes at {at}{}", ahead(at, now))).unwrap_or_default();
            format!("Something is wrong with it, but not for long enough{next}.")
        }
        State::Replacing => {
            let due = entry.causes().iter().filter_map(|cause| moment(cause.due_at.as_ref())).min();
            let due = due.map(|at| format!(" until {at}{}", ahead(at, now))).unwrap_or_default();
            format!("It is marked to be replaced, and waits{due}.")
        }
        State::Queued => format!("It is due, and held up{why}."),
        State::Course("Done") => format!("It has been replaced{why}."),
        State::Course("Aborted") => format!("Its replacement was called off{why}."),
        State::Course("Failed") => format!("Its replacement has failed{why}."),
        State::Course(phase) => format!("It is being replaced, and is {}{why}.", stage(phase)),
    }
}

/// A phase in words.
fn stage(phase: &str) -> &str {
    match phase {
        "Gating" => "at its gates",
        "Draining" => "with its operator, who has been told",
        "RemovingVolumes" => "losing its claims",
        "RemovingPod" => "losing its pod",
        "AwaitingSuccessor" => "waiting for its successor",
        "Verifying" => "watching its successor",
        other => other,
    }
}

/// A cause, since when, and when something comes of it.
fn clock(sighting: &Sighting, now: Moment) -> String {
    let since = match (moment(sighting.since.as_ref()), sighting.since_source.as_ref()) {
        (Some(since), Some(SightingSource::FirstSeen)) => {
            format!(" since {since}, when it was first seen: nobody wrote down when it began")
        }
        (Some(since), _) => format!(" since {since}"),
        (None, _) => String::new(),
    };
    let due = match (moment(sighting.replacing_since.as_ref()), moment(sighting.due_at.as_ref())) {
        (Some(marked), Some(due)) if due <= now => {
            format!("; it marked the member at {marked}, which is due since {due}")
        }
        (Some(marked), Some(due)) => {
            format!("; it marked the member at {marked}, which is due at {due}{}", ahead(due, now))
        }
        (Some(marked), None) => format!("; it marked the member at {marked}, and never makes it due"),
        (None, Some(due)) => format!("; if it lasts, the member is due at {due}{}", ahead(due, now)),
        (None, None) => "; it never makes the member due".to_owned(),
    };
    let rule = sighting.rule.as_deref().map(|rule| format!(", by {rule}")).unwrap_or_default();
    let text = capitalised(&cause(sighting));
    format!("{text}{since}{due}{rule}.")
}

/// As a sentence begins.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// How the replacement went so far, and what can be said to it.
fn course(entry: &Entry<'_>, now: Moment) -> Vec<String> {
    let Some(replacement) = entry.replacement else { return Vec::new() };
    let status = replacement.status.clone().unwrap_or_default();
    let name = replacement.metadata.name.as_deref().unwrap_or_default();
    let because = replacement.spec.trigger.as_ref().map(|trigger| format!(" because of {}", cause(trigger)));
    let because = because.unwrap_or_default();
    let mut told = Vec::new();
    let began = moment(status.started_at.as_ref());
    let began = began.map(|at| format!(" at {at}{}", ago(at, now))).unwrap_or_default();
    told.push(format!("Replacement {name} began{began}{because}."));
    let claims: Vec<&str> = status.claims.iter().flatten().map(|claim| claim.name.as_str()).collect();
    let claims = if claims.is_empty() { String::new() } else { format!(" ({})", claims.join(", ")) };
    let is_over = entry.phase().is_some_and(is_an_end);
    match moment(status.point_of_no_return_at.as_ref()) {
        Some(at) => told.push(format!("Claims{claims} go with it: there was no way back from {at} on.")),
        None if is_over => {}
        None => {
            let volumes = if replacement.spec.removes_volumes == Some(true) {
                "; its claims are to go with it, and none has gone"
            } else {
                ""
            };
            let namespace = entry.namespace;
            if moment(status.pod_removed_at.as_ref()).is_none() {
                told.push(format!(
                    "Nothing has been removed yet{volumes}. `kubectl patch replacement {name} -n {namespace} --type=merge -p \
                     '{{\"spec\":{{\"cancel\":true}}}}'` calls it off."
                ));
            }
        }
    }
    told.extend(moment(status.pod_removed_at.as_ref()).map(|at| format!("The pod was gone at {at}.")));
    told.extend(status.successor.as_ref().map(|successor| {
        let node = successor
            .node
            .as_deref()
            .map_or_else(|| "without a node yet".to_owned(), |node| format!("on {node}"));
        format!("Its successor is {} {node}.", successor.name)
    }));
    told.extend(moment(status.ended_at.as_ref()).map(|at| format!("It ended at {at}{}.", ago(at, now))));
    if !is_over && replacement.spec.suspend == Some(true) {
        told.push("A person has suspended it: nothing more is done.".to_owned());
    }
    told
}

/// By whose orders.
fn policy(entry: &Entry<'_>) -> String {
    let name = entry.policy_name;
    let Some(policy) = entry.policy else { return format!("Its policy {name} is no more.") };
    let mode = match policy.spec.mode() {
        Mode::Enforce => "is enforced",
        Mode::DryRun => "is on trial and does nothing (mode DryRun)",
        _ => "is disabled",
    };
    let way = match policy.spec.strategy.clone().unwrap_or_default().kind() {
        StrategyType::Delegate => "an operator replaces its members",
        _ => "members are evicted",
    };
    let counts = policy.status.as_ref().and_then(|status| status.counts);
    let counts = counts.map(|counts| {
        format!(
            "; members: {}, being replaced: {}, marked or due: {}, held up: {}",
            counts.matched, counts.in_flight, counts.replacing, counts.blocked
        )
    });
    let conditions = policy.status.as_ref().and_then(|status| status.conditions.as_deref());
    let troubles = conditions.unwrap_or_default().iter().filter(|condition| match condition.type_.as_str() {
        "Accepted" | "NodeAccess" => condition.status == "False",
        "Paused" | "BreakerOpen" | "Overlap" => condition.status == "True",
        _ => false,
    });
    let mut words = format!("Policy {name} {mode}; {way}{}.", counts.unwrap_or_default());
    for condition in troubles {
        words.extend([" ", &condition.type_, "=", &condition.status, ": ", &condition.message, "."]);
    }
    words
}

fn ahead(at: Moment, now: Moment) -> String {
    match at.seconds_since(now) {
        ..=0 => String::new(),
        left => format!(", in {}", Span(left)),
    }
}

fn ago(at: Moment, now: Moment) -> String {
    match now.seconds_since(at) {
        ..=0 => String::new(),
        past => format!(" ({} ago)", Span(past)),
    }
}
