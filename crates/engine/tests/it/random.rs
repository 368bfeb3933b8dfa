//! Random small worlds, so small that everything meets everything: a handful of names, labels, taints and times.

use std::fmt;

use berth_api::names::label;
use berth_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision};
use berth_engine::model::ObjectKey;
use berth_engine::{Delta, PlacementKey};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::fixtures::{Fleet, Request, bare, decision, placement, score};

/// Deltas that print as what they say, not as what they are made of.
#[derive(Clone)]
pub(crate) struct Story(pub(crate) Vec<Delta>);

impl fmt::Debug for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|delta| write!(f, "\n  {}", line(delta)))
    }
}

/// A delta in one line.
pub(crate) fn line(delta: &Delta) -> String {
    let json = match delta {
        Delta::Cluster(object) => serde_json::to_value(object),
        Delta::Set(object) => serde_json::to_value(object),
        Delta::Binding(object) => serde_json::to_value(object),
        Delta::Placement(object) => serde_json::to_value(object),
        Delta::Decision(object) => serde_json::to_value(object),
        Delta::Score(object) => serde_json::to_value(object),
        gone => return format!("{gone:?}"),
    };
    let mut json = json.unwrap();
    json.as_object_mut().unwrap().remove("apiVersion");
    json.to_string()
}

/// Names that sort differently as text and as numbers, given in no order.
pub(crate) const CLUSTERS: [&str; 8] = ["m", "c2", "c10", "a", "z", "c1", "b-east", "b"];
pub(crate) const SETS: [&str; 5] = ["blue", "green", "prod", "all", "odd"];
pub(crate) const PLACEMENTS: [(&str, &str); 4] = [("n1", "p"), ("n1", "q"), ("n2", "p"), ("n2", "r")];
/// Moments that matter, in seconds: taints and scores begin and end on the same grid.
pub(crate) const TIMES: [i64; 7] = [-60, -30, -10, 0, 10, 30, 60];

/// Expressions with a meaning that is easily said in other words; see `naive`.
pub(crate) const EXPRESSIONS: [&str; 3] = [
    r#"managedCluster.metadata.labels["env"] == "prod""#,
    r#"managedCluster.scores("demo").exists(s, s.name == "cpu" && s.value > 0)"#,
    r#"managedCluster.status.clusterClaims.exists(c, c.name == "platform" && c.value == "AWS")"#,
];

pub(crate) fn placement_keys() -> Vec<PlacementKey> {
    PLACEMENTS.iter().map(|(namespace, name)| PlacementKey::new(namespace, name)).collect()
}

pub(crate) fn any_time() -> impl Strategy<Value = i64> {
    select(TIMES.to_vec())
}

fn maybe(values: &'static [&'static str]) -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![1 => Just(None), 3 => select(values.to_vec()).prop_map(Some)]
}

fn any_taint() -> impl Strategy<Value = (String, Option<i64>)> {
    let effects = prop_oneof![
        4 => Just("NoSelect"), 3 => Just("NoSelectIfNew"), 3 => Just("PreferNoSelect"), 1 => Just("Strange")
    ];
    (select(vec!["gpu", "gpu=a", "down", "down=a"]), effects, prop::option::weighted(0.9, any_time()))
        .prop_map(|(taint, effect, added)| (format!("{taint}:{effect}"), added))
}

pub(crate) fn any_cluster() -> impl Strategy<Value = ManagedCluster> {
    let labels = (maybe(&["blue", "green"]), maybe(&["prod", "test"]), maybe(&["r1", "r2", "r3"]));
    let claims =
        prop::collection::vec((select(vec!["platform", "rack"]), select(vec!["AWS", "GCP", "1"])), 0..3);
    let taints = prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(any_taint(), 1..3)];
    let resources = prop::option::weighted(0.7, (0..4_i32, 0..4_i32));
    (select(CLUSTERS.to_vec()), labels, claims, taints, resources, prop::bool::weighted(0.1), any::<bool>())
        .prop_map(|(name, (set, env, zone), claims, taints, resources, deleting, available)| {
            let mut fleet = bare().cluster(name);
            for (key, value) in [(label::CLUSTER_SET, set), ("env", env), ("zone", zone)] {
                fleet = value.map(|value| fleet.clone().label(key, value)).unwrap_or(fleet);
            }
            for (claim, value) in claims {
                fleet = fleet.claim(claim, value);
            }
            for (taint, added) in taints {
                fleet = match added {
                    Some(added) => fleet.taint(&taint, added),
                    None => fleet.timeless_taint(&taint),
                };
            }
            if let Some((cpu, memory)) = resources {
                fleet = fleet.resources(&cpu.to_string(), &format!("{memory}Gi"));
            }
            if deleting {
                fleet = fleet.deleting();
            }
            let fleet = fleet.available(if available { "True" } else { "False" });
            only(fleet, |delta| if let Delta::Cluster(cluster) = delta { Some(*cluster) } else { None })
        })
}

fn only<T>(fleet: Fleet, take: impl Fn(Delta) -> Option<T>) -> T {
    fleet.objects.into_iter().find_map(take).expect("the fleet was made of it")
}

/// One of the sets; its selector is that of its name, or now and then another.
pub(crate) fn any_set() -> impl Strategy<Value = ManagedClusterSet> {
    let selector = |name: &str| match name {
        "prod" => json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "prod"}}}),
        "all" => json!({"selectorType": "LabelSelector", "labelSelector": {}}),
        "odd" => json!({"selectorType": "LabelSelector"}),
        _ => json!({"selectorType": "ExclusiveClusterSetLabel"}),
    };
    let other = vec![
        json!({"selectorType": "Strange"}),
        json!({"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "env", "operator": "Is"}]}}),
        json!({"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}),
    ];
    (select(SETS.to_vec()), prop::option::weighted(0.15, select(other))).prop_map(move |(name, other)| {
        let fleet = bare().set_by(name, other.unwrap_or_else(|| selector(name)));
        only(fleet, |delta| if let Delta::Set(set) = delta { Some(*set) } else { None })
    })
}

pub(crate) fn any_binding() -> impl Strategy<Value = ManagedClusterSetBinding> {
    (select(SETS.to_vec()), select(vec!["n1", "n2"]), prop::bool::weighted(0.1)).prop_map(
        |(set, namespace, wrong)| {
            let fleet = bare().bind(set, namespace);
            let mut binding =
                only(fleet, |delta| if let Delta::Binding(binding) = delta { Some(*binding) } else { None });
            if wrong {
                binding.spec = None;
            }
            binding
        },
    )
}

fn any_requirement() -> impl Strategy<Value = Value> {
    let keyed = prop_oneof![
        (Just("env"), subsequence(vec!["prod", "test", "stage"], 1..3)),
        (Just("zone"), subsequence(vec!["r1", "r2", "r3"], 1..3)),
        (Just("platform"), subsequence(vec!["AWS", "GCP"], 1..2)),
    ];
    (keyed, select(vec!["In", "NotIn", "Exists", "DoesNotExist"])).prop_map(|((key, values), operator)| {
        let values = if operator.ends_with("In") { values } else { Vec::new() };
        json!({"key": key, "operator": operator, "values": values})
    })
}

fn any_selector() -> impl Strategy<Value = Value> {
    let expressions = || prop::collection::vec(any_requirement(), 0..2);
    let cel = prop::option::weighted(0.3, subsequence(EXPRESSIONS.to_vec(), 1..2));
    let names = prop::option::weighted(0.15, subsequence(CLUSTERS.to_vec(), 1..6));
    (expressions(), expressions(), cel, names).prop_map(|(labels, claims, cel, names)| {
        let mut selector = json!({
            "labelSelector": {"matchExpressions": labels},
            "claimSelector": {"matchExpressions": claims},
        });
        if let Some(cel) = cel {
            selector["celSelector"] = json!({ "celExpressions": cel });
        }
        if let Some(names) = names {
            selector["clusterNames"] = json!(names);
        }
        selector
    })
}

#[derive(Clone, Debug)]
pub(crate) struct AnyToleration {
    key: &'static str,
    operator: &'static str,
    value: &'static str,
    effect: Option<&'static str>,
    seconds: Option<i64>,
}

impl AnyToleration {
    pub(crate) fn add_to(&self, request: Request) -> Request {
        let request = request.tolerate(self.key, self.operator, self.value);
        let request = if let Some(effect) = self.effect { request.effect(effect) } else { request };
        if let Some(seconds) = self.seconds { request.seconds(seconds) } else { request }
    }
}

pub(crate) fn any_toleration() -> impl Strategy<Value = AnyToleration> {
    let what = select(vec![
        ("", "Exists", ""),
        ("gpu", "Exists", ""),
        ("down", "Exists", ""),
        ("gpu", "Equal", "a"),
        ("gpu", "", ""),
        ("down", "Equal", "b"),
    ]);
    let effect = prop::option::weighted(0.4, select(vec!["NoSelect", "NoSelectIfNew", "PreferNoSelect"]));
    let seconds = prop::option::weighted(0.6, select(vec![0, 10, 20, 30, 40, 60, 90, -10, i64::MAX]));
    (what, effect, seconds).prop_map(|((key, operator, value), effect, seconds)| AnyToleration {
        key,
        operator,
        value,
        effect,
        seconds,
    })
}

fn any_policy() -> impl Strategy<Value = Option<(&'static str, Vec<(&'static str, i32)>)>> {
    let names = subsequence(
        vec![
            "Balance",
            "Steady",
            "ResourceAllocatableCPU",
            "ResourceAllocatableMemory",
            "AddOn/demo/cpu",
            "AddOn/demo/lat",
            "AddOn/other/cpu",
            "PreferNoSelect",
            "Spread",
        ],
        0..4,
    );
    let weights =
        prop::collection::vec(prop_oneof![4 => 1..4_i32, 1 => Just(0), 1 => -3..0_i32, 1 => Just(10)], 9);
    let policy = (select(vec!["Additive", "Exact", ""]), names, weights)
        .prop_map(|(mode, names, weights)| Some((mode, names.into_iter().zip(weights).collect())));
    prop_oneof![1 => Just(None), 1 => policy]
}

/// How much of what a placement can ask for is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// Everything but spreading and anti-affinity.
    Plain,
    /// Everything.
    Full,
}

pub(crate) fn any_request(breadth: Breadth) -> impl Strategy<Value = Request> {
    let number = prop::option::weighted(0.6, 0..6_i32);
    let sets = prop_oneof![2 => Just(Vec::new()), 1 => subsequence(SETS.to_vec(), 1..3)];
    let predicates = prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec(any_selector(), 1..3)];
    let tolerations = prop::collection::vec(any_toleration(), 0..3);
    let sizes = prop::option::weighted(
        0.4,
        prop_oneof![
            (1..4_i32).prop_map(IntOrString::Int),
            select(vec!["25%", "50%", "100%", "1%"]).prop_map(|text| IntOrString::String(text.into())),
        ],
    );
    let groups = prop::collection::vec((select(vec!["canary", "rest"]), any_requirement()), 0..3);
    let topology = || select(vec![("zone", "Label"), ("env", "Label"), ("platform", "Claim")]);
    let term = (topology(), 1..3_i32, select(vec!["DoNotSchedule", "ScheduleAnyway"]));
    let spread = prop_oneof![1 => Just(Vec::new()), 2 => prop::collection::vec(term, 1..3)];
    let apart = prop::option::weighted(0.2, topology());
    let rarely = || prop::bool::weighted(0.05);
    let odds = (select(vec!["ClusterName", "Score"]), prop::bool::weighted(0.3), rarely(), rarely());
    let parts = (number, sets, predicates, tolerations, any_policy(), sizes, groups, spread, apart, odds);
    (select(PLACEMENTS.to_vec()), parts).prop_map(
        move |(
            (namespace, name),
            (number, sets, predicates, tolerations, policy, size, groups, spread, apart, odds),
        )| {
            let mut request = placement(namespace, name);
            if let Some(number) = number {
                request = request.number(number);
            }
            if !sets.is_empty() {
                request = request.sets(&sets);
            }
            request = predicates.into_iter().fold(request, Request::predicate);
            request = tolerations.iter().fold(request, |request, toleration| toleration.add_to(request));
            if let Some((mode, weights)) = policy {
                request = request.policy(mode, &weights);
            }
            if let Some(size) = size {
                request = request.group_size(size);
            }
            for (name, requirement) in groups {
                let facet = if requirement["key"] == "platform" { "claimSelector" } else { "labelSelector" };
                request = request.group(name, json!({facet: {"matchExpressions": [requirement]}}));
            }
            if breadth == Breadth::Full {
                for ((key, kind), skew, unsatisfiable) in spread {
                    request = request.spread(key, kind, skew, unsatisfiable);
                }
                if let Some((key, kind)) = apart {
                    request = request.apart(key, kind);
                }
            }
            let (order, detailed, disabled, wrong) = odds;
            request = request.sort_by(order);
            if wrong {
                request = request.number(-1);
            }
            if detailed {
                request = request.annotate(berth_engine::select::DETAILS_ANNOTATION, "score,available");
            }
            if disabled {
                request = request.annotate(berth_api::names::annotation::SCHEDULING_DISABLED, "true");
            }
            request
        },
    )
}

fn any_score() -> impl Strategy<Value = Delta> {
    let values = (-100..=100_i32, -100..=100_i32);
    let until = prop::option::weighted(0.6, any_time());
    (select(CLUSTERS.to_vec()), select(vec!["demo", "other"]), values, until).prop_map(
        |(cluster, resource, (cpu, latency), until)| {
            Delta::Score(Box::new(score(cluster, resource, &[("cpu", cpu), ("lat", latency)], until)))
        },
    )
}

/// A slice written by somebody: of one of our placements, of one that is not there, or of nobody.
pub(crate) fn any_decision() -> impl Strategy<Value = PlacementDecision> {
    let owners: Vec<(&str, &str)> =
        PLACEMENTS.into_iter().chain([("n1", "ghost"), ("n2", "ghost")]).collect();
    let clusters = prop::collection::vec(
        prop_oneof![9 => select(CLUSTERS.to_vec()), 1 => Just("no-such-cluster")],
        0..5,
    );
    (select(owners), 1..3_usize, clusters, prop::bool::weighted(0.1)).prop_map(
        |((namespace, name), number, clusters, nobody)| {
            let mut object = decision(&PlacementKey::new(namespace, name), number, &clusters);
            if nobody {
                object.metadata.labels = None;
            }
            object
        },
    )
}

/// Any change but those of PlacementDecisions.
pub(crate) fn any_fact(breadth: Breadth) -> impl Strategy<Value = Delta> {
    prop_oneof![
        10 => any_cluster().prop_map(|cluster| Delta::Cluster(Box::new(cluster))),
        1 => select(CLUSTERS.to_vec()).prop_map(|name| Delta::ClusterGone(name.into())),
        3 => any_set().prop_map(|set| Delta::Set(Box::new(set))),
        1 => select(SETS.to_vec()).prop_map(|name| Delta::SetGone(name.into())),
        4 => any_binding().prop_map(|binding| Delta::Binding(Box::new(binding))),
        1 => (select(vec!["n1", "n2"]), select(SETS.to_vec()))
            .prop_map(|(namespace, name)| Delta::BindingGone(ObjectKey::new(namespace, name))),
        6 => any_request(breadth).prop_map(|request| Delta::Placement(Box::new(request.0))),
        1 => select(placement_keys()).prop_map(Delta::PlacementGone),
        4 => any_score(),
        1 => (select(CLUSTERS.to_vec()), select(vec!["demo", "other"]))
            .prop_map(|(cluster, name)| Delta::ScoreGone(ObjectKey::new(cluster, name))),
    ]
}

pub(crate) fn any_delta(breadth: Breadth) -> impl Strategy<Value = Delta> {
    prop_oneof![
        12 => any_fact(breadth),
        2 => any_decision().prop_map(|object| Delta::Decision(Box::new(object))),
        1 => any_decision().prop_map(|object| Delta::DecisionGone(crate::world::key(&object.metadata))),
    ]
}

/// A world that has been populated: the sets `all` and `blue` bound in both namespaces, and more at random.
pub(crate) fn any_world(breadth: Breadth) -> impl Strategy<Value = Story> {
    let ground = bare()
        .set_of("all", json!({}))
        .set("blue")
        .bind("all", "n1")
        .bind("all", "n2")
        .bind("blue", "n1")
        .objects;
    let clusters = prop::collection::vec(any_cluster(), 2..10);
    let placements = prop::collection::vec(any_request(breadth), 1..5);
    let scores = prop::collection::vec(any_score(), 0..6);
    let decisions = prop::collection::vec(any_decision(), 0..4);
    let more = prop::collection::vec(any_delta(breadth), 0..4);
    (clusters, placements, scores, decisions, more).prop_map(
        move |(clusters, placements, scores, decisions, more)| {
            let mut deltas = ground.clone();
            deltas.extend(clusters.into_iter().map(|cluster| Delta::Cluster(Box::new(cluster))));
            deltas.extend(placements.into_iter().map(|request| Delta::Placement(Box::new(request.0))));
            deltas.extend(scores);
            deltas.extend(decisions.into_iter().map(|object| Delta::Decision(Box::new(object))));
            deltas.extend(more);
            Story(deltas)
        },
    )
}

/// What can happen in a history.
#[derive(Clone)]
pub(crate) enum Step {
    /// Something changes.
    Change(Delta),
    /// It is now this many seconds after the start; time may also go back.
    Clock(i64),
    /// A placement is decided.
    Decide(PlacementKey),
    /// A placement is decided and the decision written.
    Settle(PlacementKey),
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(delta) => f.write_str(&line(delta)),
            Self::Clock(seconds) => write!(f, "it is {seconds}s"),
            Self::Decide(key) => write!(f, "decide {key}"),
            Self::Settle(key) => write!(f, "settle {key}"),
        }
    }
}

pub(crate) fn any_step(breadth: Breadth) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any_delta(breadth).prop_map(Step::Change),
        1 => any_time().prop_map(Step::Clock),
        3 => select(placement_keys()).prop_map(Step::Decide),
        2 => select(placement_keys()).prop_map(Step::Settle),
    ]
}
