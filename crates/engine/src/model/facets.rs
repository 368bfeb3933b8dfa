//! Labels and claims of the whole fleet, interned and inverted.
//!
//! Owns the dictionary of `key=value` pairs and, for each key and each pair, the posting of clusters that carry it.
//! A pair lives exactly as long as some cluster carries it, so churning values leave nothing behind. Keys stay: their
//! vocabulary is small.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::hash_map::HashMap;
use hashbrown::{DefaultHashBuilder, HashTable};
use roaring::RoaringBitmap;

use super::posting::Posting;
use super::slots::Slot;
use crate::selector::{Ask, Requirement};

/// A key, by number. Keys are never forgotten: their vocabulary is the operators', not the clusters'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyId(u32);

/// A `key=value` pair, by number. Numbers of pairs nobody carries are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PairId(u32);

#[derive(Debug)]
struct Pair {
    key: KeyId,
    value: Box<str>,
    posting: Posting,
}

/// One facet (labels, or claims) of all clusters.
#[derive(Debug, Default)]
pub(crate) struct Facets {
    keys: HashMap<Arc<str>, KeyId>,
    names: Vec<Arc<str>>,
    carriers: Vec<RoaringBitmap>,
    pairs: Vec<Pair>,
    lookup: HashTable<PairId>,
    free: Vec<PairId>,
    hasher: DefaultHashBuilder,
}

impl Facets {
    fn key(&mut self, key: &str) -> KeyId {
        if let Some(id) = self.keys.get(key) {
            return *id;
        }
        let id = KeyId(u32::try_from(self.names.len()).expect("fewer than 2^32 distinct keys"));
        let name: Arc<str> = key.into();
        self.names.push(name.clone());
        self.carriers.push(RoaringBitmap::new());
        self.keys.insert(name, id);
        id
    }

    /// The number of `key`, if any cluster ever carried it.
    pub(crate) fn find_key(&self, key: &str) -> Option<KeyId> {
        self.keys.get(key).copied()
    }

    /// The name of a key.
    pub(crate) fn key_name(&self, key: KeyId) -> &Arc<str> {
        &self.names[key.0 as usize]
    }

    /// Whether a pair is this one.
    fn is(&self, id: PairId, name: &str, value: &str) -> bool {
        let pair = &self.pairs[id.0 as usize];
        *pair.value == *value && *self.names[pair.key.0 as usize] == *name
    }

    fn find_pair(&self, key: KeyId, value: &str) -> Option<PairId> {
        let hash = self.hasher.hash_one((key, value));
        self.lookup
            .find(hash, |id| {
                self.pairs[id.0 as usize].key == key && &*self.pairs[id.0 as usize].value == value
            })
            .copied()
    }

    fn intern(&mut self, key: KeyId, value: &str) -> PairId {
        if let Some(id) = self.find_pair(key, value) {
            return id;
        }
        let pair = Pair { key, value: value.into(), posting: Posting::default() };
        let id = if let Some(id) = self.free.pop() {
            self.pairs[id.0 as usize] = pair;
            id
        } else {
            self.pairs.push(pair);
            PairId(u32::try_from(self.pairs.len() - 1).expect("fewer than 2^32 distinct pairs"))
        };
        let Self { lookup, pairs, hasher, .. } = self;
        let hash = |id: &PairId| {
            let pair = &pairs[id.0 as usize];
            hasher.hash_one((pair.key, &*pair.value))
        };
        lookup.insert_unique(hash(&id), id, hash);
        id
    }

    /// Replaces what `slot` carries. `old` is what it carried; the new list and the keys that changed come back.
    /// Where a key comes more than once, the last entry counts.
    pub(crate) fn replace<'p>(
        &mut self,
        slot: Slot,
        old: &[PairId],
        new: impl Iterator<Item = (&'p str, &'p str)>,
    ) -> (Box<[PairId]>, Vec<KeyId>) {
        let mut wanted: Vec<(KeyId, PairId)> = Vec::with_capacity(old.len().max(new.size_hint().0));
        // Nearly all stays, in the order it had, and need not be looked up.
        let (mut next, mut is_in_order) = (0, true);
        for (name, value) in new {
            if let Some(place) = (next..old.len()).take(2).find(|place| self.is(old[*place], name, value))
                && is_in_order
            {
                wanted.push((self.pairs[old[place].0 as usize].key, old[place]));
                next = place + 1;
                continue;
            }
            let key = self.key(name);
            let pair = self.intern(key, value);
            if old.get(next).is_some_and(|pair| self.pairs[pair.0 as usize].key == key) {
                next += 1;
            } else {
                // One that is new may be repeated by those that follow.
                is_in_order = false;
            }
            match wanted.iter_mut().find(|(known, _)| *known == key) {
                Some(entry) => {
                    let lost = std::mem::replace(&mut entry.1, pair);
                    // The same entry twice is the same pair: it is wanted, though nobody carries it yet.
                    if lost != pair {
                        self.drop_if_unused(lost);
                    }
                }
                None => wanted.push((key, pair)),
            }
        }
        let mut changed = Vec::new();
        if wanted.iter().map(|(_, pair)| pair).eq(old) {
            return (old.into(), changed);
        }
        for pair in old {
            let key = self.pairs[pair.0 as usize].key;
            if wanted.contains(&(key, *pair)) {
                continue;
            }
            changed.push(key);
            self.pairs[pair.0 as usize].posting.remove(slot);
            self.drop_if_unused(*pair);
            self.carriers[key.0 as usize].remove(slot.0);
        }
        for (key, pair) in &wanted {
            if !old.contains(pair) {
                if !changed.contains(key) {
                    changed.push(*key);
                }
                self.pairs[pair.0 as usize].posting.insert(slot);
                self.carriers[key.0 as usize].insert(slot.0);
            }
        }
        (wanted.into_iter().map(|(_, pair)| pair).collect(), changed)
    }

    fn drop_if_unused(&mut self, id: PairId) {
        let pair = &self.pairs[id.0 as usize];
        if !pair.posting.is_empty() {
            return;
        }
        let hash = self.hasher.hash_one((pair.key, &*pair.value));
        if let Ok(entry) = self.lookup.find_entry(hash, |other| *other == id) {
            entry.remove();
            self.pairs[id.0 as usize].value = Box::default();
            self.free.push(id);
        }
    }

    /// The value of `key` among `carried`.
    pub(crate) fn value<'f>(&'f self, carried: &[PairId], key: KeyId) -> Option<&'f str> {
        carried
            .iter()
            .map(|id| &self.pairs[id.0 as usize])
            .find(|pair| pair.key == key)
            .map(|pair| &*pair.value)
    }

    /// The name and value of every pair in `carried`.
    pub(crate) fn entries<'f>(&'f self, carried: &'f [PairId]) -> impl Iterator<Item = (&'f str, &'f str)> {
        carried.iter().map(|id| {
            let pair = &self.pairs[id.0 as usize];
            (&*self.names[pair.key.0 as usize], &*pair.value)
        })
    }

    /// All clusters of `within` that fulfil `requirement`.
    pub(crate) fn retain(&self, within: &mut RoaringBitmap, requirement: &Requirement) {
        let Some(key) = self.find_key(&requirement.key) else {
            if matches!(requirement.ask, Ask::In(_) | Ask::Exists) {
                within.clear();
            }
            return;
        };
        match &requirement.ask {
            Ask::Exists => *within &= &self.carriers[key.0 as usize],
            Ask::DoesNotExist => *within -= &self.carriers[key.0 as usize],
            Ask::In(values) => *within &= self.any_of(key, values),
            Ask::NotIn(values) => *within -= self.any_of(key, values),
        }
    }

    fn any_of(&self, key: KeyId, values: &[Box<str>]) -> RoaringBitmap {
        let mut any = RoaringBitmap::new();
        for id in values.iter().filter_map(|value| self.find_pair(key, value)) {
            self.pairs[id.0 as usize].posting.add_to(&mut any);
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn a_pair_nobody_carries_any_more_is_forgotten_and_its_number_used_again() {
        let mut facets = Facets::default();
        let (first, _) = facets.replace(Slot(1), &[], [("id", "a")].into_iter());
        let (second, changed) = facets.replace(Slot(1), &first, [("id", "b")].into_iter());
        assert_eq!(changed.len(), 1);
        assert_eq!(facets.find_pair(facets.find_key("id").unwrap(), "a"), None);
        let (third, _) = facets.replace(Slot(2), &[], [("id", "c")].into_iter());
        assert_eq!(third, first, "the freed number serves the next pair");
        assert_eq!(facets.value(&second, facets.find_key("id").unwrap()), Some("b"));
    }

    #[test]
    fn the_last_of_two_entries_with_one_key_counts() {
        let mut facets = Facets::default();
        let (pairs, _) = facets.replace(Slot(0), &[], [("k", "1"), ("k", "2"), ("k", "1")].into_iter());
        assert_eq!(facets.entries(&pairs).collect::<Vec<_>>(), [("k", "1")]);
    }

    #[test]
    fn the_same_entry_twice_is_kept_once() {
        let mut facets = Facets::default();
        let (pairs, _) = facets.replace(Slot(0), &[], [("k", "1"), ("k", "1")].into_iter());
        assert_eq!(facets.entries(&pairs).collect::<Vec<_>>(), [("k", "1")]);
        let (_, changed) = facets.replace(Slot(0), &pairs, [("k", "1"), ("k", "1")].into_iter());
        assert!(changed.is_empty());
    }

    #[test]
    fn nothing_changed_means_no_changed_keys() {
        let mut facets = Facets::default();
        let (pairs, _) = facets.replace(Slot(0), &[], [("a", "1"), ("b", "2")].into_iter());
        let (_, changed) = facets.replace(Slot(0), &pairs, [("b", "2"), ("a", "1")].into_iter());
        assert!(changed.is_empty());
    }

    proptest! {
        #[test]
        fn whatever_came_before_what_is_carried_is_what_was_told_last(
            told in prop::collection::vec(prop::collection::vec((select(vec!["a", "b", "c", "d"]), select(vec!["1", "2"])), 0..6), 1..6),
        ) {
            let mut facets = Facets::default();
            let (mut carried, mut before): (Box<[PairId]>, BTreeMap<&str, &str>) = Default::default();
            for entries in told {
                let now: BTreeMap<&str, &str> = entries.iter().copied().collect();
                let (pairs, changed) = facets.replace(Slot(3), &carried, entries.iter().copied());
                let differs = |name: &&&str| before.get(**name) != now.get(**name);
                let expected: BTreeSet<&str> = before.keys().chain(now.keys()).filter(differs).copied().collect();
                prop_assert_eq!(changed.len(), expected.len(), "each once");
                prop_assert_eq!(changed.iter().map(|key| &**facets.key_name(*key)).collect::<BTreeSet<_>>(), expected);
                prop_assert_eq!(pairs.len(), now.len());
                prop_assert_eq!(facets.entries(&pairs).collect::<BTreeMap<_, _>>(), now.clone());
                prop_assert_eq!(facets.lookup.len(), now.len(), "nobody carries the others");
                (carried, before) = (pairs, now);
            }
        }
    }
}
