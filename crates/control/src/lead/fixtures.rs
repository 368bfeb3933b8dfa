//! A server that has one Lease and troubles on demand, for tests of the driver in virtual time.

use std::future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures::StreamExt as _;
use http::StatusCode;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::broadcast;

/// What the server does to the requests it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Trouble {
    #[default]
    None,
    /// It never answers and does nothing.
    Silent,
    /// It does as asked and never says so.
    Mute,
    /// It answers with this status and does nothing.
    Refuses(u16),
}

#[derive(Debug)]
struct Inner {
    lease: Option<Value>,
    version: u64,
    trouble: Trouble,
    log: Vec<&'static str>,
    watchable: bool,
    /// Whether the namespace of the Lease is there; if not, whether it may be made.
    namespace: Result<(), bool>,
    changes: broadcast::Sender<Value>,
}

/// The server.
#[derive(Debug, Clone)]
pub(super) struct Server(Arc<Mutex<Inner>>);

impl Server {
    pub(super) fn new() -> Self {
        let changes = broadcast::channel(16).0;
        let inner = Inner {
            lease: None,
            version: 0,
            trouble: Trouble::None,
            log: Vec::new(),
            watchable: true,
            namespace: Ok(()),
            changes,
        };
        Self(Arc::new(Mutex::new(inner)))
    }

    pub(super) fn client(&self) -> Client {
        const ONE: &str = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/berth";
        const ALL: &str = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases";
        let router = Router::new()
            .route(ONE, get(read).put(replace))
            .route(ALL, get(watch).post(create))
            .route("/api/v1/namespaces", post(make_namespace))
            .with_state(self.clone());
        Client::new(router, "default")
    }

    pub(super) fn set(&self, trouble: Trouble) {
        self.with(|inner| inner.trouble = trouble);
    }

    pub(super) fn forbid_watching(&self) {
        self.with(|inner| inner.watchable = false);
    }

    /// Takes the namespace away.
    pub(super) fn without_namespace(&self, may_be_made: bool) {
        self.with(|inner| inner.namespace = Err(may_be_made));
    }

    pub(super) fn lease(&self) -> Value {
        self.with(|inner| inner.lease.clone().unwrap_or_default())
    }

    pub(super) fn spec(&self) -> Value {
        self.lease()["spec"].clone()
    }

    pub(super) fn annotations(&self) -> Value {
        self.lease()["metadata"]["annotations"].clone()
    }

    /// Changes the Lease as a person would.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Value)) {
        self.with(|inner| {
            let mut lease = inner.lease.take().expect("there is a lease");
            change(&mut lease);
            inner.store(lease);
        });
    }

    pub(super) fn delete(&self) {
        self.with(|inner| inner.lease = None);
    }

    /// What was asked of it since the last time.
    pub(super) fn log(&self) -> Vec<&'static str> {
        self.with(|inner| std::mem::take(&mut inner.log))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock().unwrap())
    }

    async fn answer(
        &self,
        name: &'static str,
        work: impl FnOnce(&mut Inner) -> Result<Value, (u16, &'static str)>,
    ) -> Response {
        // A request takes a moment, so that things can happen meanwhile.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let trouble = self.with(|inner| {
            inner.log.push(name);
            inner.trouble
        });
        let answer = match trouble {
            Trouble::Silent => future::pending().await,
            Trouble::Refuses(code) => Err((code, "Trouble")),
            Trouble::Mute | Trouble::None => self.with(work),
        };
        if trouble == Trouble::Mute {
            return future::pending().await;
        }
        match answer {
            Ok(lease) => lease.to_string().into_response(),
            Err((code, reason)) => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason});
                (StatusCode::from_u16(code).unwrap(), status.to_string()).into_response()
            }
        }
    }
}

impl Inner {
    fn store(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        let _ = self.changes.send(lease.clone());
        lease
    }
}

async fn read(State(server): State<Server>) -> Response {
    server.answer("get", |inner| inner.lease.clone().ok_or((404, "NotFound"))).await
}

async fn create(State(server): State<Server>, body: Bytes) -> Response {
    let lease: Value = serde_json::from_slice(&body).unwrap();
    let create = |inner: &mut Inner| match inner.lease {
        _ if inner.namespace.is_err() => Err((404, "NotFound")),
        Some(_) => Err((409, "AlreadyExists")),
        None => Ok(inner.store(lease)),
    };
    server.answer("create", create).await
}

async fn make_namespace(State(server): State<Server>, body: Bytes) -> Response {
    let make = |inner: &mut Inner| match inner.namespace {
        Ok(()) => Err((409, "AlreadyExists")),
        Err(true) => {
            inner.namespace = Ok(());
            Ok(serde_json::from_slice(&body).unwrap())
        }
        Err(false) => Err((403, "Forbidden")),
    };
    server.answer("make namespace", make).await
}

async fn replace(State(server): State<Server>, body: Bytes) -> Response {
    let lease: Value = serde_json::from_slice(&body).unwrap();
    let replace = |inner: &mut Inner| match &inner.lease {
        None => Err((404, "NotFound")),
        Some(old) if old["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] => {
            Err((409, "Conflict"))
        }
        Some(_) => Ok(inner.store(lease)),
    };
    server.answer("update", replace).await
}

async fn watch(State(server): State<Server>, RawQuery(query): RawQuery) -> Response {
    assert!(query.unwrap().contains("fieldSelector=metadata.name%3Dberth"), "only the one lease is watched");
    let (changes, watchable) = server.with(|inner| (inner.changes.subscribe(), inner.watchable));
    if !watchable {
        return server.answer("watch", |_| Err((403, "Forbidden"))).await;
    }
    let lines = futures::stream::unfold(changes, async |mut changes| {
        let lease = changes.recv().await.ok()?;
        let line = format!("{}\n", json!({"type": "MODIFIED", "object": lease}));
        Some((Ok::<_, std::convert::Infallible>(line), changes))
    });
    Body::from_stream(lines.boxed()).into_response()
}
