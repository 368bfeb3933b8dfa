//! `berth version`

use crate::console::{Console, Outcome};

/// Prints the version.
pub fn run(console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    writeln!(console.out, "berth {}", env!("CARGO_PKG_VERSION"))?;
    Ok(Outcome::Done)
}
