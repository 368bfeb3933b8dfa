//! What to delete, and in which order.
//!
//! Owns the order: who is asked about writes goes first, so that nothing waits for a webhook that is gone; then what runs,
//! so that nothing is made anew; then what it ran with. Objects of users are never in it: PlacementDecisions and all else
//! that the controllers wrote stay as they are. The definitions are in it only where that was asked for, because every
//! object of theirs goes with them.

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
        }
    }
    Ok(stubs)
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
    fn what_holds_other_things_goes_only_when_asked_for() {
        let all = kinds(Extent { definitions: true, namespace: true });
        assert_eq!(all[all.len() - 2..], ["CustomResourceDefinition", "Namespace"]);
        let usual = kinds(Extent::default());
        assert!(!usual.iter().any(|kind| kind == "Namespace" || kind == "CustomResourceDefinition"));
    }
}
