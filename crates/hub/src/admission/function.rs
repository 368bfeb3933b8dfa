//! A function in this process that has a say in writes, as a webhook has, without the way there and back.

use std::fmt;

use berth_hub_wire::Status;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{Request, Review};

/// A function that has a say in writes. It is called in the task of the request it is asked about, so it must not wait
/// for anything: what it needs to know it [looks up](Review::find) or carries with it. Only [advice](Self::advise) may.
///
/// A write that loses a race is decided again with what is there now, and the function is asked again. It must come to
/// the same when asked twice, and must not count on the write happening: another may refuse it yet.
pub trait Admission: Send + Sync + fmt::Debug {
    /// Whether it has a say in this request. Every write is held against every function, so this is to be cheap.
    fn concerns(&self, request: &Request<'_>) -> bool;

    /// Changes the object or refuses it. It has its defaults already; the schema is held against what all functions and
    /// webhooks leave, and defaults are filled in again. Not asked about deletions.
    fn mutate(&self, review: &mut Review<'_>, object: &mut Value) -> Result<(), Status> {
        let _ = (review, object);
        Ok(())
    }

    /// Refuses the write or lets it be. The object is what would be stored; there is none in a deletion. Not asked when an
    /// update changes nothing.
    fn validate(&self, review: &mut Review<'_>, object: Option<&Value>) -> Result<(), Status> {
        let _ = (review, object);
        Ok(())
    }

    /// What is worth saying to whoever makes a write that nobody refused, where finding that out takes a moment. The hub
    /// waits for it, and not for long: what is not known in time is not said. None where there is nothing to find out.
    fn advise(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
    ) -> Option<BoxFuture<'static, Vec<String>>> {
        let _ = (request, object);
        None
    }
}
