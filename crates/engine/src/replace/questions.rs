//! What a policy asks that cannot be told as plain facts: its gates, who goes first, and when its windows are open.
//!
//! Owns the reading of these, with the path of whatever is wrong, and the way from what a gate says to a [`Verdict`]. Nobody
//! outside is asked here: what services say is brought along.

use std::sync::Arc;

use berth_api::replacement::{self as api, ReplacementPolicySpec};
use berth_api::schema::{FieldPath, Problem};
use berth_api::window::MaintenanceWindow;

use super::facts::{Opening, Verdict};
use super::policy::Policy;
use crate::gate::{Address, Gate, Opinion, Passage, Rank, Sight, Why, from_base64, passage};
use crate::moment::Moment;
use crate::window::{Window, Windows};

/// The questions of a policy.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// Its gates, in the order of [`Policy::gates`].
    pub gates: Vec<Gate>,
    /// Who goes first.
    pub order: Option<Rank>,
    /// When replacements may begin.
    pub windows: Windows,
}

/// Everything that is wrong with a policy: what no schema can say, and what cannot be understood.
pub fn problems(spec: &ReplacementPolicySpec) -> Vec<Problem> {
    let mut problems = Policy::compile(spec).err().unwrap_or_default();
    problems.extend(Questions::compile(spec).err().into_iter().flatten());
    problems
}

impl Questions {
    /// Makes the questions of a policy ready, or says all that is wrong with them. What
    /// [`problems`](ReplacementPolicySpec::problems) finds is not told again.
    pub fn compile(spec: &ReplacementPolicySpec) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let path = FieldPath::root().field("spec");
        let mut questions = Self::default();
        for (index, gate) in spec.gates().iter().enumerate() {
            match read_gate(gate, &path.field("gates").index(index)) {
                Ok(gate) => questions.gates.extend(gate),
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(order) = &spec.order {
            match Rank::compile(&order.cel) {
                Ok(rank) => questions.order = Some(rank),
                Err(error) => {
                    problems.push(Problem::invalid_text(
                        &path.field("order").field("cel"),
                        &order.cel,
                        &error,
                    ));
                }
            }
        }
        let windows = spec.budget.as_ref().map(api::Budget::windows).unwrap_or_default();
        let path = path.field("budget").field("windows");
        let read = windows.iter().enumerate().filter_map(|(index, window)| {
            let MaintenanceWindow { schedule, duration_seconds, time_zone } = window;
            let read = Window::parse(schedule, *duration_seconds, time_zone.as_deref());
            let problem = |error: crate::window::WindowError| {
                // The rules between fields speak of what is too short.
                if *duration_seconds >= berth_api::window::DURATION_SECONDS_MIN {
                    let path = path.index(index).field(error.field());
                    problems.push(Problem::invalid_text(&path, schedule, &error.to_string()));
                }
            };
            read.map_err(problem).ok()
        });
        questions.windows = read.collect();
        if problems.is_empty() { Ok(questions) } else { Err(problems) }
    }

    /// Whether replacements may begin now.
    pub fn opening(&self, now: Moment) -> Opening {
        match self.windows.closes_at(now) {
            Some(until) => Opening::Open { until },
            None => Opening::Closed { opens: self.windows.next_opening(now).unwrap_or(Moment::NEVER) },
        }
    }

    /// What each gate says of a member. `said` is what services have answered, by the names of their gates; whom nobody has
    /// asked is unknown, as is what could not be judged.
    pub fn verdicts(&self, sight: Sight<'_>, said: &[(Arc<str>, Opinion)]) -> Vec<(Verdict, Option<String>)> {
        let judge = |gate: &Gate| match passage(std::slice::from_ref(gate), sight, said) {
            Passage::Open => (Verdict::Pass, None),
            Passage::Asks { .. } => (Verdict::Unknown, Some("nobody was asked yet".to_owned())),
            Passage::Shut(shut) => {
                let verdict = match &shut.why {
                    Why::NotBool { .. } | Why::Failed { .. } | Why::Unanswered { .. } => Verdict::Unknown,
                    Why::Later { .. }
                    | Why::NoCondition { .. }
                    | Why::OldCondition { .. }
                    | Why::NoAnnotation { .. } => Verdict::InProgress,
                    _ => Verdict::Deny,
                };
                (verdict, Some(shut.why.to_string()))
            }
        };
        self.gates.iter().map(judge).collect()
    }
}

/// A gate, made ready; none where the rules between fields say already that it is wrong.
fn read_gate(gate: &api::Gate, path: &FieldPath) -> Result<Option<Gate>, Problem> {
    let api::Gate { name, cel, pod_condition, annotation, http, .. } = gate;
    Ok(match (cel, pod_condition, annotation, http) {
        (Some(cel), None, None, None) => {
            let problem = |error: String| Problem::invalid_text(&path.field("cel"), cel, &error);
            Some(Gate::expression_of_a_member(name, cel).map_err(problem)?)
        }
        (None, Some(condition), None, None) => {
            let status = condition.status.as_deref().unwrap_or("True");
            Some(if condition.observed_after_start == Some(true) {
                Gate::fresh_condition(name, &condition.type_, status)
            } else {
                Gate::condition(name, &condition.type_, status)
            })
        }
        (None, None, Some(annotation), None) => {
            Some(Gate::annotation(name, &annotation.key, annotation.value.as_deref()))
        }
        (None, None, None, Some(http)) => {
            let path = path.field("http");
            let bundle = http.ca_bundle.as_deref().map(from_base64).transpose();
            let bundle = bundle.map_err(|error| {
                Problem::invalid_text(
                    &path.field("caBundle"),
                    http.ca_bundle.as_deref().unwrap_or_default(),
                    &error,
                )
            })?;
            let address = Address::parse(&http.url, bundle.as_deref(), None).map_err(|error| {
                Problem::invalid_text(&path.field(error.field()), &http.url, &error.to_string())
            })?;
            Some(Gate::review(name, address))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::gate::Company;

    fn spec(part: &Value) -> ReplacementPolicySpec {
        let mut spec = json!({
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "triggers": {"nodeMissing": {"durationSeconds": 60}},
        });
        spec.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn what_cannot_be_understood_is_told_with_its_path() {
        let spec = spec(&json!({
            "gates": [
                {"name": "a", "cel": "pod."},
                {"name": "b", "cel": "1 + 1"},
                {"name": "c", "http": {"url": "https://ann:secret@example.com/"}},
                {"name": "d", "http": {"url": "https://example.com/", "caBundle": "?"}},
                {"name": "e"},
            ],
            "order": {"cel": "'first'"},
            "budget": {"windows": [{"schedule": "0 25 * * *", "durationSeconds": 3600}]},
        }));
        let paths: Vec<String> = problems(&spec).iter().map(|problem| problem.path.to_string()).collect();
        assert_eq!(
            paths,
            [
                "spec.gates[4]",
                "spec.gates[0].cel",
                "spec.gates[1].cel",
                "spec.gates[2].http.url",
                "spec.gates[3].http.caBundle",
                "spec.order.cel",
                "spec.budget.windows[0].schedule",
            ]
        );
    }

    #[test]
    fn gates_see_claims_volumes_peers_and_the_moment_and_what_fails_is_unknown() {
        let questions = Questions::compile(&spec(&json!({
            "gates": [
                {"name": "peers", "cel": "peers.all(p, p.status.phase == 'Running') && size(pvcs) == 1 && size(pvs) == 0"},
                {"name": "now", "cel": "now > timestamp('2026-01-01T00:00:00Z')"},
                {"name": "fails", "cel": "owner.status.ready"},
                {"name": "told", "podCondition": {"type": "Drained", "observedAfterStart": true}},
                {"name": "asked", "http": {"url": "https://example.com/"}},
            ],
            "order": {"cel": "size(pod.metadata.name)"},
        })))
        .unwrap();
        let drained = |at: &str| {
            json!({"metadata": {"name": "db-0"}, "status": {"conditions": [
                {"type": "Drained", "status": "True", "lastTransitionTime": at},
            ]}})
        };
        let now = Moment::from_second(1_800_000_000);
        let company = Company {
            claims: &[json!({})],
            volumes: &[],
            peers: &[json!({"status": {"phase": "Running"}})],
            now,
            started: Some(now),
        };
        for (at, fresh) in
            [("2020-01-01T00:00:00Z", Verdict::InProgress), ("2027-01-15T08:00:00Z", Verdict::Pass)]
        {
            let pod = drained(at);
            let sight = Sight { pod: &pod, node: None, owner: None, company: Some(company) };
            let said: Vec<Verdict> =
                questions.verdicts(sight, &[]).into_iter().map(|(verdict, _)| verdict).collect();
            assert_eq!(
                said,
                [Verdict::Pass, Verdict::Pass, Verdict::Unknown, fresh, Verdict::Unknown],
                "{at}"
            );
            assert_eq!(questions.order.as_ref().unwrap().of(sight), Some(4));
            let later = Err(Why::Later { until: now, message: String::new() });
            for (opinion, verdict) in [(Ok(()), Verdict::Pass), (later, Verdict::InProgress)] {
                let said = questions.verdicts(sight, &[("asked".into(), opinion)]);
                assert_eq!(said[4].0, verdict);
            }
        }
    }

    #[test]
    fn windows_open_and_close() {
        let questions = Questions::compile(&spec(&json!({
            "budget": {"windows": [{"schedule": "0 2 * * *", "durationSeconds": 3600}]},
        })))
        .unwrap();
        let two = Moment::from_timestamp("2026-01-01T02:00:00Z".parse().unwrap());
        assert_eq!(questions.opening(two), Opening::Open { until: two.plus_seconds(3_600) });
        assert_eq!(questions.opening(two.plus_seconds(-60)), Opening::Closed { opens: two });
        assert_eq!(Questions::default().opening(two), Opening::ALWAYS);
    }
}
