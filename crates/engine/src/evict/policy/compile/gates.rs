//! The gates of a policy, read.

use std::collections::HashSet;
use std::sync::Arc;

use berth_api::eviction_policy::AnnotationMatch;
use berth_api::eviction_policy::gate::{
    ConditionStatus, EXPRESSION_CHARS_MAX, EvictionGate, GATE_NAME_CHARS_MAX, GATES_MAX, ReviewGate,
};
use berth_text::names::{is_dns_label, label_key};

use super::{Reader, unknown};
use crate::gate::{Address, AddressError, Gate, from_base64};

impl Reader {
    pub(super) fn gates(&mut self, gates: &[EvictionGate]) -> Arc<[Gate]> {
        self.length("spec.gates", gates.len(), 0, GATES_MAX);
        let mut names = HashSet::new();
        let read = gates.iter().enumerate().filter_map(|(index, gate)| {
            let path = format!("spec.gates[{index}]");
            if !is_dns_label(&gate.name) || gate.name.len() > GATE_NAME_CHARS_MAX as usize {
                self.complain(
                    format!("{path}.name"),
                    format!("{:?} is not a name: a DNS label is allowed", gate.name),
                );
            }
            if !names.insert(gate.name.as_str()) {
                self.complain(
                    format!("{path}.name"),
                    format!("{:?} is the name of another gate as well", gate.name),
                );
            }
            self.gate(&path, gate)
        });
        let read: Vec<Gate> = read.collect();
        read.into()
    }

    fn gate(&mut self, path: &str, gate: &EvictionGate) -> Option<Gate> {
        let EvictionGate { name, cel, pod_condition, annotation, review } = gate;
        match (cel, pod_condition, annotation, review) {
            (Some(cel), None, None, None) => {
                let path = format!("{path}.cel.expression");
                if cel.expression.chars().count() > EXPRESSION_CHARS_MAX as usize {
                    self.complain(path, format!("is longer than {EXPRESSION_CHARS_MAX} characters"));
                    return None;
                }
                Gate::expression(name, &cel.expression).map_err(|error| self.complain(path, error)).ok()
            }
            (None, Some(condition), None, None) => {
                if condition.kind.is_empty() {
                    self.complain(format!("{path}.podCondition.type"), "must not be empty");
                }
                if let ConditionStatus::Other(word) = &condition.status {
                    self.complain(
                        format!("{path}.podCondition.status"),
                        unknown(word, ConditionStatus::KNOWN),
                    );
                }
                Some(Gate::condition(name, &condition.kind, condition.status.as_str()))
            }
            (None, None, Some(annotation), None) => {
                self.annotation(&format!("{path}.annotation"), annotation);
                Some(Gate::annotation(name, &annotation.key, annotation.value.as_deref()))
            }
            (None, None, None, Some(review)) => {
                let address = self.review(&format!("{path}.review"), review)?;
                Some(Gate::review(name, address))
            }
            _ => {
                self.complain(path, "must have exactly one of cel, podCondition, annotation and review");
                None
            }
        }
    }

    pub(super) fn annotation(&mut self, path: &str, annotation: &AnnotationMatch) {
        if !label_key(&annotation.key).is_empty() {
            self.complain(
                format!("{path}.key"),
                format!("{:?} is not the key of an annotation", annotation.key),
            );
        }
    }

    fn review(&mut self, path: &str, review: &ReviewGate) -> Option<Address> {
        let ReviewGate { url, ca_bundle, timeout_seconds } = review;
        let bundle = match ca_bundle.as_deref().map(from_base64).transpose() {
            Ok(bundle) => bundle,
            Err(message) => {
                self.complain(format!("{path}.caBundle"), message);
                return None;
            }
        };
        let read = Address::parse(url, bundle.as_deref(), *timeout_seconds);
        let complain = |error: AddressError| {
            self.complain(format!("{path}.{}", error.field()), error.to_string());
        };
        read.map_err(complain).ok()
    }
}
