//! Which clusters a placement selects.
//!
//! ```text
//!   Placement --compile--> Rule
//!   feasible: set members -> predicates -> taints        (bitmaps)
//!   score:    Balance, Steady, resources, add-ons        (upstream's arithmetic)
//!   ranking / spread: the best N, apart if asked         -> selection
//!   group:    named groups, sizes, slices of 100         -> Decision
//!   publish:  Decision -> PlacementDecisions, status
//!   transition: what is, what should be -> writes in an order that loses nobody
//! ```
//!
//! Never writes anything and never forgets a reason: what is left out here can be asked of `explain`, which runs the
//! same steps.

mod compile;
mod decide;
mod decision;
mod feasible;
mod group;
mod mistake;
mod note;
mod publish;
mod ranking;
mod rule;
mod score;
mod spread;
mod threshold;
mod tiers;
mod transition;

pub use compile::{Complaint, DETAILS_ANNOTATION, NAME_CHARS_MAX, compile};
pub use decision::{Cause, Decision, Group, NextChange, Outcome, Pick};
pub use mistake::Mistake;
pub use publish::{Published, publish};
pub use rule::{Details, GroupSize, Groups, Order, Prioritizer, Rule, SpreadTerm, Topology};
pub use spread::Obstacle;
pub use transition::{SliceStep, transition};

pub(crate) use decide::{Reach, decide, next_leave, pick};
pub(crate) use feasible::{candidates, feasible, members};
pub(crate) use ranking::{Ranked, Ranking, best};
pub(crate) use rule::Resource;
pub(crate) use score::Scorer;
pub(crate) use spread::Spreader;
pub(crate) use threshold::{Newcomer, Threshold, judge};
