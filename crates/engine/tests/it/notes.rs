//! The scores of a placement as events tell them.

use crate::fixtures::{at, bare, fleet, placement, web};

fn note(fleet: crate::fixtures::Fleet, placement: &crate::fixtures::Request, max_chars: usize) -> String {
    let mut world = fleet.placement(placement).world();
    world.decide(&placement.key(), at(0));
    world.model.score_note(&placement.key(), at(0), max_chars)
}

#[test]
fn all_feasible_clusters_are_told_by_name_selected_or_not() {
    let clusters = fleet().cluster("c2").cluster("c10").cluster("c1").cluster("c3").taint("sick:NoSelect", 0);
    let clusters = clusters.score("c10", "demo", "s", 30, None).score("c2", "demo", "s", -7, None);
    assert_eq!(note(clusters, &web().number(1).exact(&[("AddOn/demo/s", 2)]), 1000), "c1:0 c10:60 c2:-14 ");
}

#[test]
fn the_text_is_cut_before_an_entry_that_does_not_fit() {
    let clusters = || fleet().clusters(["c1", "c2", "c3"]);
    let scored = |max_chars| note(clusters(), &web().exact(&[("Steady", 1)]), max_chars);
    assert_eq!(scored(15), "c1:0 c2:0 c3:0 ");
    assert_eq!(scored(14), "c1:0 c2:0 ......");
    assert_eq!(scored(9), "c1:0 ......");
    assert_eq!(scored(0), "......");
}

#[test]
fn a_large_fleet_is_told_from_the_front() {
    let names: Vec<String> = (0..2000).rev().map(|number| format!("c{number:04}")).collect();
    let text = note(fleet().clusters(&names), &web(), 1000);
    assert!(text.starts_with("c0000:100 c0001:100 c0002:100 "), "{text}");
    assert!(text.ends_with("c0099:100 ......"), "{text}");
    assert_eq!(text.len(), 1006);
}

#[test]
fn short_names_fill_the_text_to_the_last_character() {
    let names: Vec<String> = ('a'..='z').map(String::from).collect();
    let text = note(fleet().clusters(&names), &web().exact(&[("Steady", 1)]), 12);
    assert_eq!(text, "a:0 b:0 c:0 ......");
}

#[test]
fn nothing_is_told_of_a_placement_that_selects_from_nothing_or_is_unknown() {
    assert_eq!(note(bare().cluster("c1"), &web(), 1000), "");
    assert_eq!(note(fleet(), &web(), 1000), "");
    assert_eq!(note(fleet().cluster("c1"), &web().exact(&[("Nonsense", 1)]), 1000), "");
    let world = fleet().cluster("c1").world();
    assert_eq!(world.model.score_note(&placement("ns", "nobody").key(), at(0), 1000), "");
}
