//! The life of nodes: whether they are heard of, and what follows.
//!
//! Owns every verdict of a node lifecycle controller: when a node's conditions turn Unknown, which taints follow from its
//! conditions, how fast nodes may be tainted when a zone is in trouble, and which pods are told that they are not ready. It
//! never says that a node is well, which only its kubelet knows, and it makes no pod leave: that is [`crate::evict`]'s
//! business, by the taints.
//!
//! ```text
//!   life: lease, heartbeat -> silent from   silence: conditions -> Unknown
//!   zones: how many are ready -> pace, everything down      turns: whose turn it is
//!   falls: who comes and goes      taints: conditions x turn -> taints      labels      pods
//!   lifecycle: all of it for one node at a time
//! ```

mod falls;
#[cfg(test)]
mod fixtures;
mod labels;
mod life;
mod lifecycle;
pub mod names;
mod pods;
mod ready;
mod silence;
mod taints;
mod turns;
mod zone_state;
mod zones;

pub use falls::{Falls, FlapPolicy};
pub use labels::missing_labels;
pub use life::{Attention, Graces, Life, Signs};
pub use lifecycle::{Judgement, Lifecycle, LifecyclePolicy, Silence};
pub use pods::Told;
pub use ready::Ready;
pub use silence::silenced;
pub use taints::{Execute, WantedTaints, executes, wanted_taints};
pub use turns::Turns;
pub use zone_state::ZoneState;
pub use zones::{DisruptionPolicy, Standing, WhenAllDown, ZoneCounts, ZoneNews, Zones};
