//! Whether a binding binds anything.

use berth_api::ManagedClusterSetBinding;
use berth_api::names::{condition, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::condition::{Status, Wanted};
use crate::moment::Moment;

/// The Bound condition to write; `None` if the binding has it already or is being deleted. `exists` tells whether the
/// set that the binding's spec names is there.
pub fn bound_condition(binding: &ManagedClusterSetBinding, exists: bool, now: Moment) -> Option<Condition> {
    if binding.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let (status, reason) = if exists {
        (Status::True, reason::CLUSTER_SET_BOUND)
    } else {
        (Status::False, reason::CLUSTER_SET_NOT_FOUND)
    };
    let existing = binding.status.as_ref().and_then(|status| status.conditions.as_deref());
    let wanted = Wanted {
        kind: condition::BOUND,
        status,
        reason,
        // Other programs compare the whole condition, and know it without a word.
        message: String::new(),
        generation: binding.metadata.generation,
    };
    wanted.unless_said(existing.unwrap_or_default(), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::whole_second;

    fn binding() -> ManagedClusterSetBinding {
        let mut binding = ManagedClusterSetBinding::new("blue");
        binding.metadata.namespace = Some("ns".into());
        binding.metadata.generation = Some(1);
        binding.spec.get_or_insert_default().cluster_set = Some("blue".into());
        binding
    }

    /// Upstream: hub/managedclustersetbinding/controller_test.go "TestSync: bound clusterset".
    #[test]
    fn a_binding_to_a_set_that_exists_is_bound() {
        let condition = bound_condition(&binding(), true, Moment::from_second(5)).unwrap();
        assert_eq!(
            (&*condition.type_, &*condition.status, &*condition.reason, &*condition.message),
            ("Bound", "True", "ClusterSetBound", "")
        );
        assert_eq!(condition.observed_generation, Some(1));
    }

    /// Upstream: hub/managedclustersetbinding/controller_test.go "TestSync: no clusterset".
    #[test]
    fn a_binding_to_no_set_says_so() {
        let condition = bound_condition(&binding(), false, Moment::from_second(5)).unwrap();
        assert_eq!((&*condition.status, &*condition.reason), ("False", "ClusterSetNotFound"));
    }

    /// Upstream: hub/managedclustersetbinding/controller_test.go "TestSync: no update".
    #[test]
    fn a_binding_that_says_so_already_is_left_alone() {
        let mut said = binding();
        let condition = bound_condition(&said, true, Moment::from_second(5)).unwrap();
        said.status.get_or_insert_default().conditions = Some(vec![condition]);
        assert_eq!(bound_condition(&said, true, Moment::from_second(9)), None);
        assert_eq!(
            bound_condition(&said, false, Moment::from_second(9)).unwrap().last_transition_time,
            whole_second(Moment::from_second(9))
        );
    }

    #[test]
    fn a_binding_on_its_way_out_is_left_alone() {
        let mut leaving = binding();
        leaving.metadata.deletion_timestamp = Some(whole_second(Moment::from_second(1)));
        assert_eq!(bound_condition(&leaving, true, Moment::from_second(5)), None);
    }
}
