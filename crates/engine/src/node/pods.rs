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
    /// Of the pods of a silent node, those that must be told; each comes with its identity, and whether it may be ready, if
    /// it says anything of it.
    pub fn overdue<P>(&mut self, pods: impl IntoIterator<Item = (P, U, Option<bool>)>) -> Vec<P> {
        let mut overdue = Vec::new();
        let mut there = HashSet::new();
        for (pod, uid, ready) in pods {
            match ready {
                // One that never was ready serves nobody, and may be ready for the first time later.
                None => {}
                Some(false) => {
                    there.insert(uid);
                }
                Some(true) if self.0.contains(&uid) => {
                    there.insert(uid);
                }
                Some(true) => overdue.push(pod),
            }
        }
        // Whoever is gone is forgotten, so that this stays as small as the node.
        self.0 = there;
        overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overdue(told: &mut Told<u8>, pods: &[(u8, Option<bool>)]) -> Vec<u8> {
        told.overdue(pods.iter().map(|(pod, ready)| (*pod, *pod, *ready)))
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
}
