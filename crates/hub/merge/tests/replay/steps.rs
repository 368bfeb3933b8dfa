//! Replays writes one after another: each starts from what the one before it was observed to leave.

use berth_hub_merge::{ApplyError, ObjectType, Operation, Writer, apply, track_update};
use serde_json::{Value, json};

use crate::report::Report;

/// Fields that writes of the object, and writes of its status, cannot own.
const RESET: [&[&[&str]]; 2] = [&[&["status"]], &[&["metadata"], &["spec"]]];

/// Where a scenario is.
#[derive(Default)]
pub(crate) struct Replay {
    live: Option<Value>,
}

impl Replay {
    /// Replays a step. `settle` gives an outcome the form in which it was observed.
    pub(crate) fn step(
        &mut self,
        line: usize,
        step: &Value,
        of: ObjectType<'_>,
        settle: impl Fn(Value) -> Value,
        report: &mut Report,
    ) {
        if step["first"] == true {
            self.live = None;
        }
        if let Some(live) = step.get("live") {
            self.live = Some(live.clone());
        }
        let version = step["v"].as_str().unwrap();
        if let Some(live) = &mut self.live {
            live["apiVersion"] = json!(version);
            live["metadata"]["uid"] = json!("u");
        }
        let theirs = self.observed(step);
        let ours = run(self.live.as_ref(), step, of, settle);
        report.compare(line, step, &ours, &theirs);
        if let Some(result) = theirs.get("result") {
            self.live = Some(result.clone());
        }
    }

    /// The outcome as it was observed, put together again.
    fn observed(&self, step: &Value) -> Value {
        if let Some(error) = step.get("e") {
            let causes = step.get("c").cloned().unwrap_or_else(|| json!([]));
            return json!({"error": error, "causes": causes});
        }
        let mut live = self.live.clone().unwrap_or_else(|| json!({}));
        let recorded = live["metadata"]["managedFields"].take();
        let mut result = match step["out"].as_str() {
            Some("in") => step["in"].clone(),
            Some("live") => live,
            _ => step["out"].clone(),
        };
        let entries = step["mf"].as_array().cloned().unwrap_or_default();
        let entries: Vec<Value> = entries
            .into_iter()
            .map(|entry| entry.as_u64().map_or(entry, |index| recorded[index as usize].clone()))
            .collect();
        let metadata = result["metadata"].as_object_mut().unwrap();
        metadata.remove("managedFields");
        if !entries.is_empty() {
            metadata.insert("managedFields".to_owned(), entries.into());
        }
        json!({"result": result})
    }
}

fn run(live: Option<&Value>, step: &Value, of: ObjectType<'_>, settle: impl Fn(Value) -> Value) -> Value {
    let text = |name: &str| step[name].as_str();
    let applies = text("op") == Some("apply");
    let subresource = text("sub");
    let writer = Writer {
        manager: text("m").unwrap(),
        operation: if applies { Operation::Apply } else { Operation::Update },
        api_version: text("v").unwrap(),
        subresource,
        now: text("now").unwrap(),
    };
    let reset = RESET[usize::from(subresource.is_some())];
    let mut input = step["in"].clone();
    if applies {
        return match apply(live, &input, of, &writer, step["f"] == true, reset) {
            Ok(result) => json!({"result": settle(result)}),
            Err(error) => {
                let mut causes: Vec<String> = match &error {
                    ApplyError::Conflicts(conflicts) => {
                        let cause = |conflict: &berth_hub_merge::Conflict| {
                            format!("{}|{}", conflict.message(), conflict.field)
                        };
                        conflicts.0.iter().map(cause).collect()
                    }
                    _ => Vec::new(),
                };
                causes.sort();
                json!({"error": error.to_string(), "causes": causes})
            }
        };
    }
    if step["same"] == true {
        input["metadata"]["managedFields"] = live.unwrap()["metadata"]["managedFields"].clone();
    }
    track_update(live, &mut input, of, &writer, reset);
    json!({"result": settle(input)})
}
