//! What a write would move, asked of whoever has the fleet in sight.

use berth_control::Inquirer;
use berth_engine::Delta;

/// What to tell whoever makes this change; nothing where nothing leaves, or nobody knows.
pub(crate) async fn warning(inquirer: &Inquirer, change: Delta) -> Option<String> {
    let told = inquirer.ask(move |mut sight| sight.impact(&change)).await;
    match told {
        Ok(impact) => impact.filter(|impact| !impact.is_none()).map(|impact| impact.to_string()),
        Err(unanswered) => {
            tracing::debug!(%unanswered, "what a change would move is not known");
            None
        }
    }
}
