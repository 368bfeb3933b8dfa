//! A way to the API server on which answers go wrong, and on which everything that was asked is written down.
//!
//! Owns a proxy in plain HTTP on loopback; behind it, requests go on as the administrator's.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use berth_bed::Bed;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, BodyStream, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config, client::Body};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It goes through.
    Pass,
    /// It is refused with that code, and the server never hears of it.
    Refuse(u16),
    /// Somebody before the server says that he knows no such page, and the server never hears of it.
    Stray,
    /// The server does it, and the answer is lost.
    Lose,
}

/// One request that the API server answered.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The UID that the one who asked insisted on, in options of a deletion or an eviction.
    pub(crate) uid: Option<String>,
    pub(crate) code: u16,
    /// Whether whoever asked never heard the answer.
    is_lost: bool,
    at: Instant,
}

impl Exchange {
    /// The pod that this asked to take away, by its name, if it did: deleted or evicted.
    pub(crate) fn taken(&self) -> Option<&str> {
        let (_, pod) = self.path.split_once("/pods/")?;
        match self.method {
            Method::DELETE => Some(pod),
            Method::POST => pod.strip_suffix("/eviction"),
            _ => None,
        }
    }

    /// Whether the server did what was asked.
    pub(crate) fn is_done(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// The pods that were taken away once more although the first time had been answered, over all ways to the server. Who heard no
/// answer cannot know, and may ask again.
pub(crate) fn taken_again(gates: &[Gate]) -> Vec<Exchange> {
    let mut all: Vec<Exchange> =
        gates.iter().flat_map(|gate| gate.exchanges.lock().unwrap().clone()).collect();
    all.sort_by_key(|exchange| exchange.at);
    let mut answered: HashMap<(String, Option<String>), bool> = HashMap::new();
    all.retain(|exchange| {
        let Some(pod) = exchange.taken().filter(|_| exchange.is_done()) else { return false };
        let known = answered.entry((pod.to_owned(), exchange.uid.clone())).or_default();
        let was_answered = *known;
        *known |= !exchange.is_lost;
        was_answered
    });
    all
}

/// What goes back, whole or as it comes.
type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

type Judge = dyn Fn(&Method, &str) -> Outcome + Send + Sync;

/// The proxy, open until it is dropped.
pub(crate) struct Gate {
    kubeconfig: PathBuf,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    /// Ends the watches of before whenever it changes.
    cut: watch::Sender<()>,
    /// How many watches to come are told that what they want to go on from is forgotten.
    forgotten: Arc<AtomicUsize>,
    porter: JoinHandle<()>,
}

struct Way {
    config: Config,
    client: Client,
    judge: Box<Judge>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    cut: watch::Sender<()>,
    forgotten: Arc<AtomicUsize>,
}

impl Gate {
    /// A gate where `judge` says what becomes of each request, by its method and path.
    pub(crate) async fn open(
        bed: &Bed,
        judge: impl Fn(&Method, &str) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let kubeconfig = bed.folder().join(format!("kubeconfig-gate-{port}"));
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "gate",
            "contexts": [{"name": "gate", "context": {"cluster": "gate", "user": "gate"}}],
            "clusters": [{"name": "gate", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
            "users": [{"name": "gate", "user": {}}],
        });
        fs::write(&kubeconfig, text.to_string()).unwrap();
        let mut config = bed.config();
        // Whoever asks is to see what happens.
        config.default_retry = false;
        let exchanges = Arc::new(Mutex::new(Vec::new()));
        let client = Client::try_from(config.clone()).unwrap();
        let (cut, forgotten) = (watch::channel(()).0, Arc::new(AtomicUsize::new(0)));
        let way = Arc::new(Way {
            config,
            client,
            judge: Box::new(judge),
            exchanges: Arc::clone(&exchanges),
            cut: cut.clone(),
            forgotten: Arc::clone(&forgotten),
        });
        let porter = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let way = Arc::clone(&way);
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let way = Arc::clone(&way);
                        async move { way.carry(request).await }
                    });
                    // An answer that is lost closes the connection: that is what it is for.
                    let serving = hyper::server::conn::http1::Builder::new();
                    let _ = serving.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { kubeconfig, exchanges, cut, forgotten, porter }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Ends every watch, and lets none of the next ones go on from where it was: what happens meanwhile is never told.
    pub(crate) fn forget_watches(&self, next: usize) {
        self.forgotten.store(next, Ordering::SeqCst);
        self.cut.send_replace(());
    }

    /// The requests of that method that the server answered so far.
    pub(crate) fn answered(&self, method: &Method) -> Vec<Exchange> {
        let exchanges = self.exchanges.lock().unwrap();
        exchanges.iter().filter(|exchange| exchange.method == *method).cloned().collect()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.porter.abort();
    }
}

impl Way {
    async fn carry(&self, request: Request<Incoming>) -> Result<Answer, kube::Error> {
        let (parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let body = body.collect().await.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
        let outcome = (self.judge)(&parts.method, parts.uri.path());
        if let Outcome::Refuse(code) = outcome {
            return Ok(refusal(code).map(UnsyncBoxBody::new));
        }
        if outcome == Outcome::Stray {
            return Ok(stray().map(UnsyncBoxBody::new));
        }
        let asked = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        let options = if asked["kind"] == "Eviction" { &asked["deleteOptions"] } else { &asked };
        let uid = options["preconditions"]["uid"].as_str().map(str::to_owned);
        let mut onwards = Request::builder().method(parts.method.clone()).uri(&target);
        *onwards.headers_mut().expect("a request in the making") = passed_on(&parts.headers);
        let onwards = onwards.body(Body::from(body.to_vec())).expect("a request that came to us");
        // Watches have connections of their own: those that are shared may be dead after a crash.
        let is_watch = target.contains("watch=");
        let forgets = |left: usize| left.checked_sub(1);
        if is_watch && self.forgotten.fetch_update(Ordering::SeqCst, Ordering::SeqCst, forgets).is_ok() {
            return Ok(refusal(410).map(UnsyncBoxBody::new));
        }
        let mut cut = self.cut.subscribe();
        let client = if is_watch { Client::try_from(self.config.clone())? } else { self.client.clone() };
        let mut response = client.send(onwards).await?;
        self.exchanges.lock().unwrap().push(Exchange {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            uid,
            code: response.status().as_u16(),
            is_lost: outcome == Outcome::Lose,
            at: Instant::now(),
        });
        if outcome == Outcome::Lose {
            return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
        }
        *response.headers_mut() = passed_on(response.headers());
        if is_watch {
            let cut = async move { cut.changed().await };
            return Ok(response.map(|body| {
                UnsyncBoxBody::new(StreamBody::new(BodyStream::new(body).take_until(Box::pin(cut))))
            }));
        }
        Ok(response.map(UnsyncBoxBody::new))
    }
}

/// The headers that concern more than one connection.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for own in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::ACCEPT_ENCODING] {
        headers.remove(own);
    }
    headers
}

fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": "not today",
        "reason": reason, "code": code,
    });
    let mut response = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    if code == 429 {
        response = response.header(header::RETRY_AFTER, "1");
    }
    response.body(Body::from(status.to_string().into_bytes())).expect("a constant answer")
}

/// What a load balancer says that has lost the way.
fn stray() -> Response<Body> {
    let response = Response::builder().status(404).header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
    response.body(Body::from(b"404 page not found\n".to_vec())).expect("a constant answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_taken_again_is_told_unless_nobody_had_heard_of_the_first_time() {
        let gate = |exchanges: Vec<Exchange>| Gate {
            kubeconfig: PathBuf::new(),
            exchanges: Arc::new(Mutex::new(exchanges)),
            cut: watch::channel(()).0,
            forgotten: Arc::default(),
            porter: tokio::spawn(async {}),
        };
        let begun = Instant::now();
        let exchange = |millis: u64, method: Method, path: &str, code: u16, is_lost: bool| Exchange {
            method,
            path: format!("/api/v1/namespaces/n/pods/{path}"),
            uid: Some("u".to_owned()),
            code,
            is_lost,
            at: begun + std::time::Duration::from_millis(millis),
        };
        let first = gate(vec![
            exchange(0, Method::DELETE, "twice", 200, false),
            exchange(1, Method::DELETE, "unheard", 200, true),
            exchange(2, Method::DELETE, "refused", 409, false),
            exchange(3, Method::PATCH, "twice/status", 200, false),
            exchange(9, Method::POST, "evicted/eviction", 201, false),
        ]);
        let second = gate(vec![
            exchange(4, Method::DELETE, "twice", 200, false),
            exchange(5, Method::DELETE, "unheard", 200, false),
            exchange(6, Method::DELETE, "refused", 200, false),
            exchange(7, Method::DELETE, "evicted", 200, false),
        ]);
        let again = taken_again(&[first, second]);
        let again: Vec<_> = again.iter().map(|exchange| exchange.taken().unwrap()).collect();
        assert_eq!(again, ["twice", "evicted"]);
    }
}
