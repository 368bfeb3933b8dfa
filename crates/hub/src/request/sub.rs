//! Subresources that are more than a part of their object: eviction, binding, scale, token.
//!
//! Owns the table of who answers what. Each decides in a pure function of its own; here it is read and committed.

use std::sync::Arc;

use axum::body::Body;
use berth_hub_guard::ServiceAccountRef;
use berth_hub_store::{Change, CommitError, Draft, Entry, Expect, ResourceKey, Write};
use berth_hub_wire::media::negotiate;
use berth_hub_wire::{
    CreateOptions, DeleteOptions, GroupVersionKind, PatchOptions, PatchType, ResourceRoute, Shape, Status,
    Verb,
};
use serde_json::Value;

use super::admission::{self, Operation};
use super::caller::refused;
use super::write::{self, Lost, until_committed};
use super::{Call, Reply, body, reply};
use crate::dice;
use crate::read::{parse, present_value, scale_table};
use crate::registry::Resource;
use crate::resource::subresource::Behaviour;
use crate::resource::{Act, FieldValidation, Mint, Part, Patch, Terms, binding, eviction, scale};
use berth_hub_wire::body::Decoded;

/// Answers a request about a subresource.
pub(crate) async fn answer(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    behaviour: Behaviour,
    body: Body,
) -> Result<Reply, Status> {
    let bytes = body::read(call, body).await?;
    match (behaviour, route.verb) {
        (Behaviour::Eviction, Verb::Create) => evict(call, resource, route, &bytes).await,
        (Behaviour::Binding, Verb::Create) => bind(call, resource, route, &bytes).await,
        (Behaviour::Token, Verb::Create) => token(call, resource, route, &bytes),
        (Behaviour::Scale, Verb::Get) => {
            let entry = found(call, resource, route)?;
            let shown = scale::show(resource, &present_value(resource, &entry))?;
            let shaper = super::objects::shaper(call, resource, false)?;
            Ok(match shaper.answer.shape {
                Shape::Table(version) => {
                    let table = scale_table(&shown, version, shaper.table.include_object, call.now);
                    reply::whole(200, shaper.answer.content_type(), table)
                }
                _ => object(call, 200, &shown),
            })
        }
        (Behaviour::Scale, Verb::Update | Verb::Patch) => rescale(call, resource, route, &bytes).await,
        (_, verb) => Err(Status::method_not_allowed(resource.group_resource(), verb.as_str())),
    }
}

fn found(call: &Call, resource: &Resource, route: &ResourceRoute) -> Result<Arc<Entry>, Status> {
    call.core
        .find(resource, route.object_namespace(), &route.name)
        .ok_or_else(|| Status::not_found(resource.group_resource(), &route.name))
}

fn object(call: &Call, code: u16, object: &Value) -> Reply {
    let pretty = call.pretty || negotiate(call.accept().as_deref()).is_ok_and(|answer| answer.pretty);
    reply::json(code, berth_hub_wire::envelope::encode(object, pretty))
}

fn act<'a>(
    call: &Call,
    resource: &'a Resource,
    route: &'a ResourceRoute,
    manager: &'a str,
    dry_run: bool,
) -> Act<'a> {
    Act {
        resource,
        namespace: route.object_namespace(),
        name: &route.name,
        part: Part::Whole,
        manager,
        field_validation: FieldValidation::Ignore,
        dry_run,
        now: call.now,
    }
}

/// A deletion that asks the pod's budget first.
async fn evict(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &[u8],
) -> Result<Reply, Status> {
    let options = CreateOptions::parse(&call.query)?;
    let sent = body::object(call, bytes, &GroupVersionKind::new("policy", "v1", "Eviction"), false)?.value;
    let deletion = DeleteOptions::parse(&call.query, sent.get("deleteOptions"))?;
    let order =
        eviction::read(&route.name, &sent, Terms::from(&deletion), options.dry_run, deletion.dry_run)?;
    let act = act(call, resource, route, "", order.dry_run);
    let budgets_key = ResourceKey::new("policy", "poddisruptionbudgets");
    admission::ask(call, &act, ("eviction", "policy", "Eviction"), &sent).await?;
    until_committed!(act, {
        let entry = found(call, resource, route)?;
        let pod = present_value(resource, &entry);
        let budgets: Vec<Arc<Entry>> = call
            .core
            .all(&budgets_key)
            .into_iter()
            .filter(|budget| *budget.key().namespace == *route.namespace)
            .collect();
        let values: Vec<Value> = budgets.iter().map(|budget| parse(budget.json())).collect();
        let evicted = eviction::decide(&act, &order, &pod, &values)?;
        admission::validate_deletion(call, &act, &pod, &Terms::from(&deletion), &mut Vec::new()).await?;
        let mut writes = write::writes(&call.core, resource, &evicted.steps, Some(&entry))?;
        if let Some(budget) = &evicted.budget {
            let name = crate::resource::meta::text(budget, "name");
            let read = budgets
                .iter()
                .find(|entry| *entry.key().name == *name)
                .ok_or_else(|| Status::internal("the budget vanished"))?;
            let draft = Draft::new(budget).map_err(|error| Status::internal(&error.to_string()))?;
            writes.push(Write {
                key: read.key().clone(),
                expect: Expect::At(read.revision()),
                change: Change::Put(draft),
            });
        }
        if writes.is_empty() || order.dry_run {
            return Ok(created(call, &eviction::done()));
        }
        match call.core.commit(Vec::new(), writes).await {
            Ok(_) => Ok(created(call, &eviction::done())),
            Err(CommitError::Conflict { current, .. }) => Err(Lost::Race(current)),
            Err(error) => Err(Lost::Refused(write::unavailable(&error))),
        }
    })
}

fn created(call: &Call, status: &Status) -> Reply {
    let mut reply = reply::status(status, call.pretty);
    *reply.status_mut() = http::StatusCode::CREATED;
    reply
}

/// A scheduler's choice of node.
async fn bind(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &[u8],
) -> Result<Reply, Status> {
    let options = CreateOptions::parse(&call.query)?;
    let sent = body::object(call, bytes, &GroupVersionKind::new("", "v1", "Binding"), false)?.value;
    let manager = call.manager(&options.field_manager);
    let act = act(call, resource, route, &manager, options.dry_run);
    admission::ask(call, &act, ("binding", "", "Binding"), &sent).await?;
    until_committed!(act, {
        let entry = found(call, resource, route)?;
        let pod = present_value(resource, &entry);
        let bound = binding::decide(&route.name, &sent, &pod, call.now)?;
        let outcome = crate::resource::Outcome::written(crate::resource::Step::Update(bound), Vec::new());
        write::commit(call, &act, &outcome, Some(&entry), Vec::new()).await?;
        Ok(created(call, &eviction::done()))
    })
}

/// A token for a service account.
fn token(call: &Call, resource: &Resource, route: &ResourceRoute, bytes: &[u8]) -> Result<Reply, Status> {
    let expected = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest");
    let sent = body::object(call, bytes, &expected, false)?.value;
    let entry = found(call, resource, route)?;
    let account = ServiceAccountRef {
        namespace: route.namespace.clone(),
        name: route.name.clone(),
        uid: entry.uid().to_owned(),
    };
    let accounts = call.core.callers.authenticator().accounts();
    let answer = accounts.request(&sent, &account, call.now, &*call.core).map_err(refused)?;
    Ok(object(call, 201, &answer))
}

/// Another number of replicas.
async fn rescale(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &[u8],
) -> Result<Reply, Status> {
    enum Sent {
        Scale(Decoded),
        Patch(Patch),
    }
    let (manager, dry_run, validation, sent) = if route.verb == Verb::Patch {
        let kind = PatchType::parse(call.header(http::header::CONTENT_TYPE), !resource.is_custom())?;
        let options = PatchOptions::parse(&call.query, kind)?;
        let patch = crate::resource::patch::read(kind, options.field_validation, bytes, options.force)
            .or_else(|status| found(call, resource, route).and(Err(status)))?;
        (options.field_manager, options.dry_run, options.field_validation, Sent::Patch(patch))
    } else {
        let options = CreateOptions::parse_update(&call.query)?;
        let scale = body::object(call, bytes, &GroupVersionKind::new("autoscaling", "v1", "Scale"), false)?;
        (options.field_manager, options.dry_run, options.field_validation, Sent::Scale(scale))
    };
    let manager = call.manager(&manager);
    let act = Act {
        part: Part::Scale,
        field_validation: validation,
        ..act(call, resource, route, &manager, dry_run)
    };
    until_committed!(act, {
        let entry = found(call, resource, route);
        let live = entry.as_ref().ok().map(|entry| present_value(resource, entry));
        // What is wrong with a body is said before that there is nothing to scale.
        let pending = match &sent {
            Sent::Scale(scale) => scale::begin_update(&act, scale.clone(), live.as_ref())?,
            Sent::Patch(patch) => scale::begin_patch(&act, patch, live.as_ref())?,
        };
        let entry = entry?;
        let live = present_value(resource, &entry);
        let pending =
            admission::mutate(call, &act, Operation::Update, pending, None, &mut Vec::new()).await?;
        let mut outcome =
            scale::finish(&act, pending, &live, &Mint { uid: dice::uid(), random: dice::roll() })?;
        outcome.warnings.extend(
            admission::validate(
                call,
                &act,
                Operation::Update,
                outcome.object(),
                Some(&live),
                &mut Vec::new(),
            )
            .await?,
        );
        let written = write::commit(call, &act, &outcome, Some(&entry), Vec::new()).await?;
        let now = written.last().map(|entry| present_value(resource, entry));
        let shown = now.as_ref().or(outcome.object()).unwrap_or(&live);
        let mut reply = object(call, 200, &scale::show(resource, shown)?);
        reply::warn(&mut reply, &outcome.warnings);
        Ok(reply)
    })
}
