//! A world with a what-if applied.
//!
//! Owns what a change means: replacing keeps what only a hub writes, a removed Placement takes its decisions along, a
//! new taint is as old as the change. What cannot be applied is told, with the names that come near.

use std::fmt::Display;
use std::sync::Arc;

use berth_api::{KindInfo, ManagedCluster, Taint, TaintEffect, fleet_kinds};
use berth_engine::model::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::{Item, NAMESPACE_BY_DEFAULT, Shelf, World, near};
use crate::change::{Effect, Removal, TaintChange};

/// A what-if.
#[derive(Debug)]
pub struct Alteration<'a> {
    /// Objects to add, or to put in place of those with the same identity.
    pub with: World,
    /// Objects to take out.
    pub without: &'a [Removal],
    /// Taints to put on or take off.
    pub taints: &'a [TaintChange],
    /// When it happens.
    pub at: Timestamp,
}

/// The world after a what-if, or everything that stands in its way.
pub fn alter(world: &World, alteration: Alteration<'_>) -> Result<World, Vec<String>> {
    let Alteration { with, without, taints, at } = alteration;
    let mut world = world.clone();
    let mut errors = Vec::new();
    put(&mut world, with, at);
    for change in taints {
        errors.extend(retaint(&mut world, change, at).err());
    }
    for removal in without {
        errors.extend(remove(&mut world, removal).err());
    }
    if errors.is_empty() { Ok(world) } else { Err(errors) }
}

/// Applying a manifest never clears what only the hub writes: the uid, and the status where the manifest has none.
fn put(world: &mut World, with: World, at: Timestamp) {
    macro_rules! replace {
        ($shelf:ident, |$new:ident, $old:ident| $keep:block) => {
            for (key, item) in with.$shelf {
                let mut $new = item.object.clone();
                let before = world.$shelf.get(&key).map(|item| &item.object);
                if let Some($old) = before {
                    keep_identity(&mut $new.metadata, &$old.metadata);
                    if $new.status.is_none() {
                        $new.status.clone_from(&$old.status);
                    }
                }
                {
                    let $old = before;
                    $keep
                }
                world.$shelf.insert(key, Arc::new(Item { object: $new, source: item.source.clone() }));
            }
        };
    }
    replace!(clusters, |new, old| { date_taints(&mut new, old, at) });
    replace!(sets, |new, _old| {});
    replace!(bindings, |new, _old| {});
    replace!(placements, |new, _old| {});
    replace!(decisions, |new, _old| {});
    replace!(scores, |new, _old| {});
}

fn keep_identity(new: &mut ObjectMeta, old: &ObjectMeta) {
    if new.uid.is_none() {
        new.uid.clone_from(&old.uid);
    }
    if new.generation.is_none() {
        new.generation = old.generation;
    }
}

/// A taint that was there keeps its time; one that is new began with the change, as the hub would write it.
fn date_taints(new: &mut ManagedCluster, old: Option<&ManagedCluster>, at: Timestamp) {
    let Some(taints) = new.spec.as_mut().and_then(|spec| spec.taints.as_mut()) else { return };
    for taint in taints.iter_mut().filter(|taint| taint.time_added.is_none()) {
        let same = old.and_then(|old| {
            taints_of(old).iter().find(|other| {
                other.key == taint.key && other.value() == taint.value() && other.effect == taint.effect
            })
        });
        taint.time_added = same.map_or(Some(Time(at)), |same| same.time_added.clone());
    }
}

fn taints_of(cluster: &ManagedCluster) -> &[Taint] {
    cluster.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

fn retaint(world: &mut World, change: &TaintChange, at: Timestamp) -> Result<(), String> {
    let name = change.cluster();
    let Some(item) = world.clusters.get(name) else {
        return Err(missing("ManagedCluster", name, world.clusters.keys().map(String::as_str)));
    };
    let mut cluster = item.object.clone();
    let source = item.source.clone();
    let taints = cluster.spec.get_or_insert_default().taints.get_or_insert_default();
    match change {
        TaintChange::Add { key, value, effect, .. } => {
            let effect = effect_of(*effect);
            taints.retain(|taint| !(taint.key == *key && taint.effect == effect));
            taints.push(Taint {
                key: key.clone(),
                value: (!value.is_empty()).then(|| value.clone()),
                effect,
                time_added: Some(Time(at)),
            });
        }
        TaintChange::Remove { key, effect, .. } => {
            let effect = effect.map(effect_of);
            let before = taints.len();
            taints.retain(|taint| {
                taint.key != *key || effect.as_ref().is_some_and(|effect| taint.effect != *effect)
            });
            if taints.len() == before {
                let has: Vec<String> =
                    taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect.as_str())).collect();
                let has = if has.is_empty() { "no taints".to_owned() } else { has.join(", ") };
                return Err(format!("ManagedCluster {name} has no taint {key} to take off; it has {has}"));
            }
        }
    }
    world.clusters.insert(name.to_owned(), Arc::new(Item { object: cluster, source }));
    Ok(())
}

fn effect_of(effect: Effect) -> TaintEffect {
    match effect {
        Effect::NoSelect => TaintEffect::NoSelect,
        Effect::PreferNoSelect => TaintEffect::PreferNoSelect,
        Effect::NoSelectIfNew => TaintEffect::NoSelectIfNew,
    }
}

fn remove(world: &mut World, removal: &Removal) -> Result<(), String> {
    let info = kind_named(&removal.kind)?;
    let name = removal.name.as_str();
    if !info.namespaced && !removal.namespace.is_empty() {
        return Err(format!(
            "{} is not in a namespace: write {}/{name}, not {}/{}/{name}",
            info.kind, removal.kind, removal.kind, removal.namespace
        ));
    }
    let namespace =
        if removal.namespace.is_empty() { NAMESPACE_BY_DEFAULT } else { removal.namespace.as_str() };
    let key = ObjectKey::new(namespace, name);
    match info.kind {
        "ManagedCluster" => take(&mut world.clusters, info, &name.to_owned()),
        "ManagedClusterSet" => take(&mut world.sets, info, &name.to_owned()),
        "ManagedClusterSetBinding" => take(&mut world.bindings, info, &key),
        "PlacementDecision" => take(&mut world.decisions, info, &key),
        "AddOnPlacementScore" => take(&mut world.scores, info, &key),
        "Placement" => {
            take(&mut world.placements, info, &key)?;
            world.decisions.retain(|slice, item| {
                slice.namespace != key.namespace || item.object.placement_name() != Some(name)
            });
            Ok(())
        }
        other => Err(format!("{other} has no say in placement")),
    }
}

/// The kind a user names: by its kind, plural, singular or short name, in any case of letters.
fn kind_named(text: &str) -> Result<&'static KindInfo, String> {
    let named = |name: &str| name.eq_ignore_ascii_case(text);
    fleet_kinds()
        .find(|info| {
            [info.kind, info.plural, info.singular].into_iter().any(named)
                || info.short_names.iter().any(|name| named(name))
        })
        .ok_or_else(|| {
            let allowed: Vec<&str> = fleet_kinds().map(|info| info.kind).collect();
            format!("there is no kind {text:?}: allowed are {}", allowed.join(", "))
        })
}

fn take<K: Ord + Display, T>(shelf: &mut Shelf<K, T>, info: &KindInfo, key: &K) -> Result<(), String> {
    if shelf.remove(key).is_some() {
        return Ok(());
    }
    let names: Vec<String> = shelf.keys().map(ToString::to_string).collect();
    Err(missing(info.kind, &key.to_string(), names.iter().map(String::as_str)))
}

fn missing<'n>(kind: &str, name: &str, names: impl Iterator<Item = &'n str>) -> String {
    format!("there is no {kind} {name} in the input{}", near(name, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::load;
    use crate::world::read;

    const WORLD: &str = "
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1, uid: u1}
spec:
  taints:
  - {key: gpu, effect: NoSelect, timeAdded: \"2026-01-01T00:00:00Z\"}
  - {key: gpu, effect: NoSelectIfNew}
status: {version: {kubernetes: v1}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: web, namespace: ns1}
spec: {}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata: {name: web-decision-1, namespace: ns1, labels: {cluster.open-cluster-management.io/placement: web}}
";

    fn world(text: &str) -> World {
        let reading = read(load(&["-".into()], &mut text.as_bytes()));
        assert_eq!(reading.problems, []);
        reading.world
    }

    fn altered(with: &str, without: &[&str], taints: &[&str]) -> Result<World, Vec<String>> {
        let without: Vec<Removal> = without.iter().map(|text| text.parse().unwrap()).collect();
        let taints: Vec<TaintChange> = taints.iter().map(|text| text.parse().unwrap()).collect();
        let at = "2026-06-01T00:00:00Z".parse().unwrap();
        alter(&world(WORLD), Alteration { with: world(with), without: &without, taints: &taints, at })
    }

    fn taints(world: &World) -> Vec<String> {
        taints_of(&world.clusters["c1"].object)
            .iter()
            .map(|taint| {
                let added = taint.time_added.as_ref().map_or("-".to_owned(), |time| time.0.to_string());
                format!("{}={}:{} {added}", taint.key, taint.value(), taint.effect.as_str())
            })
            .collect()
    }

    #[test]
    fn a_taint_put_on_replaces_one_with_its_key_and_effect_and_dates_from_the_change() {
        let world = altered("", &[], &["c1=gpu=x:NoSelect"]).unwrap();
        assert_eq!(taints(&world), ["gpu=:NoSelectIfNew -", "gpu=x:NoSelect 2026-06-01T00:00:00Z"]);
        let world = altered("", &[], &["c1=gpu:NoSelect-"]).unwrap();
        assert_eq!(taints(&world), ["gpu=:NoSelectIfNew -"]);
        assert_eq!(taints(&altered("", &[], &["c1=gpu-"]).unwrap()), [] as [&str; 0]);
    }

    #[test]
    fn a_replaced_cluster_keeps_status_uid_and_the_age_of_taints_that_stay() {
        let with = "
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1}
spec: {taints: [{key: gpu, effect: NoSelect}, {key: new, effect: NoSelect}]}
";
        let world = altered(with, &[], &[]).unwrap();
        assert_eq!(
            taints(&world),
            ["gpu=:NoSelect 2026-01-01T00:00:00Z", "new=:NoSelect 2026-06-01T00:00:00Z"]
        );
        let cluster = &world.clusters["c1"].object;
        assert_eq!(cluster.metadata.uid.as_deref(), Some("u1"));
        assert!(cluster.status.is_some());
    }

    #[test]
    fn a_removed_placement_takes_its_decisions_along() {
        let world = altered("", &["placements/ns1/web"], &[]).unwrap();
        assert!(world.placements.is_empty() && world.decisions.is_empty());
    }

    #[test]
    fn everything_that_cannot_be_changed_is_told() {
        let errors =
            altered("", &["c2", "Placement/web", "Node/n", "mcl/ns1/c1"], &["c11=a:NoSelect", "c1=x-"]);
        assert_eq!(
            errors.unwrap_err(),
            [
                "there is no ManagedCluster c11 in the input; did you mean c1?",
                "ManagedCluster c1 has no taint x to take off; it has gpu:NoSelect, gpu:NoSelectIfNew",
                "there is no ManagedCluster c2 in the input; did you mean c1?",
                "there is no Placement default/web in the input; did you mean ns1/web?",
                "there is no kind \"Node\": allowed are ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision, AddOnPlacementScore, ClusterClaim",
                "ManagedCluster is not in a namespace: write mcl/c1, not mcl/ns1/c1",
            ]
        );
    }
}
