//! What holds a pod besides its own affairs: stops, breakers and bounds, as the status of its policy tells them.
//!
//! Only the controller knows how many are on their way out and which breaker is open. It tells policies, by the reasons that
//! [`Keep`](berth_engine::evict::policy::Keep) has words for, so that is where they are read.

use berth_api::eviction_policy::status::{EvictionHold, EvictionPolicyStatus};

/// What the status of a policy says that holds one of its pods which is due: `pod` by namespace and name, on a node of a `zone`. What
/// a person has said is not in it: that is read where they said it.
pub(super) fn sentences(
    policy: &str,
    status: Option<&EvictionPolicyStatus>,
    pod: &str,
    zone: &str,
) -> Vec<String> {
    let holds = status.and_then(|status| status.holds.as_deref()).unwrap_or_default();
    let ours = holds.iter().filter(|hold| concerns(hold, pod, zone));
    ours.map(|hold| {
        let EvictionHold { reason, message, .. } = hold;
        format!("It is held ({reason}), as the status of policy {policy} tells: {message}.")
    })
    .collect()
}

/// Whether what holds some pods of a policy holds this one as well.
fn concerns(hold: &EvictionHold, pod: &str, zone: &str) -> bool {
    match &*hold.reason {
        "AllDown" | "Unseen" | "InFlight" => true,
        "Breaker" | "ZoneInFlight" => hold.zone.as_deref() == Some(zone),
        // It is told of one pod, and others have other owners.
        "PerWorkload" => hold.example == pod,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(reason: &str, zone: Option<&str>) -> EvictionHold {
        EvictionHold {
            reason: reason.to_owned(),
            zone: zone.map(str::to_owned),
            count: 1,
            example: "n/other".to_owned(),
            message: "so it is".to_owned(),
            ..EvictionHold::default()
        }
    }

    #[test]
    fn a_pod_is_told_what_holds_its_zone_and_what_holds_everybody_and_nothing_of_others() {
        let holds = vec![
            hold("Breaker", Some("east")),
            hold("Breaker", Some("west")),
            hold("Frozen", None),
            hold("Gate", None),
            hold("PerWorkload", None),
            hold("Unseen", None),
            hold("ZoneInFlight", Some("east")),
        ];
        let status = EvictionPolicyStatus { holds: Some(holds), ..EvictionPolicyStatus::default() };
        assert_eq!(
            sentences("p", Some(&status), "n/p", "west"),
            [
                "It is held (Breaker), as the status of policy p tells: so it is.",
                "It is held (Unseen), as the status of policy p tells: so it is.",
            ]
        );
        let [told] = &sentences("p", Some(&status), "n/other", "south")[..1] else { panic!() };
        assert!(told.contains("(PerWorkload)"), "{told}");
        assert!(sentences("p", None, "n/p", "west").is_empty());
    }

    /// A word that no pod is held for would never be told.
    #[test]
    fn the_reasons_that_are_looked_for_are_those_there_are() {
        use berth_engine::evict::policy::Keep;
        for reason in ["AllDown", "Unseen", "InFlight", "Breaker", "ZoneInFlight", "PerWorkload"] {
            assert!(Keep::WORDS.contains(&reason), "{reason}");
        }
    }
}
