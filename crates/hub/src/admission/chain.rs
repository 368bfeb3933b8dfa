//! The functions of a hub, in the order they are asked.

use std::sync::Arc;

use berth_hub_wire::Status;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{Admission, Lookup, Request, Review};

/// The hub's own functions and then those handed in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain(Arc<[Arc<dyn Admission>]>);

impl FromIterator<Arc<dyn Admission>> for Chain {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Admission>>>(functions: I) -> Self {
        Self(functions.into_iter().collect())
    }
}

impl Chain {
    /// Lets each change the object, one after the other; the object as the last leaves it, or none if nobody is concerned.
    pub(crate) fn mutate(
        &self,
        request: &Request<'_>,
        lookup: &dyn Lookup,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Value>, Status> {
        let mut changed = None;
        for function in self.concerned(request) {
            let object = changed.get_or_insert_with(|| object.clone());
            function.mutate(&mut Review::new(*request, lookup, warnings), object)?;
        }
        Ok(changed)
    }

    /// Lets each refuse the write; the first refusal counts.
    pub(crate) fn validate(
        &self,
        request: &Request<'_>,
        lookup: &dyn Lookup,
        object: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        self.concerned(request)
            .try_for_each(|function| function.validate(&mut Review::new(*request, lookup, warnings), object))
    }

    /// What there is to find out for whoever makes a write.
    pub(crate) fn advise(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
    ) -> Vec<BoxFuture<'static, Vec<String>>> {
        self.concerned(request).filter_map(|function| function.advise(request, object)).collect()
    }

    fn concerned(&self, request: &Request<'_>) -> impl Iterator<Item = &Arc<dyn Admission>> {
        self.0.iter().filter(|function| function.concerns(request))
    }
}
