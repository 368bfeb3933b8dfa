//! The values that field selectors compare.
//!
//! Owns which fields of a built-in kind may be selected by and what their text is. Parsing selectors is others' work.

use serde_json::Value;

use crate::{
    access::{at, flag, items, text},
    registry::Builtin,
};

impl Builtin {
    /// What the stored object calls a field that a selector names, absent when the kind cannot be selected by it.
    pub fn stored_field(&self, label: &str) -> Option<&'static str> {
        self.selectable_fields.iter().find(|field| field.label == label).map(|field| field.stored)
    }

    /// The text of a field of a stored object, by the name [`Builtin::stored_field`] gives; empty where it is not set.
    pub fn field_text(&self, object: &Value, stored: &str) -> String {
        match (self.kind, stored) {
            ("Node", "spec.unschedulable") => flag(object, &["spec", "unschedulable"]).to_string(),
            ("Pod", "spec.hostNetwork") => flag(object, &["spec", "hostNetwork"]).to_string(),
            ("Pod", "status.podIP") => text(object, &["status", "podIP"]).to_owned(),
            // Several addresses are one text; nobody has given them another form.
            ("Pod", "status.podIPs") => {
                let all: Vec<&str> =
                    items(object, &["status", "podIPs"]).iter().map(|item| text(item, &["ip"])).collect();
                all.join(",")
            }
            ("Event", "source") => match text(object, &["source", "component"]) {
                "" => text(object, &["reportingComponent"]).to_owned(),
                component => component.to_owned(),
            },
            ("Job", "status.successful") => number(object, &["status", "succeeded"]),
            ("ReplicaSet", "status.replicas") => number(object, &["status", "replicas"]),
            (_, stored) => {
                let path: Vec<&str> = stored.split('.').collect();
                text(object, &path).to_owned()
            }
        }
    }
}

fn number(object: &Value, path: &[&str]) -> String {
    at(object, path).and_then(Value::as_i64).unwrap_or(0).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Builtins;

    #[test]
    fn fields_that_are_not_set_have_the_text_of_their_zero_value() {
        let builtins = Builtins::load();
        let node = builtins.kind("", "v1", "Node").unwrap();
        assert_eq!(node.field_text(&json!({}), "spec.unschedulable"), "false");
        let pod = builtins.kind("", "v1", "Pod").unwrap();
        assert_eq!(
            pod.field_text(&json!({"spec": {"nodeName": "n"}}), pod.stored_field("spec.host").unwrap()),
            "n"
        );
        assert_eq!(pod.stored_field("spec.priority"), None);
    }

    #[test]
    fn the_source_of_an_event_falls_back_to_its_reporter() {
        let event = Builtins::load().kind("", "v1", "Event").unwrap();
        assert_eq!(event.field_text(&json!({"reportingComponent": "r"}), "source"), "r");
        assert_eq!(
            event.field_text(&json!({"source": {"component": "c"}, "reportingComponent": "r"}), "source"),
            "c"
        );
    }
}
