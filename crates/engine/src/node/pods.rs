//! Pods of a node that has fallen silent are not ready.
//!
//! Owns which of them must be told so. It is judged by what is, not by what was done: every pod that says it is ready on a
//! node whose Ready condition is Unknown, whether the node was ready or not before, whoever turned it, and also a pod that
//! comes to it late. So nothing is lost with a process that ends between two writes.
//!
//! Where the kubelet itself says that the node is not ready, it is alive and answers for its pods; what it says of them is
//! not overruled, because it would say it again. For the same reason a pod is told once in each silence: one that is ready
//! again although its node is not heard of was made so by somebody who is there.

use std::collections::HashSet;
use std::hash::Hash;

/// The pods that were seen not ready in one silence. `U` is their identity.
#[derive(Clone, Debug)]
pub struct Told<U>(HashSet<U>);

impl<U> Default for Told<U> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<U: Clone + Eq + Hash> Told<U> {
    /// Whether a pod of the silent node must be told, which may be ready or not, if it says anything of it.
    pub fn is_overdue(&mut self, uid: &U, ready: Option<bool>) -> bool {
        match ready {
            // One that never was ready serves nobody, and may be ready for the first time later.
            None => false,
            Some(false) => {
                self.0.insert(uid.clone());
                false
            }
            Some(true) => !self.0.contains(uid),
        }
    }

    /// A pod is no more, or not on this node: so this stays as small as the node.
    pub fn forget(&mut self, uid: &U) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overdue(told: &mut Told<u8>, pods: &[(u8, Option<bool>)]) -> Vec<u8> {
        pods.iter().filter(|(pod, ready)| told.is_overdue(pod, *ready)).map(|(pod, _)| *pod).collect()
    }

    #[test]
    fn every_pod_that_says_it_is_ready_is_told_until_it_no_longer_does() {
        let mut told = Told::default();
        let pods = [(1, Some(true)), (2, Some(false)), (3, None), (4, Some(true))];
        assert_eq!(overdue(&mut told, &pods), [1, 4]);
        assert_eq!(overdue(&mut told, &pods), [1, 4], "nothing was written, so nothing is forgotten");
        assert_eq!(overdue(&mut told, &[(1, Some(false)), (5, Some(true))]), [5], "one that came late");
    }

    #[test]
    fn a_pod_that_somebody_made_ready_again_is_left_to_them_until_the_next_silence() {
        let mut told = Told::default();
        assert_eq!(overdue(&mut told, &[(1, Some(true))]), [1]);
        assert_eq!(overdue(&mut told, &[(1, Some(false))]), [0_u8; 0]);
        assert_eq!(overdue(&mut told, &[(1, Some(true))]), [0_u8; 0]);
        assert_eq!(overdue(&mut Told::default(), &[(1, Some(true))]), [1]);
    }

    #[test]
    fn nothing_is_kept_of_a_pod_that_is_gone() {
        let mut told = Told::default();
        assert!(!told.is_overdue(&1, Some(false)));
        told.forget(&1);
        assert!(told.0.is_empty());
    }
}
