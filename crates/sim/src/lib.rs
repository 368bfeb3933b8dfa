//! What could happen to a fleet: generated fleets, and the load they put on an API server.
//!
//! ```text
//!  Sample (seed) ──▶ objects ──▶ Load ──▶ API server ──▶ View    who is selected, and since when
//!  fleet (standing) ─┘            └─ steady: changes at a rate
//!  nodes ──▶ nodes and pods ──▶ API server ──▶ Departures    which pods left, and when
//!   └─ rounds: leases, renewed in turn ─┘  └──▶ Sighting     which nodes and pods were given up, and when
//! ```
//!
//! Owns how objects come about and how they get onto a server: the same seed gives the same fleet everywhere, whatever the
//! order they are made in. Never measures, never starts a server or a controller, and decides nothing: what is right is
//! said by whoever asks.

pub mod fleet;
mod load;
mod news;
pub mod nodes;
mod rounds;
mod sample;
mod steady;
mod view;

pub use load::{Load, each, timely};
pub use rounds::Rounds;
pub use sample::Sample;
pub use steady::steadily;
pub use view::{State, View};
