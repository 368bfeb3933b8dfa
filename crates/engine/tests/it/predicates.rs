//! Predicates: upstream's cases by name, and what ours adds to them.

use serde_json::{Value, json};

use crate::fixtures::{Fleet, Request, at, fleet, web};

/// Clusters to choose from in every case.
fn ground() -> Fleet {
    fleet()
        .cluster("cloud")
        .label("cloud", "Amazon")
        .label("env", "prod")
        .claim("cloud", "Amazon")
        .claim("version", "4.15.3")
        .cluster("metal")
        .label("cloud", "BareMetal")
        .claim("cloud", "BareMetal")
        .cluster("plain")
        .score("cloud", "demo", "cpu", 90, None)
        .score("metal", "demo", "cpu", 50, None)
}

struct Case {
    upstream: &'static str,
    predicates: Vec<Value>,
    selected: &'static [&'static str],
}

fn case(upstream: &'static str, predicates: Value, selected: &'static [&'static str]) -> Case {
    Case { upstream, predicates: predicates.as_array().unwrap().clone(), selected }
}

fn label(key: &str, value: &str) -> Value {
    json!({"matchLabels": {key: value}})
}

fn claim(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

fn cel(expressions: &[&str]) -> Value {
    json!({ "celExpressions": expressions })
}

/// Upstream: plugins/predicate/predicate_test.go "TestMatchWithClusterPredicates: match with label",
/// "TestMatchWithClusterPredicates: match with claim", "TestMatchWithClusterPredicates: match with both label and
/// claim", "TestMatchWithClusterPredicates: match with multiple predicates", "TestMatchWithClusterPredicates: match
/// with CEL expression on labels", "TestMatchWithClusterPredicates: match with CEL expression on claims",
/// "TestMatchWithClusterPredicates: match with CEL score expression", "TestMatchWithClusterPredicates: match with
/// multiple CEL expressions", "TestMatchWithClusterPredicates: match with CEL expression and other selectors",
/// "TestMatchWithClusterPredicates: empty CEL expressions".
/// Upstream: clusters_test.go "TestMatches: match with label", "TestMatches: not match with label", "TestMatches: match
/// with claim", "TestMatches: not match with claim", "TestMatches: match with both label and claim", "TestMatches: not
/// match with both label and claim", "TestMatches: match with CEL expression", "TestMatches: not match with CEL
/// expression", "TestMatches: match with CEL expression and label", "TestMatches: not match with CEL expression and
/// label".
/// Upstream: cel_test.go "TestCELSelector: valid expression matches", "TestCELSelector: valid expression no match",
/// "TestCELSelector: multiple expressions all match", "TestCELSelector: multiple expressions one fails",
/// "TestCELSelector: empty expressions".
#[test]
fn every_case_of_predicates() {
    let cases = [
        // TestMatchWithClusterPredicates
        case("match with label", json!([{"labelSelector": label("cloud", "Amazon")}]), &["cloud"]),
        case("match with claim", json!([{"claimSelector": claim("cloud", "In", &["Amazon"])}]), &["cloud"]),
        case(
            "match with both label and claim",
            json!([{"labelSelector": label("cloud", "Amazon"), "claimSelector": claim("cloud", "In", &["Amazon"])}]),
            &["cloud"],
        ),
        case(
            "match with multiple predicates",
            json!([{"labelSelector": label("cloud", "Amazon")}, {"claimSelector": claim("cloud", "In", &["BareMetal"])}]),
            &["cloud", "metal"],
        ),
        case(
            "match with CEL expression on labels",
            json!([{"celSelector": cel(&[r#"managedCluster.metadata.labels["cloud"] == "Amazon""#])}]),
            &["cloud"],
        ),
        case(
            "match with CEL expression on claims",
            json!([{"celSelector": cel(&[r#"managedCluster.status.clusterClaims.exists(c, c.name == "cloud" && c.value == "BareMetal")"#])}]),
            &["metal"],
        ),
        case(
            "match with CEL score expression",
            json!([{"celSelector": cel(&[r#"managedCluster.scores("demo").filter(s, s.name == "cpu").all(e, e.value > 80)"#])}]),
            &["cloud"],
        ),
        case(
            "match with multiple CEL expressions",
            json!([{"celSelector": cel(&[
                r#"managedCluster.metadata.labels["cloud"] in ["Amazon", "BareMetal"]"#,
                "has(managedCluster.metadata.labels.env)",
            ])}]),
            &["cloud"],
        ),
        case(
            "match with CEL expression and other selectors",
            json!([{
                "labelSelector": label("cloud", "Amazon"),
                "claimSelector": claim("cloud", "Exists", &[]),
                "celSelector": cel(&[r#"managedCluster.metadata.name == "cloud""#]),
            }]),
            &["cloud"],
        ),
        case("empty CEL expressions", json!([{"celSelector": cel(&[])}]), &["cloud", "metal", "plain"]),
        // TestMatches
        case("not match with label", json!([{"labelSelector": label("cloud", "Google")}]), &[]),
        case("not match with claim", json!([{"claimSelector": claim("cloud", "In", &["Google"])}]), &[]),
        case(
            "not match with both label and claim",
            json!([{"labelSelector": label("cloud", "Amazon"), "claimSelector": claim("cloud", "In", &["BareMetal"])}]),
            &[],
        ),
        case("not match with CEL expression", json!([{"celSelector": cel(&["false"])}]), &[]),
        case(
            "not match with CEL expression and label",
            json!([{"labelSelector": label("cloud", "Amazon"), "celSelector": cel(&["false"])}]),
            &[],
        ),
        // TestCELSelector
        case(
            "valid expression matches",
            json!([{"celSelector": cel(&["true"])}]),
            &["cloud", "metal", "plain"],
        ),
        case("multiple expressions one fails", json!([{"celSelector": cel(&["true", "false"])}]), &[]),
        case(
            "a missing key is an error, and an error is no match",
            json!([{"celSelector": cel(&[r#"managedCluster.metadata.labels.env == "prod""#])}]),
            &["cloud"],
        ),
        case(
            "no such AddOnPlacementScore is an error, and an error is no match",
            json!([{"celSelector": cel(&[r#"managedCluster.scores("demo").size() >= 0"#])}]),
            &["cloud", "metal"],
        ),
        case(
            "the function parseJSON reads text",
            json!([{"celSelector": cel(&[r#"'{"a": [1, 2]}'.parseJSON().a[1] == 2"#])}]),
            &["cloud", "metal", "plain"],
        ),
        case(
            "semver compares versions",
            json!([{"celSelector": cel(&[
                r#"managedCluster.status.clusterClaims.exists(c, c.name == "version" && semver(c.value).isGreaterThan(semver("4.9.0")))"#
            ])}]),
            &["cloud"],
        ),
        // The language of label selectors.
        case(
            "claims: NotIn is true of absence",
            json!([{"claimSelector": claim("cloud", "NotIn", &["Amazon"])}]),
            &["metal", "plain"],
        ),
        case(
            "claims: DoesNotExist",
            json!([{"claimSelector": claim("cloud", "DoesNotExist", &[])}]),
            &["plain"],
        ),
        case(
            "labels: expressions and pairs are ANDed",
            json!([{"labelSelector": {"matchLabels": {"env": "prod"}, "matchExpressions": [{"key": "cloud", "operator": "NotIn", "values": ["Amazon"]}]}}]),
            &[],
        ),
        case("an empty selector has everybody", json!([{}]), &["cloud", "metal", "plain"]),
        case("names", json!([{"clusterNames": ["plain", "cloud", "nobody"]}]), &["cloud", "plain"]),
        case("no names have nobody", json!([{"clusterNames": []}]), &[]),
        case(
            "names and labels are ANDed",
            json!([{"clusterNames": ["plain", "cloud"], "labelSelector": label("env", "prod")}]),
            &["cloud"],
        ),
    ];
    for Case { upstream, predicates, selected } in cases {
        let request = predicates.into_iter().fold(web(), Request::predicate);
        assert_eq!(ground().selected(&request, 0), selected, "{upstream}");
    }
}

#[test]
fn a_predicate_in_the_form_of_the_first_draft_is_understood() {
    let request =
        web().flat_predicate(json!({"labelSelector": label("cloud", "Amazon"), "clusterName": "cloud"}));
    assert_eq!(ground().selected(&request, 0), ["cloud"]);
    let both = web().flat_predicate(json!({
        "clusterName": "cloud",
        "requiredClusterSelector": {"clusterNames": ["metal", "cloud"]},
    }));
    assert_eq!(ground().selected(&both, 0), ["cloud"], "only what both forms name");
    let claims = web().flat_predicate(json!({"claimSelector": {"matchClaims": {"cloud": "BareMetal"}}}));
    assert_eq!(ground().selected(&claims, 0), ["metal"]);
}

/// Upstream: plugins/predicate/predicate_test.go "TestMatchWithClusterPredicates: invalid CEL expression".
/// Upstream: cel_test.go "TestCELSelector: invalid expression".
/// Upstream: clusters_test.go "TestMatches: invalid CEL expression".
#[test]
fn what_cannot_be_understood_is_told_and_selects_nobody_new() {
    let cases = [
        (json!({"celSelector": cel(&["managedCluster."])}), "Predicate:compilation failed: "),
        (json!({"celSelector": cel(&["1 + 1"])}), "Predicate:compilation failed: "),
        (json!({"celSelector": cel(&["nobodyKnows(managedCluster)"])}), "Predicate:compilation failed: "),
        (
            json!({"labelSelector": {"matchExpressions": [{"key": "env", "operator": "Is", "values": ["x"]}]}}),
            "Predicate:",
        ),
        (
            json!({"labelSelector": {"matchExpressions": [{"key": "env", "operator": "In", "values": []}]}}),
            "Predicate:",
        ),
        (json!({"labelSelector": {"matchLabels": {"not a key": "x"}}}), "Predicate:"),
        (
            json!({"claimSelector": {"matchExpressions": [{"key": "env", "operator": "Exists", "values": ["x"]}]}}),
            "Predicate:",
        ),
    ];
    for (predicate, message) in cases {
        let request = web().predicate(predicate.clone());
        let mut world = ground().placement(&request).world();
        let decision = world.decide(&request.key(), at(0)).unwrap();
        assert!(decision.picks.is_empty(), "{predicate}");
        let told = decision.complaints[0].condition_message();
        assert!(told.starts_with(message), "{predicate}: {told}");
    }
}

/// Upstream: cel_test.go "TestCELSelector: multiple expressions running out of cost budget".
#[test]
fn an_expression_that_costs_too_much_matches_nobody() {
    let nested = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, \
                  [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, true))))))";
    let mut world = fleet().cluster("a").placement(&web().cel(&[nested])).world();
    assert!(world.selected(&web().key(), at(0)).is_empty());
    let account = world.explain(&web().key(), at(0));
    let failures = format!("{:?}", account.clusters[0].predicates[0].failures);
    assert!(failures.contains("error: "), "the reason is kept: {failures}");
}

/// Upstream: clusters_test.go "TestGetClusterClaims".
#[test]
fn claims_are_asked_by_name_and_no_claims_have_no_values() {
    let request = web().predicate(json!({"claimSelector": claim("version", "Exists", &[])}));
    assert_eq!(ground().selected(&request, 0), ["cloud"]);
}

/// Upstream: integration/placement/predicate_test.go "Should schedule placement successfully once spec.Predicates
/// CelSelector changes".
/// Upstream: defects "7".
#[test]
fn a_score_in_an_expression_decides_as_long_as_it_is_valid_and_as_soon_as_it_changes() {
    let request = web().cel(&[r#"managedCluster.scores("demo").exists(s, s.name == "cpu" && s.value > 80)"#]);
    let mut world = fleet()
        .clusters(["a", "b"])
        .score("a", "demo", "cpu", 90, Some(10))
        .score("b", "demo", "cpu", 70, None)
        .placement(&request)
        .world();
    assert_eq!(world.selected(&request.key(), at(0)), ["a"]);
    let next = world.decide(&request.key(), at(0)).unwrap().next.expect("the score of a ends");
    assert_eq!((next.at, &*next.cluster), (at(10).just_after(), "a"));
    assert_eq!(world.selected(&request.key(), at(10)), ["a"], "it is valid at its last moment");
    assert!(world.selected(&request.key(), at(11)).is_empty());
    let raised = fleet().score("b", "demo", "cpu", 81, None).objects.pop().unwrap();
    assert_eq!(world.apply(raised), [request.key()], "no prioritizer is needed for a score to be watched");
    assert_eq!(world.selected(&request.key(), at(11)), ["b"]);
}

#[test]
fn a_score_that_will_end_sooner_is_noticed_although_it_still_matches() {
    let request = web().cel(&[r#"managedCluster.scores("demo").exists(s, s.value > 0)"#]);
    let score = |until| fleet().score("a", "demo", "cpu", 1, Some(until)).objects.pop().unwrap();
    let mut world = fleet().cluster("a").with(score(100)).placement(&request).world();
    world.settle(&request.key(), at(0)).unwrap();
    assert_eq!(world.apply(score(50)), [request.key()], "or the clock would be set to the old end");
    let next = world.decide(&request.key(), at(0)).unwrap().next.unwrap();
    assert_eq!(next.at, at(50).just_after());
}
