//! Writes: what the pure functions decided, admitted and committed.
//!
//! Owns the loop around them: an object is read, the outcome decided, and the commit made on the condition that the
//! object is still the one that was read. Whoever loses such a race decides again with what is there now.

use std::sync::Arc;

use berth_hub_store::{Change, Check, CommitError, Draft, DraftError, Entry, Expect, Key, Write};
use berth_hub_wire::body::Decoded;
use berth_hub_wire::{CreateOptions, ListOptions, PatchOptions, PatchType, ResourceRoute, Status};
use bytes::Bytes;
use serde_json::Value;

use super::admission::{self, Operation};
use super::objects::{scope, shaper};
use super::{Call, Reply, body, reply};
use crate::core::Core;
use crate::dice;
use crate::read::{self, Selection, present_value};
use crate::registry::Resource;
use crate::resource::lifecycle::{self, Intent};
use crate::resource::subresource::Behaviour;
use crate::resource::{
    Act, Answer, FieldValidation, Mint, Outcome, Part, Pending, Step, Terms, at_rest, create as creation,
    delete as deletion, name, patch as patching, refusal, subresource, update as updating, warnings_of_body,
};

/// How often a write that lost a race is decided again before the client is told of the conflict.
pub(crate) const ATTEMPTS: usize = 16;

/// Decides and commits again and again, until it holds, is refused, or has lost too many races. (A function of a closure
/// would do, if futures of async closures could be told to be `Send`.)
macro_rules! until_committed {
    ($act:expr, $attempt:block) => {{
        let mut attempts = crate::request::write::ATTEMPTS;
        loop {
            attempts -= 1;
            let attempted: Result<_, crate::request::Lost> = async { $attempt }.await;
            match attempted {
                Ok(done) => break Ok(done),
                Err(crate::request::Lost::Refused(status)) => break Err(status),
                Err(_) if attempts == 0 => {
                    break Err(crate::resource::refusal::stale($act.resource, $act.name));
                }
                Err(_) => {}
            }
        }
    }};
}
pub(crate) use until_committed;

/// POST to a collection.
pub(crate) async fn create(
    call: &Call,
    resource: &Resource,
    route: &ResourceRoute,
    bytes: &Bytes,
) -> Result<Reply, Status> {
    let shown = shaper(call, resource, false)?;
    let options = CreateOptions::parse(&call.query)?;
    let manager = call.manager(&options.field_manager);
    let act = Act {
        resource,
        namespace: route.object_namespace(),
        name: "",
        part: Part::Whole,
        manager: &manager,
        field_validation: options.field_validation,
        dry_run: options.dry_run,
        now: call.now,
    };
    let mut warnings = Vec::new();
    let made = admit_new(call, &act, &shown, bytes, &mut warnings).await;
    made.or_else(|status| Ok(failed(call, &status, &warnings)))
}

async fn admit_new(
    call: &Call,
    act: &Act<'_>,
    shown: &read::Shaper<'_>,
    bytes: &Bytes,
    warnings: &mut Vec<String>,
) -> Result<Reply, Status> {
    let resource = act.resource;
    let pending = creation::begin(act, body::object_of(call, bytes, resource)?).inspect_err(|_| {
        // Read once more: what is wrong with a body is rarely asked for.
        *warnings = body::object_of(call, bytes, resource)
            .map(|sent| warnings_of_body(act, &sent))
            .unwrap_or_default();
    })?;
    warnings.clone_from(&pending.warnings);
    let name = proposed_name(&pending);
    let mut grounds = allowed(call, act, &name, Intent::Create)?;
    let pending = admission::mutate(call, act, Operation::Create, pending, None, warnings).await?;
    let _alone = alone(call, act).await;
    for attempt in 1.. {
        warnings.clone_from(&pending.warnings);
        let outcome =
            creation::finish(act, pending.clone(), &Mint { uid: dice::uid(), random: dice::roll() })?;
        warnings.clone_from(&outcome.warnings);
        let mut outcome = admission::settle(call, act, outcome);
        outcome.warnings.extend(
            admission::validate(call, act, Operation::Create, outcome.object(), None, warnings).await?,
        );
        warnings.clone_from(&outcome.warnings);
        match commit(call, act, &outcome, None, grounds.clone()).await {
            Ok(entries) => return answer(call, shown, &outcome, None, &entries),
            Err(Lost::Race(_)) if pending.needs_name() && attempt < name::GENERATE_ATTEMPTS => {}
            Err(Lost::Grounds) if attempt < ATTEMPTS => grounds = allowed(call, act, &name, Intent::Create)?,
            Err(Lost::Grounds) => return Err(refusal::stale(resource, &name)),
            Err(Lost::Race(current)) => {
                let live = current.map(|entry| present_value(resource, &entry));
                let object = outcome.object().cloned().unwrap_or_default();
                return Err(refusal::exists(resource, &object, live.as_ref()));
            }
            Err(Lost::Refused(status)) => return Err(status),
        }
    }
    unreachable!("the loop ends by returning")
}

/// A failure, with what the client was warned of on the way there.
fn failed(call: &Call, status: &Status, warnings: &[String]) -> Reply {
    let mut reply = reply::status(status, call.pretty);
    reply::warn(&mut reply, warnings);
    reply
}

/// Makes an object of the hub's own, as POST would.
pub(crate) async fn make(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    object: Value,
) -> Result<(), Status> {
    let act = Act {
        resource,
        namespace,
        name: "",
        part: Part::Whole,
        manager: "berth",
        field_validation: FieldValidation::Ignore,
        dry_run: false,
        now: call.now,
    };
    let sent = Decoded { value: object, kind: resource.gvk(), strict_errors: Vec::new() };
    let pending = creation::begin(&act, sent)?;
    let outcome = creation::finish(&act, pending, &Mint { uid: dice::uid(), random: dice::roll() })?;
    let grounds = allowed(call, &act, &proposed(&outcome), Intent::Create)?;
    match commit(call, &act, &outcome, None, grounds).await {
        Ok(_) => Ok(()),
        Err(Lost::Race(_) | Lost::Grounds) => {
            Err(Status::already_exists(resource.group_resource(), &proposed(&outcome)))
        }
        Err(Lost::Refused(status)) => Err(status),
    }
}

fn proposed(outcome: &Outcome) -> String {
    outcome.object().map(|object| crate::resource::meta::text(object, "name").to_owned()).unwrap_or_default()
}

fn proposed_name(pending: &Pending) -> String {
    crate::resource::meta::text(pending.object(), "name").to_owned()
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
    let act = act(call, resource, route, &manager, options.field_validation, options.dry_run);
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
    let act = act(call, resource, route, &manager, options.field_validation, options.dry_run);
    let patch = patching::read(kind, options.field_validation, bytes, options.force).map_err(|status| {
        // What a patch says is only looked at once there is something to patch.
        let missing =
            kind != PatchType::Apply && call.core.find(resource, act.object_namespace(), act.name).is_none();
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

fn act<'a>(
    call: &Call,
    resource: &'a Resource,
    route: &'a ResourceRoute,
    manager: &'a str,
    field_validation: FieldValidation,
    dry_run: bool,
) -> Act<'a> {
    let part = match subresource::find(resource, &route.subresource) {
        Some(Behaviour::Part(part)) => part,
        _ => Part::Whole,
    };
    Act {
        resource,
        namespace: route.object_namespace(),
        name: &route.name,
        part,
        manager,
        field_validation,
        dry_run,
        now: call.now,
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
    let changed = decide(call, act, shown, (begin, warned), &mut warnings).await;
    changed.or_else(|status| Ok(failed(call, &status, &warnings)))
}

/// The loop of updates and patches.
async fn decide(
    call: &Call,
    act: &Act<'_>,
    shown: &read::Shaper<'_>,
    (begin, warned): (
        impl Fn(Option<&Value>) -> Result<Pending, Status>,
        impl Fn(Option<&Value>) -> Vec<String>,
    ),
    warnings: &mut Vec<String>,
) -> Result<Reply, Status> {
    let _alone = alone(call, act).await;
    until_committed!(act, {
        let entry = call.core.find(act.resource, act.object_namespace(), act.name);
        let live = entry.as_ref().map(|entry| present_value(act.resource, entry));
        let pending = begin(live.as_ref()).inspect_err(|_| *warnings = warned(live.as_ref()))?;
        warnings.clone_from(&pending.warnings);
        let pending_creates = pending.creating;
        let (intent, operation) = if pending.creating {
            (Intent::Create, Operation::Create)
        } else {
            (Intent::Update, Operation::Update)
        };
        let grounds = allowed(call, act, act.name, intent)?;
        let pending = admission::mutate(call, act, operation, pending, live.as_ref(), warnings).await?;
        warnings.clone_from(&pending.warnings);
        let outcome =
            updating::finish(act, pending, live.as_ref(), &Mint { uid: dice::uid(), random: dice::roll() })?;
        warnings.clone_from(&outcome.warnings);
        let mut outcome = admission::settle(call, act, outcome);
        outcome.warnings.extend(
            admission::validate(call, act, operation, outcome.object(), live.as_ref(), warnings).await?,
        );
        warnings.clone_from(&outcome.warnings);
        let grounds = if pending_creates { grounds } else { Vec::new() };
        let entries = commit(call, act, &outcome, entry.as_ref(), grounds).await?;
        Ok(answer(call, shown, &outcome, entry.as_ref(), &entries)?)
    })
}

/// Which names are free is decided before a definition is written, so they are written one after the other.
async fn alone<'a>(call: &'a Call, act: &Act<'_>) -> Option<tokio::sync::MutexGuard<'a, ()>> {
    if act.resource.storage == call.core.definitions { Some(call.core.defining.lock().await) } else { None }
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
    let act = deletion_act(call, resource, route.object_namespace(), &route.name, options.dry_run);
    let mut warnings = Vec::new();
    match remove(call, &act, &Terms::from(&options), &mut warnings).await {
        Ok((outcome, entry, entries)) => answer(call, &shown, &outcome, Some(&entry), &entries),
        Err(status) => Ok(failed(call, &status, &warnings)),
    }
}

pub(crate) fn deletion_act<'a>(
    call: &Call,
    resource: &'a Resource,
    namespace: &'a str,
    name: &'a str,
    dry_run: bool,
) -> Act<'a> {
    Act {
        resource,
        namespace,
        name,
        part: Part::Whole,
        manager: "",
        field_validation: FieldValidation::Ignore,
        dry_run,
        now: call.now,
    }
}

type Removal = (Outcome, Arc<Entry>, Vec<Arc<Entry>>);

/// The loop of a deletion. When it is refused, `told` gets what was warned of on the way.
pub(crate) async fn remove(
    call: &Call,
    act: &Act<'_>,
    terms: &Terms,
    told: &mut Vec<String>,
) -> Result<Removal, Status> {
    until_committed!(act, {
        let Some(entry) = call.core.find(act.resource, act.object_namespace(), act.name) else {
            return Err(Status::not_found(act.resource.group_resource(), act.name).into());
        };
        let live = present_value(act.resource, &entry);
        allowed(call, act, act.name, Intent::Delete)?;
        deletion::check(act, terms, &live)?;
        let warnings = admission::validate_deletion(call, act, &live, terms, told).await?;
        let mut outcome = deletion::decide(act, terms, &live)?;
        outcome.warnings.extend(warnings);
        let entries = commit(call, act, &outcome, Some(&entry), Vec::new()).await?;
        Ok((outcome, entry, entries))
    })
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
    let terms = body::delete_options(call, bytes)?;
    let selection = Selection::new(resource, &options)?;
    let page = read::page(&call.core, &shown, scope(resource, route), &selection, &options).await?;
    for entry in &page.entries {
        let act = deletion_act(call, resource, &entry.key().namespace, &entry.key().name, terms.dry_run);
        match remove(call, &act, &Terms::from(&terms), &mut Vec::new()).await {
            Err(status) if status.code() != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(reply::whole(200, shown.answer.content_type(), shown.many(&page.meta, &page.entries)))
}

/// Whether namespace and definition allow this; the states of both that this rests on. A creation is committed on the
/// condition that they are still in them, so that nothing is left behind by a namespace or definition that ends meanwhile.
fn allowed(call: &Call, act: &Act<'_>, name: &str, intent: Intent) -> Result<Vec<Check>, Status> {
    let namespace = act.object_namespace();
    let mut grounds = Vec::new();
    let mut holder = None;
    if lifecycle::needs_namespace(act.resource, namespace, intent)
        && let Some(entry) = call.core.namespace(namespace)
    {
        grounds.push(Check { key: entry.key().clone(), expect: Expect::At(entry.revision()) });
        holder = Some(read::parse(entry.json()));
    }
    lifecycle::check(act.resource, namespace, name, intent, holder.as_ref())?;
    if intent == Intent::Create && act.resource.is_custom() {
        let definition = call.core.definition_of(act.resource).ok_or_else(Status::resource_not_found)?;
        if definition.is_deleting() {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(act.resource.group_resource(), name, why));
        }
        grounds.push(Check { key: definition.key().clone(), expect: Expect::At(definition.revision()) });
    }
    Ok(grounds)
}

/// Why a commit did not happen.
pub(crate) enum Lost {
    /// The object is not the one that was read.
    Race(Option<Arc<Entry>>),
    /// Its namespace or definition is not in the state that was read.
    Grounds,
    /// Something else.
    Refused(Status),
}

impl From<Status> for Lost {
    fn from(status: Status) -> Self {
        Lost::Refused(status)
    }
}

/// Commits the steps of an outcome on the condition that the object is still the one that was read, and that what the
/// decision rests on still stands.
pub(crate) async fn commit(
    call: &Call,
    act: &Act<'_>,
    outcome: &Outcome,
    read: Option<&Arc<Entry>>,
    grounds: Vec<Check>,
) -> Result<Vec<Arc<Entry>>, Lost> {
    if act.dry_run || outcome.steps.is_empty() {
        if let Some(Step::Create(object)) = outcome.steps.first()
            && let Some(taken) = call.core.find(
                act.resource,
                act.object_namespace(),
                crate::resource::meta::text(object, "name"),
            )
        {
            return Err(Lost::Race(Some(taken)));
        }
        return Ok(Vec::new());
    }
    let writes = writes(&call.core, act.resource, &outcome.steps, read).map_err(Lost::Refused)?;
    let guarded = grounds.len();
    call.core.commit(grounds, writes).await.map_err(|error| match error {
        CommitError::Conflict { index, .. } if index < guarded => Lost::Grounds,
        CommitError::Conflict { current, .. } => Lost::Race(current),
        other => Lost::Refused(unavailable(&other)),
    })
}

/// The steps as writes to the log.
pub(crate) fn writes(
    core: &Core,
    resource: &Resource,
    steps: &[Step],
    read: Option<&Arc<Entry>>,
) -> Result<Vec<Write>, Status> {
    let mut expect = read.map_or(Expect::Absent, |entry| Expect::At(entry.revision()));
    steps
        .iter()
        .map(|step| {
            let (Step::Create(object) | Step::Update(object) | Step::Remove(object)) = step;
            let stored = at_rest(resource, object);
            let draft = Draft::new(&stored).map_err(|error| match error {
                DraftError::TooDeep => Status::bad_request(error.to_string()),
                error => Status::internal(&error.to_string()),
            })?;
            if draft.size() > core.limits.object && !matches!(step, Step::Remove(_)) {
                return Err(Status::request_too_large(core.limits.object));
            }
            let key = Key::new(
                &resource.storage,
                crate::resource::meta::text(object, "namespace"),
                crate::resource::meta::text(object, "name"),
            );
            let change =
                if matches!(step, Step::Remove(_)) { Change::Delete(draft) } else { Change::Put(draft) };
            let write = Write { key, expect, change };
            // What follows within one transaction builds on what went before.
            expect = Expect::Any;
            Ok(write)
        })
        .collect()
}

/// What a client is told when the log does not take a write.
pub(crate) fn unavailable(error: &CommitError) -> Status {
    match error {
        CommitError::Full => {
            Status::too_many_requests("too many writes are waiting to be stored, try again later", 1)
        }
        CommitError::TooLarge { .. } => {
            Status::failure(413, berth_hub_wire::Reason::RequestEntityTooLarge, error.to_string())
        }
        CommitError::Conflict { .. } => Status::internal("a commit lost a race it was not in"),
        CommitError::Unavailable(_) | CommitError::Closed => Status::unavailable(error.to_string()),
    }
}

/// The answer to a write.
pub(crate) fn answer(
    call: &Call,
    shown: &read::Shaper<'_>,
    outcome: &Outcome,
    read: Option<&Arc<Entry>>,
    written: &[Arc<Entry>],
) -> Result<Reply, Status> {
    let body = match (&outcome.answer, written.last(), read) {
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
