//! Subresources that are more than a part of their object: eviction, binding, scale, token.
//!
//! Owns the table of who answers what. Each decides in a pure function of its own; here it is read and committed.

use std::sync::Arc;

use axum::body::Body;
use berth_hub_guard::ServiceAccountRef;
use berth_hub_guard::webhook::Operation;
use berth_hub_store::{Change, Draft, Entry, Expect, ResourceKey, Write};
use berth_hub_wire::body::{Decoded, KindRule};
use berth_hub_wire::media::negotiate;
use berth_hub_wire::{
    CreateOptions, DeleteOptions, GroupVersionKind, PatchOptions, PatchType, ResourceRoute, Shape, Status,
    Verb,
};
use serde_json::Value;

use super::{Call, body};
use crate::dice;
use crate::read::{Shaper, parse, present_value, scale_table};
use crate::refused::refused;
use crate::registry::Resource;
use crate::reply::{self, Reply};
use crate::resource::subresource::Behaviour;
use crate::resource::{Act, Outcome, Part, Patch, Step, Terms, binding, eviction, posted, scale};
use crate::write::{self, Admitting, Posted, until_committed};

/// Answers a request about a subresource.
pub(crate) async fn answer(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    behaviour: Behaviour,
    body: Body,
) -> Result<Reply, Status> {
    // What the client cannot take is said before anything is done.
    let shaper = super::objects::shaper(call, resource, false)?;
    let bytes = body::read(call, body).await?;
    // What the client is warned of when the request fails after all.
    let mut warnings = Vec::new();
    let answered = match (behaviour, route.verb) {
        (Behaviour::Eviction, Verb::Create) => evict(call, resource, route, &bytes, &mut warnings).await,
        (Behaviour::Binding, Verb::Create) => bind(call, resource, route, &bytes, &mut warnings).await,
        (Behaviour::Token, Verb::Create) => token(call, resource, route, &bytes),
        (Behaviour::Scale, Verb::Get) => {
            let entry = found(call, resource, route)?;
            let shown = scale::show(resource, &present_value(resource, &entry))?;
            Ok(scaled(&shaper, &shown))
        }
        (Behaviour::Scale, Verb::Update | Verb::Patch) => {
            rescale(call, &shaper, route, &bytes, &mut warnings).await
        }
        (_, verb) => Err(Status::method_not_allowed(resource.group_resource(), verb.as_str())),
    };
    answered.or_else(|status| Ok(super::write::failed(call, &status, &warnings)))
}

/// A scale in the form the client asked for.
fn scaled(shaper: &Shaper<'_>, scale: &Value) -> Reply {
    let body = match shaper.answer.shape {
        Shape::Table(version) => scale_table(scale, version, shaper.table.include_object, shaper.now),
        // The other forms are the same for every kind.
        _ => shaper.value(scale),
    };
    reply::whole(200, shaper.answer.content_type(), body)
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

/// A deletion that asks the pod's budget first.
async fn evict(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &[u8],
    warnings: &mut Vec<String>,
) -> Result<Reply, Status> {
    body::check_format(call, resource)?;
    let options = CreateOptions::parse(&call.query)?;
    let expected = GroupVersionKind::new("policy", "v1", "Eviction");
    let sent = body::object(call, bytes, &expected, KindRule::FromPath)?;
    let (sent, told) = posted(sent, &expected, &["v1beta1"], options.field_validation)?;
    warnings.clone_from(&told);
    let deletion = DeleteOptions::parse(&call.query, sent.get("deleteOptions"))?;
    let order =
        eviction::read(&route.name, &sent, Terms::from(&deletion), options.dry_run, deletion.dry_run)?;
    let author = call.author();
    let act = Act { dry_run: order.dry_run, ..author.act(resource, route.object_namespace(), &route.name) };
    let budgets_key = ResourceKey::new("policy", "poddisruptionbudgets");
    let posted = Posted { subresource: "eviction", group: "policy", kind: "Eviction" };
    write::ask(&author, &act, posted, &sent).await?;
    until_committed!(act, {
        warnings.clone_from(&told);
        let entry = found(call, resource, route)?;
        let pod = present_value(resource, &entry);
        let budgets = call.core.within(&budgets_key, Some(&route.namespace));
        let values: Vec<Value> = budgets.iter().map(|budget| parse(budget.json())).collect();
        let evicted = eviction::decide(&act, &order, &pod, &values)?;
        write::validate_deletion(&author, &act, &pod, &Terms::from(&deletion), warnings).await?;
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
        if !writes.is_empty() && !order.dry_run {
            write::put(&call.core, Vec::new(), writes).await?;
        }
        let mut reply = created(call, &eviction::done());
        reply::warn(&mut reply, &told);
        Ok(reply)
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
    warnings: &mut Vec<String>,
) -> Result<Reply, Status> {
    body::check_format(call, resource)?;
    let options = CreateOptions::parse(&call.query)?;
    let expected = GroupVersionKind::new("", "v1", "Binding");
    let sent = body::object(call, bytes, &expected, KindRule::FromPath)?;
    let (sent, told) = posted(sent, &expected, &[], options.field_validation)?;
    warnings.clone_from(&told);
    let manager = call.manager(&options.field_manager);
    let author = call.author();
    let act = Act {
        manager: &manager,
        dry_run: options.dry_run,
        ..author.act(resource, route.object_namespace(), &route.name)
    };
    binding::check(&route.name, &sent)?;
    let posted = Posted { subresource: "binding", group: "", kind: "Binding" };
    write::ask(&author, &act, posted, &sent).await?;
    until_committed!(act, {
        let entry = found(call, resource, route)?;
        let pod = present_value(resource, &entry);
        let bound = binding::decide(&route.name, &sent, &pod, call.now)?;
        let outcome = Outcome::written(Step::Update(bound), Vec::new());
        write::commit(&author, &act, &outcome, Some(&entry), Vec::new()).await?;
        let mut reply = created(call, &eviction::done());
        reply::warn(&mut reply, &told);
        Ok(reply)
    })
}

/// A token for a service account.
fn token(call: &Call, resource: &Resource, route: &ResourceRoute, bytes: &[u8]) -> Result<Reply, Status> {
    let expected = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest");
    let sent = body::object(call, bytes, &expected, KindRule::FromPath)?.value;
    let entry = found(call, resource, route)?;
    let account = ServiceAccountRef {
        namespace: route.namespace.clone(),
        name: route.name.clone(),
        uid: entry.uid().to_owned(),
    };
    let accounts = call.core.authenticator.accounts();
    let answer = accounts.request(&sent, &account, call.now, &*call.core).map_err(refused)?;
    Ok(object(call, 201, &answer))
}

/// Another number of replicas.
async fn rescale(
    call: &Call,
    shaper: &Shaper<'_>,
    route: &ResourceRoute,
    bytes: &[u8],
    warnings: &mut Vec<String>,
) -> Result<Reply, Status> {
    enum Sent {
        Scale(Decoded),
        Patch(Patch),
    }
    let resource = shaper.resource;
    let (manager, dry_run, validation, sent) = if route.verb == Verb::Patch {
        let kind = PatchType::parse(call.header(http::header::CONTENT_TYPE), !resource.is_custom())?;
        let options = PatchOptions::parse(&call.query, kind)?;
        let patch = crate::resource::patch::read(kind, options.field_validation, bytes, options.force)
            .or_else(|status| found(call, resource, route).and(Err(status)))?;
        (options.field_manager, options.dry_run, options.field_validation, Sent::Patch(patch))
    } else {
        let options = CreateOptions::parse_update(&call.query)?;
        let expected = GroupVersionKind::new("autoscaling", "v1", "Scale");
        let scale = body::object(call, bytes, &expected, KindRule::FromPath)?;
        (options.field_manager, options.dry_run, options.field_validation, Sent::Scale(scale))
    };
    let manager = call.manager(&manager);
    let author = call.author();
    let act = Act {
        part: Part::Scale,
        manager: &manager,
        field_validation: validation,
        dry_run,
        ..author.act(resource, route.object_namespace(), &route.name)
    };
    until_committed!(act, {
        warnings.clear();
        let entry = found(call, resource, route);
        let live = entry.as_ref().ok().map(|entry| present_value(resource, entry));
        // What is wrong with a body is said before that there is nothing to scale.
        let pending = match &sent {
            Sent::Scale(scale) => scale::begin_update(&act, scale.clone(), live.as_ref())?,
            Sent::Patch(patch) => scale::begin_patch(&act, patch, live.as_ref())?,
        };
        let entry = entry?;
        let live = live.unwrap_or_default();
        // Admission sees scales, before and after: it is a scale that is written.
        let before = scale::of(resource, &live)?;
        let admitting =
            Admitting { author: &author, act: &act, operation: Operation::Update, old: Some(&before) };
        let pending = write::mutate(admitting, pending, warnings).await?;
        let mut outcome = scale::finish(&act, pending, &live, &dice::mint())?;
        let after = outcome.object().map(|object| scale::of(resource, object)).transpose()?;
        outcome.warnings.extend(write::validate(admitting, after.as_ref(), warnings).await?);
        let written = write::commit(&author, &act, &outcome, Some(&entry), Vec::new()).await?;
        let now = written.last().map(|entry| present_value(resource, entry));
        let shown = now.as_ref().or(outcome.object()).unwrap_or(&live);
        let mut reply = scaled(shaper, &scale::of(resource, shown)?);
        reply::warn(&mut reply, &outcome.warnings);
        Ok(reply)
    })
}
