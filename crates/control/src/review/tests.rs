//! Reviews against a real server with TLS on loopback, and whoever answers wrongly.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use berth_engine::gate::Address;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::serve::crypto_provider;

type Reply = Response<Full<Bytes>>;

/// A service that answers reviews, with an authority of its own.
struct Service {
    address: SocketAddr,
    authority: String,
    connections: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Service {
    async fn start<F>(reply: impl Fn(Value) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let config = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (counted, heard) = (Arc::clone(&connections), Arc::clone(&asked));
        let (acceptor, reply) = (TlsAcceptor::from(Arc::new(config)), Arc::new(reply));
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let (acceptor, reply, heard) = (acceptor.clone(), Arc::clone(&reply), Arc::clone(&heard));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (reply, heard) = (Arc::clone(&reply), Arc::clone(&heard));
                        async move {
                            let (head, body) = request.into_parts();
                            let body = body.collect().await.unwrap().to_bytes();
                            let document: Value = serde_json::from_slice(&body).unwrap();
                            heard.lock().unwrap().push((head.headers, document.clone()));
                            Ok::<_, Infallible>(reply(document).await)
                        }
                    });
                    // A client that hangs up is what some of these tests are about.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        let serving = AbortOnDropHandle::new(serving);
        Self { address, authority: issuer.pem(), connections, asked, _serving: serving }
    }

    /// One that always answers with this document, for whoever asks.
    async fn answering(response: Value) -> Self {
        Self::start(move |asked| {
            let reply = ok(&review(&asked, response.clone()));
            async move { reply }
        })
        .await
    }

    fn at(&self) -> Address {
        self.within(30)
    }

    /// The same, if it answers within so many seconds.
    fn within(&self, seconds: i64) -> Address {
        address(self.address, &self.authority, seconds)
    }
}

fn address(address: SocketAddr, authority: &str, seconds: i64) -> Address {
    let url = format!("https://{address}/reviews?team=db");
    Address::parse(&url, Some(authority.as_bytes()), Some(seconds)).unwrap()
}

/// The answer to what was asked, with its id unless another is given.
fn review(asked: &Value, mut response: Value) -> Value {
    if response.get("uid").is_none() {
        response["uid"] = asked["request"]["uid"].clone();
    }
    json!({"apiVersion": "berth.dev/v1alpha1", "kind": "EvictionReview", "response": response})
}

fn ok(document: &Value) -> Reply {
    Response::new(Full::from(document.to_string()))
}

fn status(code: u16, headers: &[(&str, &str)]) -> Reply {
    let mut reply = Response::builder().status(StatusCode::from_u16(code).unwrap());
    for (name, value) in headers {
        reply = reply.header(*name, *value);
    }
    reply.body(Full::default()).unwrap()
}

fn question() -> Question {
    Question {
        policy: "databases".to_owned(),
        gate: "backup".to_owned(),
        pod: PodFacts {
            namespace: "shop".to_owned(),
            name: "db-0".to_owned(),
            uid: "7c1f".to_owned(),
            labels: [("app".to_owned(), "db".to_owned())].into(),
            node: "n1".to_owned(),
        },
        node: NodeFacts { name: "n1".to_owned(), labels: [("zone".to_owned(), "z1".to_owned())].into() },
        taint: TaintFacts {
            key: "maintenance".to_owned(),
            effect: "NoExecute".to_owned(),
            time_added: Some("2026-11-17T08:00:00Z".to_owned()),
            ..TaintFacts::default()
        },
        due_at: "2026-11-17T08:05:00Z".to_owned(),
        is_dry_run: false,
        replacement: None,
    }
}

async fn ask(service: &Service) -> Answer {
    Reviewer::default().ask(&service.at(), &question()).await
}

fn silence(answer: &Answer) -> String {
    match answer {
        Answer::Unanswered { why } => why.to_string(),
        other => panic!("it was answered: {other}"),
    }
}

#[tokio::test]
async fn who_is_asked_learns_what_it_is_about_and_says_yes() {
    let service = Service::answering(json!({"allowed": true})).await;
    assert_eq!(ask(&service).await, Answer::Allowed);
    let asked = service.asked.lock().unwrap();
    let (headers, document) = &asked[0];
    let uid = question().uid();
    assert_eq!(headers["idempotency-key"], uid.as_str());
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(
        *document,
        json!({
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "EvictionReview",
            "request": {
                "uid": uid,
                "policy": "databases",
                "gate": "backup",
                "pod": {"namespace": "shop", "name": "db-0", "uid": "7c1f", "labels": {"app": "db"}, "node": "n1"},
                "node": {"name": "n1", "labels": {"zone": "z1"}},
                "taint": {"key": "maintenance", "effect": "NoExecute", "timeAdded": "2026-11-17T08:00:00Z"},
                "dueAt": "2026-11-17T08:05:00Z",
            },
        })
    );
}

#[tokio::test]
async fn a_no_is_told_with_its_reason() {
    let service = Service::answering(json!({"allowed": false, "message": "the backup\nruns"})).await;
    assert_eq!(ask(&service).await, Answer::Denied { message: "the backup runs".to_owned() });
    let long = Service::answering(json!({"allowed": false, "message": "x".repeat(5_000)})).await;
    let Answer::Denied { message } = ask(&long).await else { panic!("no denial") };
    assert_eq!(message.len(), 512);
}

#[tokio::test]
async fn a_not_yet_says_when_to_ask_again_within_bounds() {
    for (seconds, after) in [(7, 7), (0, 1), (-5, 1), (1_000_000, 3_600)] {
        let service =
            Service::answering(json!({"allowed": false, "retryAfterSeconds": seconds, "message": "soon"}))
                .await;
        let after = Duration::from_secs(after);
        assert_eq!(ask(&service).await, Answer::Later { after, message: "soon".to_owned() });
    }
}

#[tokio::test]
async fn a_service_that_is_busy_is_asked_again_when_it_says() {
    let date = ("date", "Tue, 17 Nov 2026 08:00:00 GMT");
    let at = |time| ("retry-after", time);
    for (code, headers, after) in [
        (429, vec![at("9")], 9),
        (503, vec![at("Tue, 17 Nov 2026 08:00:40 GMT"), date], 40),
        (503, vec![at("Tue, 17 Nov 2026 07:00:00 GMT"), date], 1),
    ] {
        let service = Service::start(move |_| {
            let reply = status(code, &headers);
            async move { reply }
        })
        .await;
        let message = format!("status {code}");
        assert_eq!(ask(&service).await, Answer::Later { after: Duration::from_secs(after), message });
    }
    let header_only = Service::start(|asked| async move {
        let mut reply = ok(&review(&asked, json!({"allowed": false})));
        reply.headers_mut().insert("retry-after", "12".parse().unwrap());
        reply
    })
    .await;
    let later = Answer::Later { after: Duration::from_secs(12), message: String::new() };
    assert_eq!(ask(&header_only).await, later);
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_told_nothing() {
    let service = Service::answering(json!({"allowed": true})).await;
    let other = Service::answering(json!({"allowed": true})).await;
    let answer = Reviewer::default().ask(&address(service.address, &other.authority, 30), &question()).await;
    assert!(
        silence(&answer).starts_with("the service cannot be reached: invalid peer certificate"),
        "{answer}"
    );
    let url = format!("https://{}/", service.address);
    let by_the_system = Address::parse(&url, None, None).unwrap();
    let answer = Reviewer::default().ask(&by_the_system, &question()).await;
    assert!(silence(&answer).starts_with("the service cannot be reached: "), "{answer}");
    assert!(service.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_service_that_is_away_or_says_nothing_allows_nothing() {
    let hangs = Service::start(|_| std::future::pending()).await;
    let answer = Reviewer::default().ask(&hangs.within(1), &question()).await;
    assert_eq!(silence(&answer), "no answer within 1 s");
    let nowhere = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let answer = Reviewer::default().ask(&address(nowhere, &hangs.authority, 30), &question()).await;
    assert!(silence(&answer).contains("refused"), "{answer}");
}

/// What a service says to a question.
type Replies = Box<dyn Fn(&Value) -> Reply + Send + Sync>;

#[tokio::test]
async fn what_is_not_an_answer_to_the_question_allows_nothing() {
    let yes = || json!({"allowed": true});
    let cases: [(&str, Replies); 8] = [
        ("the answer is to another question, \"else\"", {
            Box::new(move |asked| ok(&review(asked, json!({"uid": "else", "allowed": true}))))
        }),
        ("the service redirects (307), which is not followed", {
            Box::new(|_| status(307, &[("location", "https://127.0.0.1:1/")]))
        }),
        ("the service answers with status 500", Box::new(|_| status(500, &[]))),
        ("the service answers with status 204", Box::new(|_| status(204, &[]))),
        ("the service answers with status 429", Box::new(|_| status(429, &[]))),
        ("the answer has more than 65536 bytes", {
            Box::new(move |asked| {
                let mut document = review(asked, yes());
                document["response"]["message"] = json!("x".repeat(70_000));
                ok(&document)
            })
        }),
        ("the answer cannot be read: ", Box::new(|_| Response::new(Full::from("<html>yes</html>")))),
        ("the answer cannot be read: it is \"berth.dev/v2 EvictionReview\"", {
            Box::new(move |asked| {
                let mut document = review(asked, yes());
                document["apiVersion"] = json!("berth.dev/v2");
                ok(&document)
            })
        }),
    ];
    for (told, reply) in cases {
        let service = Service::start(move |asked| {
            let reply = reply(&asked);
            async move { reply }
        })
        .await;
        let answer = ask(&service).await;
        assert!(silence(&answer).starts_with(told), "{answer}");
    }
}

#[tokio::test]
async fn connections_are_kept_for_the_next_question() {
    let service = Service::answering(json!({"allowed": true})).await;
    let reviewer = Reviewer::default();
    for _ in 0..5 {
        assert_eq!(reviewer.ask(&service.at(), &question()).await, Answer::Allowed);
    }
    assert_eq!(service.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_service_is_asked_so_much_at_once_and_no_more() {
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, top) = (Arc::clone(&inside), Arc::clone(&most));
    let service = Service::start(move |asked| {
        let (now, top) = (Arc::clone(&now), Arc::clone(&top));
        async move {
            top.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            ok(&review(&asked, json!({"allowed": true})))
        }
    })
    .await;
    let (reviewer, address, question) = (Reviewer::default(), service.at(), question());
    let answers = futures::future::join_all((0..40).map(|_| reviewer.ask(&address, &question))).await;
    assert!(answers.iter().all(|answer| *answer == Answer::Allowed), "{answers:?}");
    assert_eq!(most.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn who_waits_too_long_for_a_place_is_told_that_it_is_busy() {
    let service = Service::start(|_| std::future::pending()).await;
    let (reviewer, long, short, question) =
        (Reviewer::default(), service.at(), service.within(1), question());
    let others = futures::future::join_all((0..8).map(|_| reviewer.ask(&long, &question)));
    tokio::select! {
        // The others come first, and keep their places.
        biased;
        answers = others => panic!("they were answered: {answers:?}"),
        answer = reviewer.ask(&short, &question) => assert_eq!(answer, Answer::Unanswered { why: Silence::Busy }),
    }
}

#[test]
fn the_same_question_has_the_same_id_and_no_other_has_it() {
    let one = question();
    assert_eq!(one.uid(), Question { due_at: "later".to_owned(), ..one.clone() }.uid());
    assert_eq!(one.uid().len(), 36);
    let rehearsed = Question { is_dry_run: true, ..one.clone() };
    assert_ne!(one.uid(), rehearsed.uid(), "what was only rehearsed says nothing about the real thing");
    let document: Value = serde_json::from_slice(&rehearsed.document("")).unwrap();
    assert_eq!(document["request"]["dryRun"], true);
    let with = |policy: &str, gate: &str, uid: &str| {
        let pod = PodFacts { uid: uid.to_owned(), ..one.pod.clone() };
        Question { policy: policy.to_owned(), gate: gate.to_owned(), pod, ..one.clone() }.uid()
    };
    let ids = [
        with("a", "b", "c"),
        with("ab", "", "c"),
        with("", "ab", "c"),
        with("a", "b", "d"),
        with("b", "a", "c"),
    ];
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id), "{ids:?}");
    }
}
