//! What is read from the server right now, whatever the watches have told: as data, and how it is read.
//!
//! Owns single questions and their answers. What could not be read says so, for itself: one node that cannot be read is no
//! reason to know nothing of anybody else. Nothing is changed by asking: an eviction on trial is not done.

use std::sync::Arc;
use std::time::Duration;

use berth_engine::model::ObjectKey;
use http::Request;
use kube::Client;
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{budget_message, is_budget, is_missing};
use crate::world::{Kind, OWNERS};

/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Objects on one page of a list.
const PAGE: u32 = 500;
/// The most pages of a list: a workload with more members is not one that anybody replaces members of one by one.
const PAGES_MAX: u32 = 20;
/// The most claims of a pod that are read.
const CLAIMS_MAX: usize = 64;

/// A question to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// An object.
    Get {
        /// Its kind.
        kind: Kind,
        /// Its name.
        key: ObjectKey,
    },
    /// All objects of a kind in a namespace.
    List {
        /// The kind.
        kind: Kind,
        /// The namespace.
        namespace: Arc<str>,
        /// The labels that they have to have, as in `a=b,c=d`; empty for any.
        selector: String,
    },
    /// A pod with what is around it.
    Member {
        /// The pod.
        key: ObjectKey,
        /// Whether its node is wanted. If not, no node is read.
        with_node: bool,
        /// Whether its claims and their volumes are wanted.
        with_claims: bool,
    },
    /// Whether an eviction would be let through now.
    Trial {
        /// The pod.
        key: ObjectKey,
        /// Its identity.
        uid: Arc<str>,
    },
    /// Whether we may do something to objects of a resource everywhere.
    May {
        /// The verb.
        verb: &'static str,
        /// The resource, in the core group.
        resource: &'static str,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The object.
    Object(Box<Value>),
    /// All objects.
    Objects(Vec<Value>),
    /// There is none: the server says so.
    Missing,
    /// A pod with what is around it.
    Member(Box<Around>),
    /// It is allowed.
    Yes,
    /// It is not, and why.
    No(String),
    /// Nobody knows, and why.
    Unknown(String),
}

impl Reply {
    /// The object, if there is one.
    pub fn object(&self) -> Option<&Value> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// A pod with what is around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Around {
    /// The pod: an object, missing, or unknown.
    pub pod: Reply,
    /// Its node; unknown where it was not asked for, or the pod has none.
    pub node: Reply,
    /// What keeps it, whatever its kind; missing where nothing does.
    pub owner: Reply,
    /// Where the owner is.
    pub owner_path: Option<String>,
    /// Its claims, in the pod's order, by name.
    pub claims: Vec<(String, Reply)>,
    /// The volumes of the claims, by name.
    pub volumes: Vec<(String, Reply)>,
}

/// Asks one question.
pub(super) async fn ask(client: &Client, ask: &Ask) -> Reply {
    match ask {
        Ask::Get { kind, key } => get(client, &kind.path(key)).await,
        Ask::List { kind, namespace, selector } => {
            let path = kind.path(&ObjectKey::new(namespace, ""));
            list(client, &path, selector).await
        }
        Ask::Member { key, with_node, with_claims } => {
            Reply::Member(Box::new(around(client, key, *with_node, *with_claims).await))
        }
        Ask::Trial { key, uid } => trial(client, key, uid).await,
        Ask::May { verb, resource } => may(client, verb, resource).await,
    }
}

async fn send(client: &Client, request: Request<Vec<u8>>) -> Result<String, Reply> {
    match tokio::time::timeout(ANSWER_TIMEOUT, client.request_text(request)).await {
        Err(_) => Err(Reply::Unknown("no answer in time".to_owned())),
        Ok(Ok(text)) => Ok(text),
        Ok(Err(kube::Error::Api(status))) if is_missing(&status) => Err(Reply::Missing),
        Ok(Err(kube::Error::Api(status))) if is_budget(&status) => Err(Reply::No(budget_message(&status))),
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => Err(Reply::No(status.message.clone())),
        Ok(Err(error)) => Err(Reply::Unknown(error.to_string())),
    }
}

async fn get(client: &Client, path: &str) -> Reply {
    let Ok(request) = Request::get(path).body(Vec::new()) else {
        return Reply::Unknown(format!("{path:?} is not an address"));
    };
    match send(client, request).await {
        Ok(text) => read(&text).map_or_else(|reply| reply, |object| Reply::Object(Box::new(object))),
        // Whoever may not read it does not know.
        Err(Reply::No(why)) => Reply::Unknown(why),
        Err(reply) => reply,
    }
}

fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, Reply> {
    serde_json::from_str(text).map_err(|error| Reply::Unknown(error.to_string()))
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    token: Option<String>,
}

async fn list(client: &Client, path: &str, selector: &str) -> Reply {
    let request = kube::core::Request::new(path);
    let mut params = ListParams::default().limit(PAGE);
    params.label_selector = (!selector.is_empty()).then(|| selector.to_owned());
    let mut objects = Vec::new();
    for _ in 0..PAGES_MAX {
        let request = match request.list(&params) {
            Ok(request) => request,
            Err(error) => return Reply::Unknown(error.to_string()),
        };
        let page: Page = match send(client, request).await.and_then(|text| read(&text)) {
            Ok(page) => page,
            Err(Reply::No(why)) => return Reply::Unknown(why),
            Err(reply) => return reply,
        };
        objects.extend(page.items.into_iter().flatten());
        params.continue_token = page.metadata.token.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Reply::Objects(objects);
        }
    }
    Reply::Unknown(format!("there are more than {} of them", PAGE * PAGES_MAX))
}

async fn around(client: &Client, key: &ObjectKey, with_node: bool, with_claims: bool) -> Around {
    let not_asked = || Reply::Unknown("it was not asked for".to_owned());
    let mut around = Around {
        pod: get(client, &Kind::Pod.path(key)).await,
        node: not_asked(),
        owner: not_asked(),
        owner_path: None,
        claims: Vec::new(),
        volumes: Vec::new(),
    };
    let Reply::Object(pod) = &around.pod else { return around };
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| with_node && !node.is_empty()) {
        around.node = get(client, &Kind::Node.path(&ObjectKey::new("", node))).await;
    }
    match owner_path(client, pod).await {
        Ok(Some((path, uid))) => {
            around.owner = match get(client, &path).await {
                // A successor of the same name keeps other pods.
                Reply::Object(owner) if owner["metadata"]["uid"] == uid => Reply::Object(owner),
                Reply::Object(_) => Reply::Missing,
                reply => reply,
            };
            around.owner_path = Some(path);
        }
        Ok(None) => around.owner = Reply::Missing,
        Err(reply) => around.owner = reply,
    }
    if with_claims {
        for name in claim_names(pod) {
            let claim = get(client, &Kind::Claim.path(&ObjectKey::new(&key.namespace, &name))).await;
            let volume = claim.object().and_then(|claim| claim["spec"]["volumeName"].as_str());
            if let Some(volume) = volume.filter(|volume| !volume.is_empty()) {
                let found = get(client, &Kind::Volume.path(&ObjectKey::new("", volume))).await;
                around.volumes.push((volume.to_owned(), found));
            }
            around.claims.push((name, claim));
        }
    }
    around
}

/// The names of the claims of a pod.
pub(crate) fn claim_names(pod: &Value) -> Vec<String> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let named = volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    named.take(CLAIMS_MAX).map(str::to_owned).collect()
}

/// Where the owner of a pod is, and its identity. How a kind that is not Kubernetes' own is called in paths the server knows.
async fn owner_path(client: &Client, pod: &Value) -> Result<Option<(String, String)>, Reply> {
    let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let Some(owner) = { owners }.find(|owner| owner["controller"] == true) else { return Ok(None) };
    let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
    let (version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let root = if group.is_empty() { "api" } else { "apis" };
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let known = OWNERS.iter().find(|(of, known, _)| *of == group && *known == kind);
    let plural = match known {
        Some((_, _, plural)) => (*plural).to_owned(),
        None => plural_of(client, &format!("/{root}/{version}"), &kind).await?,
    };
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte))
    };
    if ![&*version, &*plural, &*name, namespace].into_iter().all(is_plain) {
        return Err(Reply::Unknown("the owner of the pod has no name that a path may hold".to_owned()));
    }
    Ok(Some((format!("/{root}/{version}/namespaces/{namespace}/{plural}/{name}"), uid)))
}

async fn plural_of(client: &Client, path: &str, kind: &str) -> Result<String, Reply> {
    let resources = match get(client, path).await {
        Reply::Object(resources) => resources,
        Reply::Missing => return Err(Reply::Unknown(format!("the server does not serve {path}"))),
        reply => return Err(reply),
    };
    let listed = resources["resources"].as_array().into_iter().flatten();
    let is_it = |resource: &&Value| {
        resource["kind"] == kind && !resource["name"].as_str().unwrap_or_default().contains('/')
    };
    let found = { listed }.find(is_it).and_then(|resource| resource["name"].as_str());
    found.map(str::to_owned).ok_or_else(|| Reply::Unknown(format!("the server serves no {kind} in {path}")))
}

async fn trial(client: &Client, key: &ObjectKey, uid: &str) -> Reply {
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": key.namespace, "name": key.name},
        "deleteOptions": {"dryRun": ["All"], "preconditions": {"uid": uid}},
    });
    let path = format!("{}/eviction?dryRun=All", Kind::Pod.path(key));
    match post(client, &path, &eviction).await {
        Ok(_) => Reply::Yes,
        Err(reply) => reply,
    }
}

async fn may(client: &Client, verb: &str, resource: &str) -> Reply {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": verb, "resource": resource}},
    });
    let answer = post(client, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await;
    match answer.and_then(|text| read::<Value>(&text)) {
        Ok(answer) if answer["status"]["allowed"] == true => Reply::Yes,
        Ok(answer) => {
            let why = answer["status"]["reason"].as_str().filter(|why| !why.is_empty());
            Reply::No(why.map_or_else(|| format!("may not {verb} {resource}"), str::to_owned))
        }
        Err(reply) => reply,
    }
}

async fn post(client: &Client, path: &str, body: &Value) -> Result<String, Reply> {
    let unreadable = |error: &dyn std::fmt::Display| Reply::Unknown(error.to_string());
    let body = serde_json::to_vec(body).map_err(|error| unreadable(&error))?;
    let request = Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
    send(client, request.body(body).map_err(|error| unreadable(&error))?).await
}
