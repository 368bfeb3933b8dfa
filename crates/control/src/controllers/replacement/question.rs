//! What somebody outside is asked about a member.

use std::sync::Arc;

use berth_api::replacement::Stage as GateStage;
use berth_engine::Moment;
use berth_engine::replace::{Cause, PolicyKey, Sighting, Step};
use serde_json::Value;

use crate::act::Around;
use crate::review::{NodeFacts, PodFacts, Question, ReplacementFacts, TaintFacts};

/// The question of a gate.
pub(super) fn question(
    key: &PolicyKey,
    step: &Step,
    gate: &Arc<str>,
    stage: &GateStage,
    around: &Around,
) -> Question {
    let labels = |object: Option<&Value>| {
        let labels = object.and_then(|object| object["metadata"]["labels"].as_object()).into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    let course = step.memory.under_way();
    let sighting = step.memory.sightings.iter().min_by_key(|sighting| sighting.due_at_the_earliest());
    let cause = course.map(|course| &course.cause).or(sighting.map(|sighting| &sighting.cause));
    let node = around.pod.object().and_then(|pod| pod["spec"]["nodeName"].as_str()).unwrap_or_default();
    let taint = match cause {
        Some(Cause::Taint { key, value, effect }) => TaintFacts {
            key: key.to_string(),
            value: value.to_string(),
            effect: effect.to_string(),
            time_added: None,
        },
        _ => TaintFacts::default(),
    };
    let due = sighting.map(Sighting::due_at_the_earliest);
    let due = course.map(|course| course.started).or(due).unwrap_or(Moment::PAST);
    Question {
        policy: format!("{}/{}", key.namespace, key.name),
        gate: gate.to_string(),
        pod: PodFacts {
            namespace: key.namespace.to_string(),
            name: step.name.to_string(),
            uid: step.memory.uid.as_deref().unwrap_or_default().to_owned(),
            labels: labels(around.pod.object()),
            node: node.to_owned(),
        },
        node: NodeFacts { name: node.to_owned(), labels: labels(around.node.object()) },
        taint,
        due_at: due.to_string(),
        is_dry_run: false,
        replacement: Some(ReplacementFacts {
            stage: stage.as_str().to_owned(),
            trigger: cause.map(ToString::to_string).unwrap_or_default(),
            started_at: course.map(|course| course.started.to_string()).unwrap_or_default(),
            removes_volumes: course.is_some_and(|course| course.removes_volumes),
        }),
    }
}
