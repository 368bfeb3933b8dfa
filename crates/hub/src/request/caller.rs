//! Who sends a request, and whether they may.
//!
//! Owns the order: the connection's certificate, then a token, then nobody; then whom they act for; then policy.

use std::sync::Arc;

use berth_hub_guard::{Attributes, ResourceTarget, User, impersonate};
use berth_hub_wire::{ResourceRoute, Route, Status};
use http::header;

use super::{Call, Peer};
use crate::refused::refused;

/// The user a request is made as.
pub(crate) fn identify(call: &Call, peer: &Peer, route: &Route) -> Result<Arc<User>, Status> {
    let user = match peer {
        Peer::InProcess(user) => Arc::clone(user),
        Peer::Socket { certificate, .. } => {
            let authenticator = &call.core.authenticator;
            authenticator
                .authenticate(certificate, call.header(header::AUTHORIZATION), call.now, &*call.core)
                .map_err(refused)?
        }
    };
    let method = call.method.as_str().to_ascii_lowercase();
    let acted = call
        .core
        .with_policy(|policy| impersonate(&call.headers, &attributes(&user, call, route, &method), policy));
    Ok(acted.map_err(refused)?.map_or(user, Arc::new))
}

/// Whether policy lets the user do this.
pub(crate) fn authorize(call: &Call, route: &Route) -> Result<(), Status> {
    let method = call.method.as_str().to_ascii_lowercase();
    let attributes = attributes(&call.user, call, route, &method);
    call.core.authorize(&attributes).into_result(&attributes).map_err(refused)
}

fn attributes<'a>(user: &'a User, call: &'a Call, route: &'a Route, method: &'a str) -> Attributes<'a> {
    match route {
        Route::Resource(route) => Attributes::resource(user, route.verb.as_str(), target(route)),
        _ => Attributes::path(user, method, &call.path),
    }
}

fn target(route: &ResourceRoute) -> ResourceTarget<'_> {
    ResourceTarget {
        group: &route.group,
        version: &route.version,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: &route.namespace,
        name: route.attribute_name(),
    }
}
