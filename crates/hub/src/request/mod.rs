//! What happens to a request: who sends it, whether they may, what it asks, what it is answered.
//!
//! ```text
//! route ─ caller (certificate, token, impersonation) ─ policy ─┬─ about    discovery, OpenAPI, health, metrics, backup
//!                                                             ├─ objects  get, list, watch
//!                                                             ├─ write    create, update, patch, delete: decode ─ resource ─ admission ─ commit
//!                                                             ├─ sub      eviction, binding, scale, token
//!                                                             └─ review   may somebody do something? who am I?
//! ```
//!
//! Owns the order of these steps and nothing of what they decide.

mod about;
mod body;
mod call;
mod caller;
mod objects;
mod peer;
mod review;
mod sub;
mod write;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use berth_hub_wire::media::is_pretty;
use berth_hub_wire::{Query, Route, Status, Verb, route};
use http::{Request, header};

use crate::core::Core;
use crate::registry::Resource;
use crate::reply::{self, Reply};

pub use about::BACKUP_PATH;
pub(crate) use call::Call;
pub use peer::Peer;

/// The API as a service. Every request goes through one function: what is served is data, not routes.
pub(crate) fn router(core: Arc<Core>) -> Router {
    Router::new().fallback(handle).with_state(core)
}

async fn handle(State(core): State<Arc<Core>>, request: Request<Body>) -> Reply {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query());
    let text = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let pretty = is_pretty(query.get("pretty"), text(header::USER_AGENT));
    let Some(peer) = parts.extensions.get::<Peer>().cloned() else {
        return reply::status(&Status::internal("the request does not say where it comes from"), pretty);
    };
    let Ok(route) = route::parse(parts.method.as_str(), parts.uri.path(), &query) else {
        // Whatever it is, it is nothing that is served.
        return reply::status(&Status::resource_not_found(), pretty);
    };
    let is_watch = matches!(&route, Route::Resource(resource) if resource.verb == Verb::Watch);
    let call = Call {
        registry: core.registry(),
        now: core.clock.now(),
        core: Arc::clone(&core),
        method: parts.method,
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        query,
        pretty,
        user: Arc::default(),
    };
    // Only what is served is named, whatever the answer: paths are the callers' to invent.
    let (verb, resource) = match &route {
        Route::Resource(route) => (
            route.verb.as_str(),
            call.registry.find(&route.group, &route.version, &route.resource).map(Arc::clone),
        ),
        _ => ("get", None),
    };
    let reply = answer(call, route, resource.as_ref(), peer, body)
        .await
        .unwrap_or_else(|status| reply::status(&status, pretty));
    let took = (!is_watch).then(|| begun.elapsed());
    core.metrics.answered(verb, resource.as_deref(), reply.status().as_u16(), took);
    reply
}

async fn answer(
    mut call: Call,
    route: Route,
    resource: Option<&Arc<Resource>>,
    peer: Peer,
    body: Body,
) -> Result<Reply, Status> {
    if let Route::Health { endpoint, check } = &route {
        return Ok(about::health(&call, endpoint, check));
    }
    call.user = caller::identify(&call, &peer, &route)?;
    caller::authorize(&call, &route)?;
    let _place = call.core.place(&route)?;
    match route {
        Route::Resource(route) => objects::answer(&call, resource, &route, body).await,
        route => about::answer(&call, &route, body).await,
    }
}
