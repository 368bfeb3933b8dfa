//! From an EvictionPolicy to a [`Rule`], with every complaint there is.
//!
//! Owns what counts as misconfigured, whatever pods and nodes there are. Each complaint names the field and says what is
//! allowed. There is always a rule: one that is misconfigured still says whom it is about, as far as that can be understood.

mod gates;

use berth_api::EvictionPolicy;
use berth_api::eviction_policy::{
    AnnotationMatch, EvictTerms, EvictionAftermath, EvictionFallback, EvictionPace, EvictionTiming,
    EvictionWay, NAMESPACES_MAX, OWNER_KINDS_MAX, PROOFS_MAX, PodSelection, ProofType, SECONDS_MAX,
    TAINTS_MAX, TaintSelection,
};
use berth_api::window::{MaintenanceWindow, WINDOWS_MAX};
use berth_text::names::{LABEL_BYTES_MAX, is_dns_label, label_key, label_value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;

use super::rule::{Force, Orders, Pace, Proof, Rule, Way};
use super::selection::{Selection, TaintTerm};
use crate::evict::{Allowance, Rate};
use crate::selector::{Requirement, from_label_selector};
use crate::window::{Window, Windows};

/// The burst of a rate that names none.
const BURST_USUALLY: u32 = 1;

/// Something in a policy that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// The field, `spec.gates[0].cel.expression`.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// Reads a policy.
pub fn compile(policy: &EvictionPolicy) -> Rule {
    let spec = &policy.spec;
    let mut reader = Reader::default();
    let mut selection = Selection::default();
    if let Some(pods) = &spec.pods {
        reader.pods(pods, &mut selection);
    }
    if let Some(taints) = &spec.taints {
        selection.taints = reader.taints(taints);
    }
    // What could not be understood so far would have said whom it is about.
    selection.is_garbled = !reader.complaints.is_empty();
    let way = reader.way(&spec.way, spec.evict.as_ref());
    let (toleration_seconds, delay_seconds) = reader.timing(spec.when.as_ref());
    let windows = reader.windows(spec.when.as_ref().and_then(|when| when.windows.as_deref()));
    let pace = reader.pace(spec.pace.as_ref());
    let gates = reader.gates(spec.gates.as_deref().unwrap_or_default());
    let force = spec.after.as_ref().map(|after| reader.force(after));
    let orders = if reader.complaints.is_empty() {
        Ok(Orders {
            way,
            toleration_seconds,
            delay_seconds,
            windows,
            pace,
            gates,
            force,
            is_dry_run: spec.dry_run == Some(true),
        })
    } else {
        Err(reader.complaints.into())
    };
    Rule {
        name: policy.metadata.name.as_deref().unwrap_or_default().into(),
        generation: policy.metadata.generation.unwrap_or_default(),
        selection,
        orders,
    }
}

#[derive(Default)]
struct Reader {
    complaints: Vec<Complaint>,
}

impl Reader {
    fn complain(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.complaints.push(Complaint { path: path.into(), message: message.into() });
    }

    /// A list that must say something, and not too much.
    fn length(&mut self, path: &str, count: usize, least: usize, most: u32) {
        if count < least {
            self.complain(path, "must not be empty: leave it out to select all");
        }
        if count > most as usize {
            self.complain(path, format!("has {count} entries; at most {most} are allowed"));
        }
    }

    fn pods(&mut self, pods: &PodSelection, selection: &mut Selection) {
        if let Some(namespaces) = &pods.namespaces {
            let path = "spec.pods.namespaces";
            self.length(path, namespaces.len(), 1, NAMESPACES_MAX);
            let good = self.names(path, namespaces, is_dns_label, "the name of a namespace");
            selection.namespaces = Some(good).filter(|_| self.complaints.is_empty());
        }
        let before = self.complaints.len();
        if let Some(kinds) = &pods.owner_kinds {
            let path = "spec.pods.ownerKinds";
            self.length(path, kinds.len(), 1, OWNER_KINDS_MAX);
            let is_kind = |kind: &str| {
                kind.starts_with(|first: char| first.is_ascii_uppercase())
                    && kind.len() <= LABEL_BYTES_MAX
                    && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
            };
            let good = self.names(path, kinds, is_kind, "a kind, as in StatefulSet");
            selection.owner_kinds = Some(good).filter(|_| self.complaints.len() == before);
        }
        selection.namespace_labels =
            self.labels("spec.pods.namespaceSelector", pods.namespace_selector.as_ref());
        selection.labels = self.labels("spec.pods.selector", pods.selector.as_ref());
    }

    fn names(
        &mut self,
        path: &str,
        names: &[String],
        is_good: impl Fn(&str) -> bool,
        what: &str,
    ) -> Box<[Box<str>]> {
        for (index, name) in names.iter().enumerate().filter(|(_, name)| !is_good(name)) {
            self.complain(format!("{path}[{index}]"), format!("{name:?} is not {what}"));
        }
        names.iter().map(|name| name.as_str().into()).collect()
    }

    fn labels(&mut self, path: &str, selector: Option<&LabelSelector>) -> Box<[Requirement]> {
        match selector.map(from_label_selector) {
            None => Box::default(),
            Some(Ok(requirements)) => requirements.into(),
            Some(Err(bad)) => {
                for bad in bad {
                    self.complain(format!("{path}.{}", bad.path), bad.message);
                }
                Box::default()
            }
        }
    }

    fn taints(&mut self, taints: &[TaintSelection]) -> Option<Box<[TaintTerm]>> {
        let before = self.complaints.len();
        self.length("spec.taints", taints.len(), 1, TAINTS_MAX);
        for (index, TaintSelection { key, value, effect }) in taints.iter().enumerate() {
            let path = |field: &str| format!("spec.taints[{index}].{field}");
            if !label_key(key).is_empty() {
                self.complain(path("key"), format!("{key:?} is not the key of a taint"));
            }
            if let Some(value) = value
                && !label_value(value).is_empty()
            {
                self.complain(path("value"), format!("{value:?} is not the value of a taint"));
            }
            if let Some(effect) = effect
                && effect.as_str() != "NoExecute"
            {
                let message = format!("{:?} makes no pod leave: allowed is \"NoExecute\"", effect.as_str());
                self.complain(path("effect"), message);
            }
        }
        let term = |taint: &TaintSelection| TaintTerm {
            key: taint.key.as_str().into(),
            value: taint.value.as_deref().map(Into::into),
        };
        (self.complaints.len() == before).then(|| taints.iter().map(term).collect())
    }

    fn seconds(&mut self, path: &str, seconds: i64) -> i64 {
        if !(0..=SECONDS_MAX).contains(&seconds) {
            self.complain(path, format!("{seconds} is out of range: allowed is 0 to {SECONDS_MAX}"));
        }
        seconds
    }

    fn way(&mut self, way: &EvictionWay, evict: Option<&EvictTerms>) -> Way {
        let deadline = evict.map(|EvictTerms { deadline_seconds, fallback }| {
            let is_deleted = match fallback {
                EvictionFallback::Delete => true,
                EvictionFallback::Hold => false,
                EvictionFallback::Other(word) => {
                    self.complain("spec.evict.fallback", unknown(word, EvictionFallback::KNOWN));
                    false
                }
            };
            (self.seconds("spec.evict.deadlineSeconds", *deadline_seconds), is_deleted)
        });
        if deadline.is_some() && *way != EvictionWay::Evict {
            self.complain("spec.evict", format!("is only for the way Evict, and the way is {way}"));
        }
        match way {
            EvictionWay::Delete => Way::Delete,
            EvictionWay::Evict => Way::Evict { deadline },
            EvictionWay::Hold => Way::Hold,
            EvictionWay::Other(word) => {
                self.complain("spec.way", unknown(word, EvictionWay::KNOWN));
                Way::Hold
            }
        }
    }

    fn timing(&mut self, timing: Option<&EvictionTiming>) -> (Option<i64>, i64) {
        let Some(EvictionTiming { toleration_seconds, delay_seconds, .. }) = timing else {
            return (None, 0);
        };
        let toleration =
            toleration_seconds.map(|seconds| self.seconds("spec.when.tolerationSeconds", seconds));
        let delay = delay_seconds.map_or(0, |seconds| self.seconds("spec.when.delaySeconds", seconds));
        (toleration, delay)
    }

    fn windows(&mut self, windows: Option<&[MaintenanceWindow]>) -> Windows {
        let path = "spec.when.windows";
        let Some(windows) = windows else { return Windows::default() };
        if windows.is_empty() {
            self.complain(path, "must not be empty: leave it out to let pods go at any time");
        }
        self.length(path, windows.len(), 0, WINDOWS_MAX);
        let read = windows.iter().enumerate().filter_map(|(index, window)| {
            let MaintenanceWindow { schedule, duration_seconds, time_zone } = window;
            Window::parse(schedule, *duration_seconds, time_zone.as_deref())
                .map_err(|error| {
                    self.complain(format!("{path}[{index}].{}", error.field()), error.to_string());
                })
                .ok()
        });
        read.collect()
    }

    fn pace(&mut self, pace: Option<&EvictionPace>) -> Pace {
        let Some(EvictionPace { rate, burst, zone_rate, in_flight, zone_in_flight, per_workload }) = pace
        else {
            return Pace::default();
        };
        if burst.is_some() && rate.is_none() {
            self.complain("spec.pace.burst", "needs spec.pace.rate");
        }
        let burst = match burst.map(u32::try_from) {
            None => BURST_USUALLY,
            Some(Ok(burst)) if burst > 0 => burst,
            Some(_) => {
                self.complain("spec.pace.burst", "must be at least 1");
                BURST_USUALLY
            }
        };
        Pace {
            rate: self.rate("spec.pace.rate", *rate, burst),
            zone_rate: self.rate("spec.pace.zoneRate", *zone_rate, BURST_USUALLY),
            in_flight: self.allowance("spec.pace.inFlight", in_flight.as_ref()),
            zone_in_flight: self.allowance("spec.pace.zoneInFlight", zone_in_flight.as_ref()),
            per_workload: self.allowance("spec.pace.perWorkload", per_workload.as_ref()),
        }
    }

    fn rate(&mut self, path: &str, rate: Option<f64>, burst: u32) -> Rate {
        match rate {
            None => Rate::Unlimited,
            Some(rate) if rate.is_finite() && rate > 0.0 => Rate::per_second(rate, burst),
            Some(rate) => {
                self.complain(
                    path,
                    format!("{rate} lets nobody go: it must be above 0; for that there is the way Hold"),
                );
                Rate::Stopped
            }
        }
    }

    fn allowance(&mut self, path: &str, given: Option<&IntOrString>) -> Allowance {
        let read = match given {
            None => return Allowance::All,
            Some(IntOrString::Int(count)) => u32::try_from(*count).ok().map(Allowance::Count),
            Some(IntOrString::String(text)) => {
                let percent = text.strip_suffix('%').and_then(|digits| digits.parse().ok());
                percent.filter(|percent| *percent <= 100).map(Allowance::Percent)
            }
        };
        if let Some(allowance @ (Allowance::Count(1..) | Allowance::Percent(1..))) = read {
            return allowance;
        }
        self.complain(path, "must be a number from 1 on, or a percentage from 1% to 100%");
        Allowance::Count(0)
    }

    fn force(&mut self, after: &EvictionAftermath) -> Force {
        let EvictionAftermath { force_delete_after_seconds, proofs, accept_risk } = after;
        let after_seconds = self.seconds("spec.after.forceDeleteAfterSeconds", *force_delete_after_seconds);
        let proofs = proofs.as_deref().unwrap_or_default();
        self.length("spec.after.proofs", proofs.len(), 0, PROOFS_MAX);
        let accepts_risk = *accept_risk == Some(true);
        match (proofs.is_empty(), accepts_risk) {
            (true, false) => self.complain(
                "spec.after.proofs",
                "there must be one at least, or acceptRisk must be true: that a pod has not ended in time does not show that it does \
                 not run",
            ),
            (false, true) => self.complain(
                "spec.after.acceptRisk",
                "asks for no proof, and spec.after.proofs does: only one of them is allowed",
            ),
            _ => {}
        }
        let read = proofs.iter().enumerate().filter_map(|(index, proof)| {
            let path = format!("spec.after.proofs[{index}]");
            match (&proof.kind, &proof.annotation) {
                (ProofType::OutOfServiceTaint, None) => Some(Proof::OutOfServiceTaint),
                (ProofType::ProviderShutdownTaint, None) => Some(Proof::ProviderShutdownTaint),
                (ProofType::NodeGone, None) => Some(Proof::NodeGone),
                (ProofType::NodeAnnotation, Some(annotation)) => {
                    self.annotation(&format!("{path}.annotation"), annotation);
                    let AnnotationMatch { key, value } = annotation;
                    let value = value.as_deref().map(Into::into);
                    Some(Proof::NodeAnnotation { key: key.as_str().into(), value })
                }
                (ProofType::NodeAnnotation, None) => {
                    self.complain(format!("{path}.annotation"), "is needed for NodeAnnotation");
                    None
                }
                (ProofType::Other(word), _) => {
                    self.complain(format!("{path}.type"), unknown(word, ProofType::KNOWN));
                    None
                }
                (kind, Some(_)) => {
                    self.complain(
                        format!("{path}.annotation"),
                        format!("is only for NodeAnnotation, and this is {kind}"),
                    );
                    None
                }
            }
        });
        let proofs = read.collect();
        Force { after_seconds, proofs, accepts_risk }
    }
}

fn unknown(word: &str, known: &[&str]) -> String {
    let known: Vec<String> = known.iter().map(|word| format!("{word:?}")).collect();
    format!("{word:?} is not known: allowed are {}", known.join(", "))
}

#[cfg(test)]
mod tests;
