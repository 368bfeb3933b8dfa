//! Something that contenders do one after the other, each from the same state.

use super::arena::Arena;
use super::contender::Contender;
use super::sheet::Sheet;

/// A load, and what "done" means for it.
pub(crate) trait Stage {
    /// What it is called while it runs.
    fn title(&self) -> String;

    /// Lays the load, lets the contender loose on it, notes what was found, and ends the contender.
    async fn measure(&self, arena: &Arena, contender: Contender, sheet: &mut Sheet) -> anyhow::Result<()>;
}
