//! ManagedClusters: the set they are in, whether they are accepted, and what they carry.

use berth_api::names::{self, label};
use berth_text::names::is_dns_label;
use serde_json::{Value, json};

use crate::attempt::{Attempt, Operation, text};
use crate::denial::{Denial, FieldProblem};
use crate::oracle::{Access, Oracle, Question};
use crate::taints;

/// Where the label of the set is.
const SET_LABEL: &str = "/metadata/labels/cluster.open-cluster-management.io~1clusterset";
/// What an address must begin with.
const HTTPS: &str = "https://";

/// Puts a cluster of no set into the default one, keeps the taint its health asks for, and dates its taints.
pub(crate) fn mutate(attempt: &Attempt<'_>, object: &mut Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    if text(Some(object), SET_LABEL).is_empty()
        // What is no object is the schema's to refuse, after us.
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if !labels.is_object() {
            *labels = json!({});
        }
        labels[label::CLUSTER_SET] = json!(names::DEFAULT_CLUSTER_SET);
    }
    taints::keep(attempt, object);
    taints::stamp(attempt, object, oracle)
}

pub(crate) fn validate(attempt: &Attempt<'_>, object: &Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    if attempt.operation == Operation::Create && !is_dns_label(attempt.name) {
        let message = "a cluster's name is also that of its namespace: at most 63 lower-case letters, digits and '-', \
                       with a letter or digit at both ends";
        let field = FieldProblem { path: "metadata.name".to_owned(), message: message.to_owned() };
        return Err(Denial { code: 400, ..Denial::invalid(vec![field]) });
    }
    client_configs(object)?;
    accept(attempt, object, oracle)?;
    join(attempt, object, oracle)?;
    taints::guard(attempt, object, oracle)
}

fn client_configs(object: &Value) -> Result<(), Denial> {
    let configs = object.pointer("/spec/managedClusterClientConfigs").and_then(Value::as_array);
    let wrong: Vec<FieldProblem> = configs
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, config)| {
            let url = text(Some(*config), "/url");
            url.strip_prefix(HTTPS).is_none_or(|rest| rest.is_empty() || rest.starts_with('/'))
        })
        .map(|(index, _)| FieldProblem {
            path: format!("spec.managedClusterClientConfigs[{index}].url"),
            message: format!("must begin with {HTTPS} and name a host"),
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(Denial { code: 400, ..Denial::invalid(wrong) }) }
}

/// Letting a cluster in is a right of its own; turning it away again is not.
fn accept(attempt: &Attempt<'_>, object: &Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    let accepts = |object: Option<&Value>| {
        object.and_then(|object| object.pointer("/spec/hubAcceptsClient")) == Some(&Value::Bool(true))
    };
    if !accepts(Some(object)) || accepts(attempt.old) {
        return Ok(());
    }
    let right = Access {
        group: names::REGISTER_GROUP,
        resource: "managedclusters",
        subresource: "accept",
        verb: "update",
        name: attempt.name.to_owned(),
    };
    if !oracle.answer(&Question::May(right)) {
        let message = format!("user {:?} cannot update the HubAcceptsClient field", attempt.user);
        return Err(Denial::forbidden(message));
    }
    if oracle.answer(&Question::IsTerminating(attempt.name.to_owned())) {
        let message = format!(
            "the namespace {:?} of the cluster is being deleted; wait until it is gone",
            attempt.name
        );
        return Err(Denial::forbidden(message));
    }
    Ok(())
}

/// Both the set a cluster leaves and the set it enters have a say.
fn join(attempt: &Attempt<'_>, object: &Value, oracle: &dyn Oracle) -> Result<(), Denial> {
    let (before, after) = (text(attempt.old, SET_LABEL), text(Some(object), SET_LABEL));
    if before == after {
        return Ok(());
    }
    for set in [before, after].into_iter().filter(|set| !set.is_empty()) {
        let right = Access {
            group: names::GROUP,
            resource: "managedclustersets",
            subresource: "join",
            verb: "create",
            name: set.to_owned(),
        };
        if !oracle.answer(&Question::May(right)) {
            let message = format!(
                "user {:?} cannot add/remove a ManagedCluster to/from ManagedClusterSet {set:?}",
                attempt.user
            );
            return Err(Denial::forbidden(message));
        }
    }
    Ok(())
}
