//! Fleets of our own, for the shapes no recorded fleet has, with the whole story of their decisions kept as text.
//!
//! The generator is seeded: the same number is the same fleet for ever. After a change on purpose, run once with
//! `INSTA_UPDATE=always` and read what became of the snapshots.

use std::fmt::Write as _;

use berth_engine::PlacementKey;
use berth_engine::explain::{cluster_sentences, sentences, table};
use serde_json::json;

use crate::fixtures::{Fleet, Request, at, bare, web};

/// Numbers that look random and are always the same (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

/// A fleet of a dozen clusters in three sets, two of them bound.
fn generated(seed: u64) -> Fleet {
    let mut dice = Dice(seed);
    let mut fleet = bare()
        .set("blue")
        .set("green")
        .set_of("production", json!({"matchLabels": {"env": "prod"}}))
        .bind("blue", "ns")
        .bind("production", "ns");
    for number in 0..12 {
        fleet = fleet
            .cluster(&format!("c{number}"))
            .in_set(dice.one_of(&["blue", "blue", "green"]))
            .label("env", dice.one_of(&["prod", "test"]))
            .label("region", dice.one_of(&["asia", "europe", "america"]))
            .claim("platform", dice.one_of(&["AWS", "GCP", "Azure"]))
            .resources(&(1 + dice.below(16)).to_string(), &format!("{}Gi", 1 + dice.below(64)));
        match dice.below(6) {
            0 => fleet = fleet.taint("aging:PreferNoSelect", -60),
            1 => fleet = fleet.taint("maintenance=soon:NoSelectIfNew", -30),
            2 => fleet = fleet.taint("unreachable:NoSelect", -10),
            _ => {}
        }
    }
    for number in 0..4 {
        let holds: Vec<String> = (0..3).map(|_| format!("c{}", dice.below(12))).collect();
        let holds: Vec<&str> = holds.iter().map(String::as_str).collect();
        fleet = fleet.decided(&PlacementKey::new("elsewhere", &format!("p{number}")), &holds);
    }
    fleet
}

/// The decision, its reasons, and what would be written.
fn story(fleet: Fleet, request: &Request) -> String {
    let mut world = fleet.placement(request).world();
    let key = request.key();
    let account = world.explain(&key, at(0));
    let published = world.settle(&key, at(0)).unwrap();
    let mut text = String::new();
    for sentence in sentences(&account) {
        writeln!(text, "{sentence}").unwrap();
    }
    let (heads, rows) = table(&account);
    writeln!(text, "\n{}", heads.join(" | ")).unwrap();
    for row in rows {
        writeln!(text, "{}", row.join(" | ")).unwrap();
    }
    text.push('\n');
    for one in &account.clusters {
        writeln!(text, "{}", cluster_sentences(&account, one).join("\n  ")).unwrap();
    }
    text.push('\n');
    for object in &published.decisions {
        let clusters: Vec<_> =
            object.decisions().iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        let labels = serde_json::to_string(&object.metadata.labels).unwrap();
        writeln!(text, "{} {labels}\n  {}", object.metadata.name.as_deref().unwrap(), clusters.join("\n  "))
            .unwrap();
    }
    writeln!(text, "{}", serde_json::to_string_pretty(&published.status).unwrap()).unwrap();
    text
}

#[test]
fn avoided_clusters_fill_the_number_last() {
    let request = web().number(5).exists("unreachable").seconds(300);
    insta::assert_snapshot!(story(generated(6), &request));
}

#[test]
fn spread_over_regions_with_a_rule_and_over_platforms_with_a_wish() {
    let request = web()
        .number(5)
        .spread("region", "Label", 1, "DoNotSchedule")
        .spread("platform", "Claim", 1, "ScheduleAnyway")
        .exists("unreachable")
        .per_group(2)
        .label_group("canary", "env", "test");
    insta::assert_snapshot!(story(generated(2), &request));
}

#[test]
fn one_of_each_region_the_richest_first() {
    let request = web()
        .apart("region", "Label")
        .exact(&[("ResourceAllocatableCPU", 2), ("ResourceAllocatableMemory", 1)])
        .sort_by("Score")
        .annotate(berth_engine::select::DETAILS_ANNOTATION, "score,available");
    insta::assert_snapshot!(story(generated(3), &request));
}

#[test]
fn named_clusters_out_of_one_of_several_sets() {
    let request = web()
        .sets(&["production", "green"])
        .predicate(json!({"clusterNames": ["c1", "c2", "c3", "c4", "c5", "c6"]}))
        .predicate(json!({"labelSelector": {"matchLabels": {"region": "asia"}}}))
        .exists("")
        .percent("50%");
    insta::assert_snapshot!(story(generated(4), &request));
}

#[test]
fn a_mistake_is_told_with_every_field_it_is_in() {
    let good = web().number(3);
    let fleet = generated(5).decided(&good.key(), &["c0", "c1", "c2"]);
    let wrong = good.number(-1).cel(&["managedCluster.nothing("]).tolerate("", "Equal", "x");
    insta::assert_snapshot!(story(fleet, &wrong));
}
