//! What to delete, and in which order.
//!
//! Owns the order: who is asked about writes goes first, so that nothing waits for a webhook that is gone; then what runs,
//! so that nothing is made anew; then what it ran with. Objects of users are never in it: PlacementDecisions and all else
//! that the controllers wrote stay as they are. The definitions are in it only where that was asked for, because every
//! object of theirs goes with them.

use berth_control::rights;
use berth_control::world::FREEZE;
use serde_json::Value;

use super::Installation;
use super::object::Identity;
use super::parts::Part;
use super::rbac::lease;

/// How much is taken away.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    /// The definitions too, and with them all objects of their kinds.
    pub(crate) definitions: bool,
    /// The namespace too, and whatever else is in it.
    pub(crate) namespace: bool,
}

/// The objects to delete, first to go first, with no more than their names.
pub(crate) fn removal(installation: &Installation, extent: Extent) -> serde_json::Result<Vec<Value>> {
    let installation = Installation { has_definitions: true, ..installation.clone() };
    let mut stubs = Vec::new();
    for part in Part::ALL.into_iter().rev() {
        let is_wanted = match part {
            Part::Definitions => extent.definitions,
            Part::Namespace => extent.namespace,
            _ => true,
        };
        if is_wanted {
            let mut objects = part.objects(&installation)?;
            if part == Part::Rights {
                // Accounts go last: what still runs for a moment is not to be cut off before its end.
                objects.reverse();
            }
            stubs.extend(objects.iter().map(|object| Identity::of(object).stub()));
        }
        if part == Part::Rights {
            // Made by whoever leads, who could make it again as long as it had an account.
            stubs.push(
                Identity {
                    api_version: "coordination.k8s.io/v1".to_owned(),
                    kind: "Lease".to_owned(),
                    namespace: installation.namespace.clone(),
                    name: lease(),
                }
                .stub(),
            );
            // After the rights: whoever still runs for a moment must not hear that it may go on.
            if heeds_freezes(&installation) {
                stubs.push(freeze(&installation).stub());
            }
        }
    }
    Ok(stubs)
}

/// Whether somebody is installed to whom `berth freeze evictions` speaks.
pub(crate) fn heeds_freezes(installation: &Installation) -> bool {
    let is_it = |right: &rights::Right| right.names.iter().any(|name| name == FREEZE);
    installation.controllers.enabled().any(|name| rights::of(name).iter().any(is_it))
}

/// What `berth freeze evictions` makes. It means something to the controllers alone, and the next ones are not to find it.
fn freeze(installation: &Installation) -> Identity {
    Identity {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: installation.namespace.clone(),
        name: FREEZE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(extent: Extent) -> Vec<String> {
        let stubs = removal(&Installation::default(), extent).unwrap();
        let mut kinds: Vec<String> =
            stubs.iter().map(|stub| stub["kind"].as_str().unwrap().to_owned()).collect();
        kinds.dedup();
        kinds
    }

    #[test]
    fn webhooks_go_first_and_accounts_with_what_they_could_make_again_last() {
        let kinds = kinds(Extent::default());
        assert_eq!(
            kinds[..4],
            [
                "MutatingWebhookConfiguration",
                "ValidatingWebhookConfiguration",
                "Deployment",
                "PodDisruptionBudget"
            ]
        );
        assert_eq!(kinds[kinds.len() - 2..], ["ServiceAccount", "Lease"]);
    }

    #[test]
    fn a_freeze_goes_after_the_rights_of_those_who_heed_it() {
        for controller in ["taint-eviction-controller", "replacement-controller"] {
            let installation = Installation {
                controllers: format!("*,{controller}").parse().unwrap(),
                ..Installation::default()
            };
            let stubs = removal(&installation, Extent { definitions: false, namespace: true }).unwrap();
            let last: Vec<String> =
                stubs[stubs.len() - 3..].iter().map(|stub| Identity::of(stub).to_string()).collect();
            let freeze = "ConfigMap berth-system/berth-freeze-evictions";
            assert_eq!(last, ["Lease berth-system/berth", freeze, "Namespace berth-system"], "{controller}");
        }
        assert!(
            !kinds(Extent::default()).contains(&"ConfigMap".to_owned()),
            "nobody there would have heard it"
        );
    }

    #[test]
    fn what_holds_other_things_goes_only_when_asked_for() {
        let all = kinds(Extent { definitions: true, namespace: true });
        assert_eq!(all[all.len() - 2..], ["CustomResourceDefinition", "Namespace"]);
        let usual = kinds(Extent::default());
        assert!(!usual.iter().any(|kind| kind == "Namespace" || kind == "CustomResourceDefinition"));
    }
}
