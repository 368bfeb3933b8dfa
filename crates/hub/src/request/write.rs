//! Writes, as clients ask for them and are answered.
//!
//! Owns the way from a request's body and options to the write stage, and from there to the answer.

use berth_hub_wire::failure::go_type;
use berth_hub_wire::{CreateOptions, ListOptions, PatchOptions, PatchType, ResourceRoute, Shape, Status};
use bytes::Bytes;
use serde_json::Value;

use super::objects::{scope, shaper};
use super::{Call, body};
use crate::read::{self, Selection};
use crate::registry::Resource;
use crate::reply::{self, Reply};
use crate::resource::subresource::Behaviour;
use crate::resource::{
    Act, Answer, Part, Pending, Terms, create as creation, patch as patching, subresource,
    update as updating, warnings_of_body,
};
use crate::write::{self, Written};

/// POST to a collection.
pub(crate) async fn create(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &Bytes,
) -> Result<Reply, Status> {
    let shown = shaper(call, resource, false)?;
    body::check_format(call, resource)?;
    let options = CreateOptions::parse(&call.query)?;
    let manager = call.manager(&options.field_manager);
    let author = call.author();
    let act = Act {
        manager: &manager,
        field_validation: options.field_validation,
        dry_run: options.dry_run,
        ..author.act(resource, route.object_namespace(), "")
    };
    let pending = match creation::begin(&act, body::object_of(call, bytes, resource)?) {
        Ok(pending) => pending,
        Err(status) => {
            // Read once more: what is wrong with a body is rarely asked for.
            let sent = body::object_of(call, bytes, resource)?;
            return Ok(failed(call, &status, &warnings_of_body(&act, &sent)));
        }
    };
    let mut warnings = Vec::new();
    let made = write::create(&author, &act, pending, &mut warnings).await;
    conclude(call, &shown, made, &warnings)
}

/// The answer to a write, or a failure with what the client was warned of on the way there.
fn conclude(
    call: &Call,
    shown: &read::Shaper<'_>,
    written: Result<Written, Status>,
    warnings: &[String],
) -> Result<Reply, Status> {
    written
        .and_then(|written| answer(call, shown, &written))
        .or_else(|status| Ok(failed(call, &status, warnings)))
}

pub(super) fn failed(call: &Call, status: &Status, warnings: &[String]) -> Reply {
    let mut reply = reply::status(status, call.pretty);
    reply::warn(&mut reply, warnings);
    reply
}

/// PUT to an object or a part of it.
pub(crate) async fn update(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &Bytes,
) -> Result<Reply, Status> {
    let shown = shaper(call, resource, false)?;
    let options = CreateOptions::parse_update(&call.query)?;
    let manager = call.manager(&options.field_manager);
    let author = call.author();
    let act = Act {
        manager: &manager,
        field_validation: options.field_validation,
        dry_run: options.dry_run,
        part: part(resource, route),
        ..author.act(resource, route.object_namespace(), &route.name)
    };
    let sent = body::object_of(call, bytes, resource)?;
    change(
        call,
        &act,
        &shown,
        |live| updating::begin(&act, sent.clone(), live),
        |_| warnings_of_body(&act, &sent),
    )
    .await
}

/// PATCH of an object or a part of it.
pub(crate) async fn patch(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &Bytes,
) -> Result<Reply, Status> {
    let kind = PatchType::parse(call.header(http::header::CONTENT_TYPE), !resource.is_custom())?;
    let shown = shaper(call, resource, false)?;
    let options = PatchOptions::parse(&call.query, kind)?;
    let manager = call.manager(&options.field_manager);
    let author = call.author();
    let act = Act {
        manager: &manager,
        field_validation: options.field_validation,
        dry_run: options.dry_run,
        part: part(resource, route),
        ..author.act(resource, route.object_namespace(), &route.name)
    };
    let patch = patching::read(kind, options.field_validation, bytes, options.force).map_err(|status| {
        // What a patch says is only looked at once there is something to patch.
        let creates = kind == PatchType::Apply && act.part == Part::Whole;
        let missing = !creates && call.core.find(resource, act.object_namespace(), act.name).is_none();
        if missing { Status::not_found(resource.group_resource(), act.name) } else { status }
    })?;
    change(
        call,
        &act,
        &shown,
        |live| patching::begin(&act, &patch, live),
        |live| patching::warnings(&act, &patch, live),
    )
    .await
}

fn part(resource: &Resource, route: &ResourceRoute) -> Part {
    match subresource::find(resource, &route.subresource) {
        Some(Behaviour::Part(part)) => part,
        _ => Part::Whole,
    }
}

/// Updates and patches. `warned` says what the client is warned of when `begin` fails.
async fn change(
    call: &Call,
    act: &Act<'_>,
    shown: &read::Shaper<'_>,
    begin: impl Fn(Option<&Value>) -> Result<Pending, Status>,
    warned: impl Fn(Option<&Value>) -> Vec<String>,
) -> Result<Reply, Status> {
    let mut warnings = Vec::new();
    let changed = write::change(&call.author(), act, begin, warned, &mut warnings).await;
    conclude(call, shown, changed, &warnings)
}

/// DELETE of an object.
pub(crate) async fn delete(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &Bytes,
) -> Result<Reply, Status> {
    let shown = shaper(call, resource, false)?;
    let options = body::delete_options(call, bytes)?;
    let author = call.author();
    let act = Act { dry_run: options.dry_run, ..author.act(resource, route.object_namespace(), &route.name) };
    let mut warnings = Vec::new();
    let removed = write::remove(&author, &act, &Terms::from(&options), &mut warnings).await;
    conclude(call, &shown, removed, &warnings)
}

/// DELETE of a collection: each selected object on its own, as if deleted one by one.
pub(crate) async fn delete_collection(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &Bytes,
) -> Result<Reply, Status> {
    let shown = shaper(call, resource, false)?;
    let options = ListOptions::parse(&call.query)?;
    let selection = Selection::new(resource, &options)?;
    let terms = body::delete_options(call, bytes)?;
    let page = read::page(&call.core, &shown, scope(resource, route), &selection, &options).await?;
    let author = call.author();
    let mut warnings = Vec::new();
    for entry in &page.entries {
        let key = entry.key();
        let act = Act { dry_run: terms.dry_run, ..author.act(resource, &key.namespace, &key.name) };
        let mut warned = Vec::new();
        match write::remove(&author, &act, &Terms::from(&terms), &mut warned).await {
            Ok(removed) => warnings.extend(removed.outcome.warnings),
            Err(status) if status.code() == 404 => {}
            Err(status) => {
                warnings.extend(warned);
                return Ok(failed(call, &status, &warnings));
            }
        }
    }
    // Only now: what the client cannot be shown is gone all the same.
    if matches!(shown.answer.shape, Shape::PartialObjectMetadata(_)) {
        return Err(Status::is_a_list(&go_type(&resource.group, &resource.list_kind, resource.is_custom())));
    }
    let body = shown.many(&page.meta, &page.entries);
    let mut reply = reply::whole(200, shown.answer.content_type(), body);
    reply::warn(&mut reply, &warnings);
    Ok(reply)
}

fn answer(call: &Call, shown: &read::Shaper<'_>, written: &Written) -> Result<Reply, Status> {
    let outcome = &written.outcome;
    let body = match (&outcome.answer, written.entries.last(), written.read.as_ref()) {
        (Answer::Written, Some(entry), _) | (Answer::Live, _, Some(entry)) => shown.one(entry),
        (Answer::Written, None, _) => shown.value(outcome.object().unwrap_or(&Value::Null)),
        (Answer::Live, _, None) => return Err(Status::internal("there is no object to answer with")),
        (Answer::Object(object), ..) => shown.value(object),
        (Answer::Status(status), ..) => {
            let mut reply = reply::status(status, call.pretty);
            *reply.status_mut() = http::StatusCode::from_u16(outcome.code).unwrap_or_default();
            reply::warn(&mut reply, &outcome.warnings);
            return Ok(reply);
        }
    };
    let mut reply = reply::whole(outcome.code, shown.answer.content_type(), body);
    reply::warn(&mut reply, &outcome.warnings);
    Ok(reply)
}
