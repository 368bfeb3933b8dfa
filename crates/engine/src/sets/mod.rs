//! Cluster sets beyond placement: who belongs to them, which always exist, and who may use them.
//!
//! ```text
//!   clusters x selectors --membership--> ClusterSetEmpty
//!   `default`, `global`  --standard----> created, their selector put right
//!   bindings             --binding-----> Bound
//!   ClusterRoles x ClusterRoleBindings --grant--> the bindings a namespace is entitled to
//! ```
//!
//! Whom a placement selects from them is `select`'s business, over the model's own index: that one leaves out clusters
//! being deleted, which still count as members here, and either may run without the other.

mod binding;
mod grant;
mod membership;
mod rights;
mod standard;

pub use binding::bound_condition;
pub use grant::{GrantChanges, Grants, is_ours};
pub use membership::{Memberships, empty_condition};
pub use rights::Rights;
pub use standard::{StandardSet, StandardSetFix};
