//! What objects share: each text, list of labels, of tolerations and of requests is kept once.
//!
//! The pods of a workload differ in their names and in little else. Owns one copy of the rest for as long as anybody has it.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use berth_engine::replace::Amounts;
use berth_engine::taint::{NodeEffect, Toleration};

use super::pod::{Label, Owner};

/// A pool is looked through for what nobody has any more when it has grown to twice what was left the last time, but
/// never for fewer than this.
const SWEEP_LEAST: usize = 1_024;

/// One copy of whatever objects of a kind have in common.
#[derive(Debug, Default)]
pub struct Pool {
    texts: Shared<str>,
    labels: Shared<[Label]>,
    tolerations: Shared<[Toleration<NodeEffect>]>,
    requests: Shared<Amounts>,
    owners: Shared<Owner>,
}

impl Pool {
    /// Puts the copy that is kept in the place of this one.
    pub fn text(&mut self, one: &mut Arc<str>) {
        self.texts.share(one);
    }

    /// Puts the copy that is kept in the place of this one, and of every key and value in it.
    pub fn labels(&mut self, one: &mut Arc<[Label]>) {
        if self.labels.find(one) {
            return;
        }
        let mut labels = one.to_vec();
        for (key, value) in &mut labels {
            self.texts.share(key);
            self.texts.share(value);
        }
        *one = labels.into();
        self.labels.share(one);
    }

    /// Puts the copy that is kept in the place of this one.
    pub fn tolerations(&mut self, one: &mut Arc<[Toleration<NodeEffect>]>) {
        self.tolerations.share(one);
    }

    /// Puts the copy that is kept in the place of this one.
    pub fn requests(&mut self, one: &mut Arc<Amounts>) {
        self.requests.share(one);
    }

    /// Puts the copy that is kept in the place of this one.
    pub fn owner(&mut self, one: &mut Arc<Owner>) {
        self.owners.share(one);
    }
}

/// Values of one type, each once.
#[derive(Debug)]
struct Shared<T: ?Sized> {
    kept: HashSet<Arc<T>>,
    /// How many there may be before it is looked which of them nobody has.
    sweep_at: usize,
}

impl<T: ?Sized> Default for Shared<T> {
    fn default() -> Self {
        Self { kept: HashSet::new(), sweep_at: SWEEP_LEAST }
    }
}

impl<T: ?Sized + Eq + Hash> Shared<T> {
    /// Takes the copy that is kept, if there is one.
    fn find(&self, one: &mut Arc<T>) -> bool {
        let Some(kept) = self.kept.get(&**one) else { return false };
        *one = Arc::clone(kept);
        true
    }

    fn share(&mut self, one: &mut Arc<T>) {
        if self.find(one) {
            return;
        }
        if self.kept.len() >= self.sweep_at {
            self.kept.retain(|kept| Arc::strong_count(kept) > 1);
            self.kept.shrink_to(self.kept.len() * 2);
            self.sweep_at = (self.kept.len() * 2).max(SWEEP_LEAST);
        }
        self.kept.insert(Arc::clone(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_kept_once() {
        let mut pool = Pool::default();
        let [mut one, mut other]: [Arc<str>; 2] = ["a".into(), "a".into()];
        pool.text(&mut one);
        pool.text(&mut other);
        assert!(Arc::ptr_eq(&one, &other));
        let labels = || -> Arc<[Label]> { [("k".into(), "a".into())].into() };
        let [mut some, mut same] = [labels(), labels()];
        pool.labels(&mut some);
        pool.labels(&mut same);
        assert!(Arc::ptr_eq(&some, &same) && Arc::ptr_eq(&some[0].1, &one));
    }

    #[test]
    fn what_nobody_has_is_let_go() {
        let mut pool = Pool::default();
        let mut held: Arc<str> = "held".into();
        pool.text(&mut held);
        for number in 0..SWEEP_LEAST * 5 {
            pool.text(&mut number.to_string().into());
        }
        assert!(pool.texts.kept.len() <= SWEEP_LEAST, "{}", pool.texts.kept.len());
        let mut again: Arc<str> = "held".into();
        pool.text(&mut again);
        assert!(Arc::ptr_eq(&held, &again));
    }
}
