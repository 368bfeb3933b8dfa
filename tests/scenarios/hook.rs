//! A webhook that a scenario serves itself: HTTPS on loopback, with a certificate made for the occasion. It answers reviews of
//! whatever kind it is asked for.

use std::{
    convert::Infallible,
    future::pending,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Bytes, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};

/// What a webhook says to a request.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// The `response`, to which the request's uid is added.
    Say(Value),
    /// Nothing, ever.
    Silence,
}

type Judge = dyn Fn(&Value) -> Verdict + Send + Sync;

/// A webhook that answers until it is dropped.
pub(crate) struct Hook {
    address: SocketAddr,
    authority: String,
    asked: Arc<Mutex<Vec<Value>>>,
    _tasks: JoinSet<()>,
}

impl Hook {
    pub(crate) async fn new(judge: impl Fn(&Value) -> Verdict + Send + Sync + 'static) -> Self {
        let (authority, tls) = certificates();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (judge, seen): (Arc<Judge>, _) = (Arc::new(judge), Arc::clone(&asked));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // Connections end with the listener.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, judge, seen) = (acceptor.clone(), Arc::clone(&judge), Arc::clone(&seen));
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service =
                        service_fn(move |request| answer(request, Arc::clone(&judge), Arc::clone(&seen)));
                    // A server that gives up on us closes the connection; that is what the scenario is about then.
                    let serving = hyper::server::conn::http1::Builder::new();
                    let _ = serving.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, authority, asked, _tasks: tasks }
    }

    /// The `clientConfig` by which a server reaches it.
    pub(crate) fn client_config(&self) -> Value {
        let bundle = ByteString(self.authority.clone().into_bytes());
        json!({"url": format!("https://{}/admit", self.address), "caBundle": bundle})
    }

    /// The requests it was asked about so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

/// A patch as a webhook gives it.
pub(crate) fn patch(operations: &Value) -> Value {
    let bytes = ByteString(operations.to_string().into_bytes());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": bytes})
}

fn answer(
    request: Request<Incoming>,
    judge: Arc<Judge>,
    seen: Arc<Mutex<Vec<Value>>>,
) -> BoxFuture<'static, Result<Response<Full<Bytes>>, Infallible>> {
    Box::pin(async move {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let review: Value = serde_json::from_slice(&body).unwrap();
        seen.lock().unwrap().push(review.clone());
        let mut response = match judge(&review["request"]) {
            Verdict::Say(response) => response,
            Verdict::Silence => pending().await,
        };
        response["uid"] = review["request"]["uid"].clone();
        let answer =
            json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
        let body = Full::new(Bytes::from(answer.to_string()));
        Ok(Response::builder().header("content-type", "application/json").body(body).unwrap())
    })
}

/// An authority, and a server's certificate by it for this machine.
fn certificates() -> (String, ServerConfig) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(
        tokio_rustls::rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(vec![server.der().clone()], key)
    .unwrap();
    (authority.pem(), config)
}
