//! One way to match a cluster.

use super::expression::Expression;
use super::requirement::Requirement;

/// One way to match a cluster: everything in it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Term {
    /// Requirements on labels and claims, sorted.
    pub requirements: Box<[Requirement]>,
    /// The cluster is one of these, sorted; `None` means any.
    pub names: Option<Box<[Box<str>]>>,
    /// CEL over the ManagedCluster.
    pub expressions: Box<[Expression]>,
}

impl Term {
    /// Whether a cluster of this name is one of those named, if any are.
    pub(crate) fn admits_name(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.binary_search_by(|other| (**other).cmp(name)).is_ok())
    }

    /// Whether any expression asks for the cluster's scores.
    pub(crate) fn reads_scores(&self) -> bool {
        self.expressions.iter().any(Expression::reads_scores)
    }
}
