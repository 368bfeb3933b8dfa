//! `berth crds`: the definitions of our kinds, for a server that has none.

use crate::console::{Console, Outcome};
use crate::manifest::write_yaml_document;

/// Prints them as a stream of documents.
pub fn run(console: &mut Console<'_>) -> anyhow::Result<Outcome> {
    for (index, definition) in berth_api::crds().iter().enumerate() {
        write_yaml_document(&mut console.out, &serde_json::to_value(definition)?, index == 0)?;
    }
    Ok(Outcome::Done)
}
