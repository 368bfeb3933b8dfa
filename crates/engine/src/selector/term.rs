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
    /// Whether any expression asks for the cluster's scores.
    pub(crate) fn reads_scores(&self) -> bool {
        self.expressions.iter().any(Expression::reads_scores)
    }
}
