//! What a hub would decide for every Placement of a world.
//!
//! ```text
//! World --Planner--> one Settled after another --> Plan --> objects | overview | difference
//! ```
//!
//! Owns the order in which placements are decided (by namespace and name) and the feeding of each decision back into
//! the engine's model, so that the next one sees it. Never decides by itself and never writes anywhere.

mod difference;
mod groups;
mod objects;
mod overview;
mod planner;
mod words;

pub use difference::{Difference, write_difference};
pub use groups::{Regrouped, Seat};
pub use objects::{objects, without_uid, write_objects};
pub use overview::write_overview;
pub use planner::{Idle, Move, Plan, Planner, Reason, Reasons, Sense, Settled};
pub use words::{Detail, MOVES_SHOWN_MAX};
