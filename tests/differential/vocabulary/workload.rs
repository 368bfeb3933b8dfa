//! Bodies of the kinds that make pods, and of what they make them from.

use serde_json::{Value, json};

use super::{maybe, words};
use berth_tests::random::Random;

pub(super) fn containers(random: &mut Random) -> Value {
    Value::from(
        (0..=random.below(2))
            .map(|n| {
                let mut container = json!({"name": format!("c{n}"), "image": *random.pick(&["busybox", "busybox:1", "r.io/x@sha256:aa"])});
                maybe(random, 40, &mut container, "env", |r| json!([{"name": "A", "value": words(r)}, {"name": "B", "value": "b"}]));
                maybe(random, 40, &mut container, "ports", |r| json!([{"containerPort": 80 + r.below(3)}, {"containerPort": 443, "name": "tls"}]));
                maybe(random, 30, &mut container, "resources", |r| json!({"requests": {"cpu": *r.pick(&["1", "100m", "0.5"]), "memory": "64Mi"}}));
                maybe(random, 20, &mut container, "command", |r| json!(["sh", "-c", words(r)]));
                container
            })
            .collect::<Vec<_>>(),
    )
}

pub(super) fn template(random: &mut Random) -> Value {
    json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers(random)}})
}

pub(super) fn deployment(random: &mut Random) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "x"}}, "template": template(random)});
    maybe(random, 50, &mut spec, "replicas", |r| json!(r.below(4)));
    maybe(random, 20, &mut spec, "strategy", |r| {
        if r.chance(50) { json!({"type": "Recreate"}) } else { json!({"rollingUpdate": {"maxSurge": "50%"}}) }
    });
    json!({"spec": spec})
}

pub(super) fn deployment_status(random: &mut Random) -> Value {
    json!({"replicas": random.below(4), "readyReplicas": 0, "observedGeneration": 1})
}

pub(super) fn stateful_set(random: &mut Random) -> Value {
    let mut spec =
        json!({"selector": {"matchLabels": {"app": "x"}}, "serviceName": "s", "template": template(random)});
    maybe(random, 50, &mut spec, "replicas", |r| json!(r.below(4)));
    maybe(
        random,
        30,
        &mut spec,
        "volumeClaimTemplates",
        |_| json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]),
    );
    json!({"spec": spec})
}

pub(super) fn replica_set(random: &mut Random) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "x"}}, "template": template(random)});
    maybe(random, 50, &mut spec, "replicas", |r| json!(r.below(4)));
    maybe(random, 20, &mut spec, "minReadySeconds", |r| json!(r.below(4)));
    json!({"spec": spec})
}

pub(super) fn replica_set_status(random: &mut Random) -> Value {
    json!({"replicas": random.below(4), "readyReplicas": random.below(3)})
}

pub(super) fn daemon_set(random: &mut Random) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "x"}}, "template": template(random)});
    maybe(random, 20, &mut spec, "updateStrategy", |r| {
        if r.chance(50) {
            json!({"type": "OnDelete"})
        } else {
            json!({"rollingUpdate": {"maxUnavailable": 2}})
        }
    });
    maybe(random, 20, &mut spec, "minReadySeconds", |r| json!(r.below(4)));
    json!({"spec": spec})
}

pub(super) fn disruption_budget(random: &mut Random) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "x"}}});
    let bound = *random.pick(&["minAvailable", "maxUnavailable"]);
    maybe(random, 80, &mut spec, bound, |r| if r.chance(50) { json!(r.below(3)) } else { json!("50%") });
    json!({"spec": spec})
}
