//! Small documents in the shapes of every age of the API.

use berth_api::{
    Object, PrioritizerMode, ScoreCoordinateType, TaintEffect, TolerationOperator, TopologyKeyType,
};

use crate::{accepted::round_trip, shared::yaml};

fn read(text: &str) -> Object {
    round_trip(&yaml(text)).unwrap()
}

#[test]
fn a_cluster_with_taints_of_every_effect() {
    let object = read(
        r#"
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: harbour-1
  labels:
    cluster.open-cluster-management.io/clusterset: north
spec:
  hubAcceptsClient: true
  managedClusterClientConfigs:
    - url: https://harbour-1.example:6443
      caBundle: Y2VydA==
  taints:
    - {key: repairs, effect: NoSelect, timeAdded: 2023-01-02T03:04:05+02:00}
    - {key: example.com/gpu, value: "yes", effect: NoSelectIfNew, timeAdded: null}
    - {key: old, effect: PreferNoSelect}
status:
  capacity: {cpu: 8, memory: 32Gi}
  allocatable: {cpu: 7500m, memory: "31138512896"}
  version: {kubernetes: v1.34.1}
  clusterClaims:
    - {name: region, value: eu-north}
"#,
    );
    let Object::ManagedCluster(cluster) = object else { panic!() };
    let effects: Vec<_> = cluster.taints().iter().map(|taint| taint.effect.clone()).collect();
    assert_eq!(effects, [TaintEffect::NoSelect, TaintEffect::NoSelectIfNew, TaintEffect::PreferNoSelect]);
    assert_eq!(cluster.taints()[0].time_added.as_ref().unwrap().0, "2023-01-02T01:04:05Z".parse().unwrap());
    assert_eq!(cluster.taints()[1].time_added, None);
    assert_eq!(cluster.allocatable("cpu").unwrap().approximate_f64(), Ok(7.5));
    assert_eq!(cluster.capacity("memory").unwrap().approximate_f64(), Ok(34_359_738_368.0));
    assert_eq!(cluster.claims().collect::<Vec<_>>(), [("region", "eu-north")]);
    assert_eq!(cluster.lease_duration_seconds(), 60);
    assert!(cluster.is_accepted());
}

#[test]
fn a_placement_whose_spec_is_an_explicit_null() {
    let object = read(
        "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: Placement\nmetadata: {name: all, namespace: ns1}\nspec: ~\n",
    );
    let Object::Placement(placement) = object else { panic!() };
    assert_eq!(placement.spec.number_of_clusters, None);
    assert_eq!(placement.spec.score_rate_limit.as_deref(), Some("1m"));
}

#[test]
fn a_placement_of_the_first_age_with_flat_predicates_and_anti_affinity() {
    let object = read(
        r"
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata: {name: first, namespace: ns1}
spec:
  clusterSets: []
  predicates:
    - clusterName: harbour-1
    - labelSelector:
        matchLabels: {vendor: Acme}
      claimSelector:
        matchClaims: {region: eu-north}
        matchExpressions:
          - {key: version.example, operator: In, values: [4.5.8]}
  antiAffinity: {topologyKey: zone, topologyKeyType: Claim}
",
    );
    let Object::Placement(placement) = object else { panic!() };
    assert_eq!(placement.spec.cluster_sets, Some(vec![]));
    let predicates = placement.spec.predicates.unwrap();
    assert_eq!(predicates[0].cluster_name.as_deref(), Some("harbour-1"));
    let claims = predicates[1].claim_selector.as_ref().unwrap();
    assert_eq!(claims.match_claims.as_ref().unwrap()["region"], "eu-north");
    assert_eq!(placement.spec.anti_affinity.unwrap().topology_key_type, TopologyKeyType::Claim);
}

#[test]
fn a_placement_of_the_middle_age_with_the_old_spellings_of_prioritizers() {
    let object = read(
        r"
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata: {name: middle, namespace: ns1}
spec:
  numberOfClusters: 3
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate: {type: BuildIn, buildIn: Steady}
        weight: 3
      - name: Balance
      - scoreCoordinate: {type: AddOn, addOn: {resourceName: default, scoreName: cpu}}
        weight: 0
",
    );
    let Object::Placement(placement) = object else { panic!() };
    let policy = placement.spec.prioritizer_policy.unwrap();
    assert_eq!(policy.mode(), PrioritizerMode::Exact);
    let read: Vec<_> = policy
        .configurations
        .as_ref()
        .unwrap()
        .iter()
        .map(|config| (config.score_type(), config.built_in(), config.weight()))
        .collect();
    assert_eq!(
        read,
        [
            (ScoreCoordinateType::BuiltIn, Some("Steady"), 3),
            (ScoreCoordinateType::BuiltIn, Some("Balance"), 1),
            (ScoreCoordinateType::AddOn, None, 0),
        ]
    );
}

#[test]
fn a_placement_of_today_with_everything_in_it() {
    let object = read(
        r#"
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: today, namespace: ns1}
spec:
  clusterSets: [north, south]
  numberOfClusters: 4
  predicates:
    - requiredClusterSelector:
        labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}
        celSelector: {celExpressions: ["managedCluster.status.version.kubernetes > 'v1'"]}
        clusterNames: [harbour-1, harbour-2]
  spreadPolicy:
    spreadConstraints:
      - {topologyKey: region, topologyKeyType: Label, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}
  tolerations:
    - {key: repairs, operator: Exists, tolerationSeconds: 90}
    - {operator: Exists}
  decisionStrategy:
    groupStrategy:
      clustersPerDecisionGroup: 25%
      decisionGroups:
        - groupName: canary
          groupClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}
  sortBy: Score
  scoreRateLimit: 5m
status:
  numberOfSelectedClusters: 0
  nextTransition: {time: "2024-05-01T12:00:00Z", reason: the toleration of repairs runs out}
"#,
    );
    let Object::Placement(placement) = object else { panic!() };
    let tolerations = placement.spec.tolerations.unwrap();
    assert_eq!(
        (tolerations[0].operator(), tolerations[0].toleration_seconds),
        (TolerationOperator::Exists, Some(90))
    );
    assert_eq!(tolerations[1].key(), "");
}

#[test]
fn sets_bindings_decisions_and_scores_in_the_versions_they_have_had() {
    for text in [
        "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: ManagedClusterSet\nmetadata: {name: north}\n",
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: ManagedClusterSet\nmetadata: {name: north}\nspec: {clusterSelector: {selectorType: LegacyClusterSetLabel}}\n",
        "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: all}\nspec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}\n",
        "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: ManagedClusterSetBinding\nmetadata: {name: north, namespace: ns1}\nspec: {clusterSet: north}\n",
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\nmetadata: {name: p-decision-1, namespace: ns1}\nstatus: {decisions: [{clusterName: a, reason: '', score: -3, available: false}]}\n",
        "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\nmetadata: {name: default, namespace: a}\nstatus: {scores: [{name: cpu, value: -100}], validUntil: '2024-05-01T12:00:00Z'}\n",
        "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: ClusterClaim\nmetadata: {name: id.k8s.io}\nspec: {value: x}\n",
    ] {
        read(text);
    }
}
