//! Any text as a few requests to a hub.
//!
//! Owns the promises: every request is answered, a refusal is a well-formed `Status` with the code of the answer, no
//! refusal blames the hub itself, what is answered can be read by a client, and what was written can be read back.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use berth_hub::{Clock, Hub, HubOptions, Peer};
use berth_hub_guard::User;
use berth_hub_wire::{Query, ResourceRoute, Route, Verb, failure::PAGE_NOT_FOUND, route};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use crate::parts::parts;

/// Requests of one input; more would only make a failure harder to read.
const REQUESTS_MAX: usize = 16;
/// Inputs after which the hub begins anew, so that what they leave behind stays small.
const INPUTS_PER_HUB: usize = 2_000;
/// Inputs that are shown with a failure: what an earlier one left behind may be part of it.
const REMEMBERED: usize = 20;
/// Bytes of an answer that is read; OpenAPI documents are larger, and the same each time.
const READ_BYTES_MAX: usize = 256 * 1024;
/// How long an answer about a state that is yet to come is waited for; the hub itself waits for seconds.
const PATIENCE: Duration = Duration::from_millis(20);
/// Frames of an endless answer that are looked at.
const FRAMES_MAX: usize = 32;
/// What a 500 may say that has a reason: the words of a real server about what a client did.
const KNOWN_TROUBLE: [&str; 2] = ["the spec replicas field ", "json: cannot unmarshal "];

/// Sends the requests, one after the other.
pub fn requests(bytes: &[u8]) {
    // Not one of each thread: a runtime cannot end together with the thread that it ran on.
    static WORLD: Mutex<Option<World>> = Mutex::new(None);
    let mut world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    // It stays away if the input makes it panic: its state would be anybody's guess.
    let mut own = match world.take() {
        Some(own) if own.inputs < INPUTS_PER_HUB => own,
        worn => {
            worn.into_iter().for_each(World::end);
            World::new()
        }
    };
    own.input(bytes);
    *world = Some(own);
}

/// A hub, and who talks to it.
struct World {
    runtime: Runtime,
    hub: Hub,
    router: Router,
    inputs: usize,
}

impl World {
    fn new() -> Self {
        watch_for_panics();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let clock = Clock::manual(jiff::Timestamp::from_second(1_750_000_000).expect("it is a moment"));
        let hub = runtime.block_on(Hub::open(HubOptions { clock, ..HubOptions::default() }));
        let hub = hub.expect("a hub in memory opens");
        Self { router: hub.router(), runtime, hub, inputs: 0 }
    }

    fn end(self) {
        self.runtime.block_on(self.hub.close());
    }

    fn input(&mut self, bytes: &[u8]) {
        self.inputs += 1;
        LAST.with_borrow_mut(|last| {
            last.truncate(REMEMBERED - 1);
            last.push_front(bytes.to_vec());
        });
        for part in parts(bytes).take(REQUESTS_MAX) {
            if let Some(sent) = Sent::read(part) {
                self.runtime.block_on(exchange(&self.router, sent));
                assert!(!PANICKED.get(), "what the hub does on its own does not panic");
            }
        }
    }
}

thread_local! {
    /// The last inputs, newest first.
    static LAST: RefCell<VecDeque<Vec<u8>>> = const { RefCell::new(VecDeque::new()) };
    /// Whether anything on this thread panicked: the hub's own tasks do so without anybody noticing.
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

fn watch_for_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.set(true);
            // A test shows its input itself, and begins anew with each; a fuzzer's hub has seen others before.
            if cfg!(fuzzing) {
                let shown = LAST.with(|last| last.try_borrow().map(|last| last.clone()).unwrap_or_default());
                for (age, input) in shown.iter().enumerate().rev() {
                    eprintln!("--- {age} inputs ago\n{}", lossy(input));
                }
            }
            before(panic);
        }));
    });
    PANICKED.set(false);
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(4_000)]).into_owned()
}

/// One request.
struct Sent {
    request: Request<Body>,
    route: Option<Route>,
}

impl Sent {
    /// Reads a method and a target, lines of headers, an empty line and a body. Nothing where a server of HTTP would
    /// not let it through, or where answering it takes more than the hub.
    fn read(part: &[u8]) -> Option<Self> {
        let (head, body) = match part.windows(2).position(|two| two == b"\n\n") {
            Some(at) => (&part[..at], &part[at + 2..]),
            None => (part, &[][..]),
        };
        let mut lines = head.split(|byte| *byte == b'\n');
        let (method, target) = split(lines.next()?, b' ')?;
        let method = Method::from_bytes(method).ok()?;
        let uri = Uri::try_from(target).ok()?;
        let query = Query::parse(uri.query());
        let route = route::parse(method.as_str(), uri.path(), &query).ok();
        if route.as_ref().is_some_and(calls_out) {
            return None;
        }
        let mut request = Request::new(Body::from(body.to_vec()));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        for (name, value) in lines.filter_map(|line| split(line, b':')) {
            let name = HeaderName::from_bytes(name).ok()?;
            request.headers_mut().append(name, HeaderValue::from_bytes(value.trim_ascii()).ok()?);
        }
        request.extensions_mut().insert(Peer::InProcess(Arc::new(User::in_process())));
        Some(Self { request, route })
    }
}

fn split(line: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|byte| *byte == at)?;
    Some((&line[..at], &line[at + 1..]))
}

/// Whether later requests would be sent to a webhook somewhere.
fn calls_out(route: &Route) -> bool {
    matches!(route, Route::Resource(route) if route.group == "admissionregistration.k8s.io"
        && matches!(route.verb, Verb::Create | Verb::Update | Verb::Patch))
}

async fn exchange(router: &Router, sent: Sent) {
    let (method, uri) = (sent.request.method().clone(), sent.request.uri().clone());
    let waits = method == Method::GET && Query::parse(uri.query()).get("resourceVersion").is_some();
    let answering = answer(router, sent.request);
    let answered = if waits {
        let Ok(answered) = tokio::time::timeout(PATIENCE, answering).await else { return };
        answered
    } else {
        answering.await
    };
    if method == Method::HEAD {
        return;
    }
    let about = format!("{method} {uri}: {} {}", answered.code, lossy(&answered.body));
    if answered.code.is_success() {
        answered.readable(&about);
        if let Some(Route::Resource(route)) = sent.route {
            read_back(router, &route, &answered).await;
        }
    } else if answered.code != StatusCode::NOT_MODIFIED {
        answered.refusal(&about);
    }
}

/// What was written is there, or already gone, and can be read.
async fn read_back(router: &Router, route: &ResourceRoute, answered: &Answered) {
    if !matches!(route.verb, Verb::Create | Verb::Update | Verb::Patch) || !route.subresource.is_empty() {
        return;
    }
    let Ok(object) = serde_json::from_slice::<Value>(&answered.body) else { return };
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    let (Some(name), Some(_)) = (text("name"), text("resourceVersion")) else { return };
    let group = if route.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", route.group) };
    let namespace = text("namespace").map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let path = format!("{group}/{}{namespace}/{}/{name}", route.version, route.resource);
    let Ok(uri) = Uri::try_from(path) else { return };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = uri.clone();
    request.extensions_mut().insert(Peer::InProcess(Arc::new(User::in_process())));
    let again = answer(router, request).await;
    let about = format!("GET {uri}: {} {}", again.code, lossy(&again.body));
    assert!(
        matches!(again.code, StatusCode::OK | StatusCode::NOT_FOUND),
        "what was written can be read: {about}"
    );
    if again.code == StatusCode::OK {
        again.readable(&about);
    }
}

/// An answer, as much of it as there is at once.
struct Answered {
    code: StatusCode,
    content_type: String,
    body: Vec<u8>,
    /// Whether more may follow.
    endless: bool,
}

async fn answer(router: &Router, request: Request<Body>) -> Answered {
    let reply = router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
    let (head, mut body) = reply.into_parts();
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let endless = body.size_hint().exact().is_none();
    let body = if endless {
        let mut read = Vec::new();
        for _ in 0..FRAMES_MAX {
            let frame = poll_fn(|context| match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(frame) => Poll::Ready(frame),
                Poll::Pending => Poll::Ready(None),
            });
            let Some(frame) = frame.await else { break };
            read.extend(frame.expect("an answer does not break off").into_data().unwrap_or_default());
        }
        read
    } else {
        body.collect().await.expect("an answer does not break off").to_bytes().to_vec()
    };
    Answered { code: head.status, content_type, body, endless }
}

impl Answered {
    /// A success that a client can read.
    fn readable(&self, about: &str) {
        if !self.content_type.contains("json") || self.body.len() > READ_BYTES_MAX {
            return;
        }
        if self.endless {
            for line in self.body.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"))
            {
                let event: Value =
                    serde_json::from_slice(line).unwrap_or_else(|why| panic!("{why}: {about}"));
                assert!(
                    event["type"].is_string() && event["object"].is_object(),
                    "an event has its form: {about}"
                );
            }
            return;
        }
        let value: Value = serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {about}"));
        assert!(value.is_object(), "an answer is an object: {about}");
    }

    /// A refusal in the one form there is, or the plain page that says that there is nothing.
    fn refusal(&self, about: &str) {
        if self.code == StatusCode::NOT_FOUND && self.body == PAGE_NOT_FOUND.as_bytes() {
            return;
        }
        let status: Value = serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {about}"));
        assert_eq!(status["kind"], "Status", "{about}");
        assert_eq!(status["apiVersion"], "v1", "{about}");
        assert_eq!(status["status"], "Failure", "{about}");
        assert_eq!(status["code"], self.code.as_u16(), "{about}");
        let message = status["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "a refusal says what is wrong: {about}");
        match self.code.as_u16() {
            // Without a reason it is what a real server says about a patch or a revision it cannot make sense of.
            500 => {
                let known =
                    status["reason"].is_null() || KNOWN_TROUBLE.iter().any(|known| message.contains(known));
                assert!(known, "no refusal blames the hub: {about}");
            }
            504 => assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge", "{about}"),
            code => assert!((400..500).contains(&code), "nothing a client sends is the hub's fault: {about}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_from_its_text() {
        let sent =
            Sent::read(b"POST /api/v1/namespaces?dryRun=All\nContent-Type: application/json\n\n{\n\n}")
                .unwrap();
        assert_eq!(
            (sent.request.method().as_str(), sent.request.uri().path()),
            ("POST", "/api/v1/namespaces")
        );
        assert_eq!(sent.request.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(sent.request.body().size_hint().exact(), Some(4));
        assert!(matches!(sent.route, Some(Route::Resource(route)) if route.verb == Verb::Create));
    }

    #[test]
    fn the_hub_answers_the_seeds_as_they_are_meant() {
        let world = World::new();
        let seed = include_bytes!("../corpus/requests/life_of_a_map");
        let codes: Vec<u16> = parts(seed)
            .map(|part| {
                world.runtime.block_on(answer(&world.router, Sent::read(part).unwrap().request)).code.as_u16()
            })
            .collect();
        world.end();
        assert_eq!(codes, [201, 200, 200, 200, 200, 409, 200, 404]);
    }
}
