//! Requests about resources: which resource, which verb.

use std::time::Duration;

use axum::body::Body;
use berth_hub_wire::failure::go_type;
use berth_hub_wire::media::{Endpoint, negotiate_at, negotiate_watch_at};
use berth_hub_wire::{GetOptions, ListOptions, ResourceRoute, Shape, Status, TableOptions, Verb};
use std::sync::Arc;

use super::{Call, body, review, sub, write};
use crate::read::{self, Selection, Shaper, Watching};
use crate::registry::Resource;
use crate::reply::{self, Reply};
use crate::resource::subresource::{self, Behaviour};

/// The longest a watch lasts, whatever its client asks for.
const WATCH_MAX: Duration = Duration::from_hours(24);

/// Answers a request about a resource.
pub(crate) async fn answer(
    call: &Call,
    resource: Option<&Arc<Resource>>,
    route: &ResourceRoute,
    body: Body,
) -> Result<Reply, Status> {
    let Some(resource) = resource else { return missing(call, &route.group, &route.version) };
    // A namespaced resource has no objects outside of namespaces, and the other way round.
    // A namespace is in itself alone: under another one it would be reached with the rights that hold there.
    let placed = if route.is_namespace_object() {
        route.namespace == route.name
    } else {
        resource.namespaced || route.namespace.is_empty()
    };
    let addressed = !resource.namespaced || !route.namespace.is_empty() || route.name.is_empty();
    let known = route.subresource.is_empty() || subresource::find(resource, &route.subresource).is_some();
    if placed && addressed && !known && resource.is_custom() {
        return Err(Status::not_found(resource.group_resource(), &route.name));
    }
    // What follows a subresource of a custom resource is not looked at.
    let ends = route.rest.is_empty() || resource.is_custom();
    if !placed || !addressed || !known || !ends {
        return missing(call, &route.group, &route.version);
    }
    if resource.is_stored()
        && route.subresource.is_empty()
        && !resource.verbs().contains(&route.verb.as_str())
    {
        return Err(if resource.is_custom() {
            Status::method_not_allowed(resource.group_resource(), route.verb.as_str())
        } else {
            Status::method_not_served()
        });
    }
    if !resource.is_stored() {
        return review::answer(call, resource, route, body).await;
    }
    let behaviour = subresource::find(resource, &route.subresource);
    let addressed = !route.name.is_empty();
    let mut reply = match (behaviour, route.verb) {
        (None | Some(Behaviour::Part(_)), Verb::Get) => get(call, resource, route).await?,
        (None, Verb::List) => list(call, resource, route).await?,
        (None, Verb::Watch) => watch(call, resource, route)?,
        (None, Verb::Create) if !addressed && (!resource.namespaced || !route.namespace.is_empty()) => {
            let bytes = body::read(call, body).await?;
            write::create(call, resource, route, &bytes).await?
        }
        (None | Some(Behaviour::Part(_)), Verb::Update) if addressed => {
            let bytes = body::read(call, body).await?;
            write::update(call, resource, route, &bytes).await?
        }
        (None | Some(Behaviour::Part(_)), Verb::Patch) if addressed => {
            let bytes = body::read(call, body).await?;
            write::patch(call, resource, route, &bytes).await?
        }
        (None, Verb::Delete) => {
            let bytes = body::read(call, body).await?;
            write::delete(call, resource, route, &bytes).await?
        }
        (None, Verb::DeleteCollection) => {
            let bytes = body::read(call, body).await?;
            write::delete_collection(call, resource, route, &bytes).await?
        }
        (Some(behaviour), _) if !matches!(behaviour, Behaviour::Part(_)) => {
            sub::answer(call, resource, route, behaviour, body).await?
        }
        _ if !resource.is_custom() => return Err(Status::method_not_served()),
        (_, Verb::Update) => return Err(Status::bad_request("name must be provided")),
        (_, verb) => return Err(Status::method_not_allowed(resource.group_resource(), verb.as_str())),
    };
    if let Some(warning) = resource.custom().and_then(|version| version.deprecation.as_ref()) {
        reply::warn(&mut reply, std::slice::from_ref(warning));
    }
    Ok(reply)
}

/// What a path below a group version answers that nothing is served at: a status where built-in kinds are served, the
/// plain page elsewhere.
fn missing(call: &Call, group: &str, version: &str) -> Result<Reply, Status> {
    let builtin = call
        .registry
        .all()
        .iter()
        .any(|known| !known.is_custom() && *known.group == *group && *known.version == *version);
    if builtin { Err(Status::resource_not_found()) } else { Ok(reply::not_served()) }
}

/// How this request wants objects shown.
pub(crate) fn shaper<'a>(
    call: &Call,
    resource: &'a Resource,
    collection: bool,
) -> Result<Shaper<'a>, Status> {
    let mut answer = negotiate_at(call.accept().as_deref(), endpoint(resource, collection))?;
    answer.pretty |= call.pretty;
    Ok(Shaper { resource, answer, table: TableOptions::parse(&call.query)?, now: call.now })
}

async fn get(call: &Call, resource: &Resource, route: &ResourceRoute) -> Result<Reply, Status> {
    let shaper = shaper(call, resource, false)?;
    if matches!(shaper.answer.shape, Shape::PartialObjectMetadataList(_)) {
        return Err(Status::is_not_a_list(&go_type(&resource.group, &resource.kind, resource.is_custom())));
    }
    let entry = read::get(
        &call.core,
        resource,
        route.object_namespace(),
        &route.name,
        &GetOptions::parse(&call.query),
    )
    .await?;
    Ok(reply::compressed(
        200,
        shaper.answer.content_type(),
        shaper.one(&entry),
        call.header(http::header::ACCEPT_ENCODING),
    ))
}

fn endpoint(resource: &Resource, collection: bool) -> Endpoint {
    match (resource.is_custom(), collection) {
        (true, _) => Endpoint::Custom,
        (false, false) => Endpoint::BuiltIn,
        (false, true) => Endpoint::BuiltInCollection,
    }
}

/// The namespace a collection is limited to.
pub(crate) fn scope<'a>(resource: &Resource, route: &'a ResourceRoute) -> Option<&'a str> {
    (resource.namespaced && !route.namespace.is_empty()).then_some(&*route.namespace)
}

async fn list(call: &Call, resource: &Resource, route: &ResourceRoute) -> Result<Reply, Status> {
    let shaper = shaper(call, resource, true)?;
    let options = ListOptions::parse(&call.query)?;
    if matches!(shaper.answer.shape, Shape::PartialObjectMetadata(_)) {
        return Err(Status::is_a_list(&go_type(&resource.group, &resource.list_kind, resource.is_custom())));
    }
    let selection = Selection::new(resource, &options)?;
    let body = read::list(&call.core, &shaper, scope(resource, route), &selection, &options).await?;
    Ok(reply::compressed(200, shaper.answer.content_type(), body, call.header(http::header::ACCEPT_ENCODING)))
}

fn watch(call: &Call, resource: &Arc<Resource>, route: &ResourceRoute) -> Result<Reply, Status> {
    let answer = negotiate_watch_at(call.accept().as_deref(), endpoint(resource, true))?;
    let options = ListOptions::parse(&call.query)?;
    let mut selection = Selection::new(resource, &options)?;
    if !route.name.is_empty() {
        selection = selection.named(&route.name);
    }
    let permit = call.core.watch_place()?;
    let end = match options.timeout_seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()).min(WATCH_MAX),
        _ => call.core.watch_end(),
    };
    let watching = Watching {
        core: Arc::clone(&call.core),
        namespace: scope(resource, route).map(str::to_owned),
        resource: Arc::clone(resource),
        selection,
        answer,
        table: TableOptions::parse(&call.query)?,
    };
    read::watch(watching, &options, permit, end)
}
