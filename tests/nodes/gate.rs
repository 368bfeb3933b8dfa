//! A way to the API server on which answers go wrong, and on which everything that was asked is written down.
//!
//! Owns a proxy in plain HTTP on loopback; behind it, requests go on as the administrator's.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use berth_bed::Bed;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, Config, client::Body};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

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
    /// The UID that the one who asked insisted on, in options of a deletion.
    pub(crate) uid: Option<String>,
    pub(crate) code: u16,
}

type Judge = dyn Fn(&Method, &str) -> Outcome + Send + Sync;

/// The proxy, open until it is dropped.
pub(crate) struct Gate {
    kubeconfig: PathBuf,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    porter: JoinHandle<()>,
}

struct Way {
    config: Config,
    client: Client,
    judge: Box<Judge>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
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
        let way = Arc::new(Way { config, client, judge: Box::new(judge), exchanges: Arc::clone(&exchanges) });
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
        Self { kubeconfig, exchanges, porter }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
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
    async fn carry(&self, request: Request<Incoming>) -> Result<Response<Body>, kube::Error> {
        let (parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let body = body.collect().await.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
        let outcome = (self.judge)(&parts.method, parts.uri.path());
        if let Outcome::Refuse(code) = outcome {
            return Ok(refusal(code));
        }
        if outcome == Outcome::Stray {
            return Ok(stray());
        }
        let uid = serde_json::from_slice::<Value>(&body).ok();
        let uid = uid.and_then(|options| Some(options["preconditions"]["uid"].as_str()?.to_owned()));
        let mut onwards = Request::builder().method(parts.method.clone()).uri(&target);
        *onwards.headers_mut().expect("a request in the making") = passed_on(&parts.headers);
        let onwards = onwards.body(Body::from(body.to_vec())).expect("a request that came to us");
        // Watches have connections of their own: those that are shared may be dead after a crash.
        let is_watch = target.contains("watch=");
        let client = if is_watch { Client::try_from(self.config.clone())? } else { self.client.clone() };
        let mut response = client.send(onwards).await?;
        self.exchanges.lock().unwrap().push(Exchange {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            uid,
            code: response.status().as_u16(),
        });
        if outcome == Outcome::Lose {
            return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
        }
        *response.headers_mut() = passed_on(response.headers());
        Ok(response)
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
