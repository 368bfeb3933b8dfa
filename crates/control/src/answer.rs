//! What an API server means by its answers.
//!
//! Owns the words by which servers say that an object is gone, is another one, is kept by a disruption budget, or still has time
//! to end. What follows from it is for whoever asked.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// What an API server gives as its reason where there is no such object.
const NOT_FOUND: &str = "NotFound";
/// What API servers say where an object is not the one that was meant.
const OTHER_UID: [&str; 2] = ["UID in precondition", "the UID in the precondition"];
/// What an API server gives as the cause where a disruption budget has refused something.
const BUDGET: &str = "DisruptionBudget";
/// What API servers say of a pod that has several disruption budgets.
const MANY_BUDGETS: &str = "more than one PodDisruptionBudget";

/// Whether the API server says that there is no such object. Whoever stands before it says 404 as well, when it has lost the way;
/// then nothing is known of the object.
pub(crate) fn is_missing(status: &kube::core::Status) -> bool {
    status.code == 404 && status.reason == NOT_FOUND
}

/// Whether a deletion was refused because the object of that name has another identity.
pub(crate) fn is_another(status: &kube::core::Status) -> bool {
    status.code == 409 && OTHER_UID.iter().any(|words| status.message.contains(words))
}

/// Whether an eviction was refused by a disruption budget, or by there being several. A server that has too much to do says 429
/// as well; then no budget was asked.
pub(crate) fn is_budget(status: &kube::core::Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    // A budget that allows less than nothing, or has too many evictions on its books, says 403.
    (matches!(status.code, 403 | 429) && causes.any(|cause| cause.reason == BUDGET))
        || (status.code == 500 && status.message.contains(MANY_BUDGETS))
}

/// How long the server wants to be left alone; `None` where it does not say.
pub(crate) fn retry_after(status: &kube::core::Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// What a budget has to say, with the cause that the server gives.
pub(crate) fn budget_message(status: &kube::core::Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<&str> =
        causes.map(|cause| cause.message.as_str()).filter(|message| !message.is_empty()).collect();
    let parts: Vec<&str> = std::iter::once(status.message.as_str()).chain(causes).collect();
    parts.join(" ")
}

/// Whether the answer to a deletion shows an object that is still there: it has time to end, or somebody holds it.
pub(crate) fn still_ends(answer: &str) -> bool {
    serde_json::from_str::<Ending>(answer).is_ok_and(|Ending { metadata }| {
        metadata.deletion_timestamp.is_some()
            && (metadata.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0)
                || metadata.finalizers.is_some_and(|holders| !holders.is_empty()))
    })
}

/// An object on its way out.
#[derive(Deserialize)]
struct Ending {
    metadata: EndingMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndingMetadata {
    deletion_timestamp: Option<IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<IgnoredAny>>,
}
