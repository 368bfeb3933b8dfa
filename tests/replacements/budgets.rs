//! How many at once: members, fault domains, and when too much is affected for anybody to go.

use berth_tests::caller::{condition, text};
use serde_json::json;

use crate::{
    ground::grounds,
    scene::{Scene, by_hand, no_schedule, taints, with},
    set::Set,
};

grounds! {
    /// Two at once and never a third, although three are due and the first two wait for somebody.
    beside async fn no_more_members_go_at_once_than_the_budget_says(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d", "e", "f", "g"]).await;
        scene.set(Set::of("db", 4)).await;
        let spec = json!({
            "replacements": {"maxConcurrentReplacements": 2, "maxFaultDomainsWithTaintedProcessGroups": "100%"},
            "gates": by_hand(),
        });
        scene.policy("p", with(taints(&[("*", 0)], 0), spec)).await;
        let before = scene.uids(&["db-0", "db-1", "db-2", "db-3"]).await;
        for pod in ["db-0", "db-1", "db-2"] {
            scene.taint(&scene.home(pod).await, &[no_schedule("example.org/broken")]).await;
        }
        let policy = scene.policy_is("p", "full", |policy| {
            policy["status"]["counts"]["inFlight"] == 2 && policy["status"]["counts"]["blocked"] == 1
        })
        .await;
        assert_eq!(condition(&policy, "BudgetExhausted")["status"], "True", "{policy}");
        for pod in ["db-0", "db-1", "db-2"] {
            scene.release(pod).await;
        }
        for pod in ["db-0", "db-1", "db-2"] {
            scene.is_replaced(pod, &before[pod]).await;
        }
        scene.stays("db-3", &before["db-3"]).await;
        scene.caught_up().await;
        assert_eq!(scene.chronicle.most(|entry| Some(entry.uid().to_owned())), 2);
    }

    /// By fault domains: members in the rack that is being emptied join, others wait for it.
    beside async fn members_of_one_fault_domain_go_together(scene: &Scene) {
        for (node, rack) in [("a", "one"), ("b", "one"), ("c", "two"), ("d", "two")] {
            scene.node_in(node, rack).await;
        }
        scene.set(Set::of("db", 4)).await;
        for node in ["e", "f", "g", "h"] {
            scene.node_in(node, "spare").await;
        }
        let spec = json!({
            "replacements": {
                "faultDomainBasedReplacements": true, "maxConcurrentReplacements": 1,
                "maxFaultDomainsWithTaintedProcessGroups": "100%",
            },
            "budget": {"faultDomainKey": "example.org/rack"},
            "gates": by_hand(),
        });
        scene.policy("p", with(taints(&[("*", 0)], 0), spec)).await;
        let pods = ["db-0", "db-1", "db-2", "db-3"];
        let before = scene.uids(&pods).await;
        let mut racks = Vec::new();
        for pod in pods {
            let home = scene.home(pod).await;
            racks.push(if ["a", "b"].contains(&home.as_str()) { "one" } else { "two" });
            scene.taint(&home, &[no_schedule("example.org/broken")]).await;
        }
        // The first that is due begins with its rack; the other of that rack joins, and those of the other one wait.
        let policy = scene.policy_is("p", "full", |policy| {
            policy["status"]["counts"]["inFlight"] == 2 && policy["status"]["counts"]["blocked"] == 2
        })
        .await;
        assert_eq!(condition(&policy, "BudgetExhausted")["status"], "True", "{policy}");
        for pod in pods {
            scene.release(pod).await;
        }
        for pod in pods {
            scene.is_replaced(pod, &before[pod]).await;
        }
        scene.caught_up().await;
        scene.chronicle.at_most_domains_at_once(1);
        assert_eq!(scene.chronicle.most(|entry| Some(entry.uid().to_owned())), 2, "two of a rack go together");
        assert_eq!(racks.iter().filter(|rack| **rack == "one").count(), 2, "{racks:?}");
    }

    /// A tenth of few domains is none, so one may be affected in any case. With two the breaker opens, says so, and nobody goes;
    /// a minimum of two lets both go, one after the other.
    ///
    /// Upstream: replacement-defects "B4".
    beside async fn the_breaker_opens_at_its_share_and_never_below_its_minimum(scene: &Scene) {
        scene.nodes(&["a", "b", "c", "d", "e", "f", "g"]).await;
        scene.set(Set::of("db", 5)).await;
        let breaker = |minimum: i32| json!({"budget": {"breaker": {"maxAffectedFaultDomains": "10%", "minimum": minimum}}});
        let options = taints(&[("*", 0)], 0);
        let spec = with(options.clone(), breaker(1));
        // Shut, so that nobody goes before both are tainted.
        scene.policy("p", with(spec.clone(), json!({"pauseRequests": ["until both are tainted"]}))).await;
        let before = scene.uids(&["db-0", "db-1", "db-2"]).await;
        for pod in ["db-0", "db-1"] {
            scene.taint(&scene.home(pod).await, &[no_schedule("example.org/broken")]).await;
        }
        scene.policy_is("p", "marking both", |policy| policy["status"]["counts"]["replacing"] == 2).await;
        scene.policy_says("p", "Paused", "True").await;
        scene.policy("p", with(spec, json!({"pauseRequests": []}))).await;
        let open = scene.policy_says("p", "BreakerOpen", "True").await;
        assert!(text(&open, "/message").contains("2 of 5 fault domains are affected, and at most 1 may be"), "{open}");
        for pod in ["db-0", "db-1"] {
            scene.held("p", pod, "fault domains are affected").await;
            scene.stays(pod, &before[pod]).await;
        }
        scene.policy("p", with(options, breaker(2))).await;
        scene.policy_says("p", "BreakerOpen", "False").await;
        for pod in ["db-0", "db-1"] {
            scene.is_replaced(pod, &before[pod]).await;
        }
        scene.stays("db-2", &before["db-2"]).await;
        scene.caught_up().await;
        scene.chronicle.at_most_at_once(1);
    }
}
