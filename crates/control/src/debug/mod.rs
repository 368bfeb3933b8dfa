//! Questions about placements over HTTPS: `/debug/placements/`, as Open Cluster Management's debugger answers them, with
//! the reasons beside.
//!
//! ```text
//!  curl ──▶ Listener ──▶ handler ──▶ gate (who? may they?) ──▶ API server: TokenReview, SubjectAccessReview
//!                           │
//!                           └──▶ question ──Inquirer──▶ the loop's model      answer ──▶ JSON, outside the loop
//! ```
//!
//! Owns who may ask what, what an answer looks like, and how much of the loop's time questions may take. Whoever may read
//! the Placements of a namespace sees what they could select, and nothing of clusters that no set of theirs contains. It
//! writes nothing: a Placement that is sent is tried in the model and taken out again.

mod answer;
mod cache;
mod gate;
mod handler;
mod question;

pub use handler::router;
