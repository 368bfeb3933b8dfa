//! A random walk of requests, and how it is played to a server.

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::exchange::{Answer, Request, Server, get, post};
use crate::learned::Learned;
use crate::mask::Mask;
use crate::vocabulary::{KINDS, Kind};
use crate::walk::{MERGE_PATCH, PARTIAL, TABLE, Walk};
use crate::watching::{self, LAST};
use berth_tests::random::Random;

/// What a script is mostly about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Mixed,
    Apply,
    Strategic,
    /// Lists, their pages, and watches.
    Reading,
}

/// The requests of one walk and the watches beside them.
pub(crate) struct Script {
    namespace: String,
    steps: Vec<Request>,
    watches: Vec<Watch>,
    flavour: Flavour,
}

/// What the name of a script's second namespace ends in.
const BESIDE: &str = "-x";

/// A watch that is open while a script runs.
struct Watch {
    target: String,
    accept: Option<&'static str>,
    kind: &'static Kind,
    /// The step before which it begins.
    from: usize,
    start: Start,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// At the revision of a list.
    Listed,
    /// Wherever the server likes, said as zero.
    Anywhere,
    /// Wherever the server likes, not said.
    Unsaid,
}

/// Kinds of which both servers have only what scripts make, in whatever namespace.
const READABLE: [&str; 5] = ["Widget", "Gadget", "Pod", "Deployment", "Secret"];

impl Watch {
    fn generate(walk: &mut Walk, kind: &'static Kind, steps: usize) -> Self {
        let query = *walk.random.pick(&[
            "",
            "&labelSelector=colour%3Dred",
            "&labelSelector=colour+notin+(red)",
            "&allowWatchBookmarks=true",
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        ]);
        // The first table of a watch names the columns, be it that of a bookmark that comes when the server pleases.
        let table = if query.contains("Bookmarks") { None } else { Some(TABLE) };
        let accept = *walk.random.pick(&[None, None, None, Some(PARTIAL), table]);
        let everywhere = walk.flavour == Flavour::Reading && walk.random.chance(30);
        let collection = if everywhere {
            format!("{}/{}", kind.root, kind.plural)
        } else {
            kind.collection(&walk.namespace)
        };
        Self {
            target: format!("{collection}?watch=true{query}{}", kind.own(walk.number)),
            accept,
            kind,
            from: if walk.random.chance(50) { 0 } else { walk.random.below(steps) },
            start: *walk.random.pick(&[Start::Listed, Start::Listed, Start::Anywhere, Start::Unsaid]),
        }
    }

    /// The request as it is sent. Listing first brings the real server's cache up to date, so that there is one answer to
    /// what the state is at the beginning.
    async fn begin(&self, server: &Server) -> JoinHandle<Vec<Value>> {
        let list = server.must(&get(self.target.split('?').next().unwrap_or_default())).await;
        let listed = list.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        let target = match self.start {
            Start::Listed => format!("{}&resourceVersion={listed}", self.target),
            Start::Anywhere => format!("{}&resourceVersion=0", self.target),
            Start::Unsaid => self.target.clone(),
        };
        watching::watch(server, &target, self.accept).await
    }
}

impl Script {
    pub(crate) fn generate(mut random: Random, flavour: Flavour, number: usize) -> Self {
        let namespace = format!("s{number}");
        let usable: Vec<&'static Kind> = KINDS
            .iter()
            .filter(|kind| match flavour {
                Flavour::Strategic => !kind.custom,
                Flavour::Reading => READABLE.contains(&kind.kind),
                Flavour::Mixed | Flavour::Apply => true,
            })
            .collect();
        let mut kinds: Vec<&'static Kind> = (0..2).map(|_| *random.pick(&usable)).collect();
        // One event written through both groups: who owns what of it is the one thing that is not carried over.
        if kinds.iter().all(|kind| kind.kind == "Event") {
            kinds.truncate(1);
        }
        let mut walk = Walk { random, flavour, namespace: namespace.clone(), number, made: 0 };
        let steps: Vec<Request> = (0..18 + walk.random.below(16))
            .map(|_| {
                let kind = *walk.random.pick(&kinds);
                let mut request = walk.step(kind);
                if flavour == Flavour::Reading && walk.random.chance(30) {
                    let (here, there) = (format!("/{namespace}/"), format!("/{namespace}{BESIDE}/"));
                    request.target = request.target.replacen(&here, &there, 1);
                }
                request
            })
            .collect();
        let mut watches = Vec::new();
        for kind in &kinds {
            if kind.namespaced
                && !kind.only_tried()
                && kind.kind != "PersistentVolumeClaim"
                && !watches.iter().any(|other: &Watch| other.kind.kind == kind.kind)
            {
                let watch = Watch::generate(&mut walk, kind, steps.len());
                watches.push(watch);
            }
        }
        Self { namespace, steps, watches, flavour }
    }

    /// Requests, and one more for what each watch saw.
    pub(crate) fn len(&self) -> usize {
        self.steps.len() + self.watches.len()
    }

    pub(crate) fn describe(&self, step: usize) -> String {
        if let Some(watch) = self.watches.get(step.wrapping_sub(self.steps.len())) {
            return format!("what `GET {}` saw from step {} ({:?})", watch.target, watch.from, watch.start);
        }
        let shown: Vec<String> = self.steps[..=step]
            .iter()
            .map(|request| {
                format!(
                    "{} {} {}{}{}{} {}",
                    request.method,
                    request.target,
                    request.content_type.unwrap_or_default(),
                    request.accept.map(|accept| format!(" as {accept}")).unwrap_or_default(),
                    request.user.map(|user| format!(" by {user}")).unwrap_or_default(),
                    if request.protobuf { " in protobuf" } else { "" },
                    request.body.as_deref().unwrap_or_default()
                )
            })
            .collect();
        // The requests on the same object are what a difference comes from.
        let object = self.steps[step]
            .target
            .split('?')
            .next()
            .unwrap_or_default()
            .trim_end_matches("/status")
            .trim_end_matches("/scale")
            .to_owned();
        let last = shown.len() - 1;
        shown
            .iter()
            .enumerate()
            .filter(|(at, line)| {
                *at == last
                    || line.contains(&object)
                    || (line.starts_with("POST")
                        && object.contains(line.split([' ', '?']).nth(1).unwrap_or("-")))
            })
            .map(|(_, line)| line.as_str())
            .collect::<Vec<_>>()
            .join("\n    ")
    }

    /// Plays the script; the answers are masked. The last ones are what the watches saw.
    pub(crate) async fn play(&self, server: &Server) -> Vec<Answer> {
        for namespace in [self.namespace.clone(), format!("{}{BESIDE}", self.namespace)] {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            server.must(&post("/api/v1/namespaces", &body)).await;
        }
        let mut watches = Vec::new();
        let (mut mask, mut known, mut answers) = (Mask::default(), Learned::default(), Vec::new());
        for (step, request) in self.steps.iter().enumerate() {
            for (number, watch) in self.watches.iter().enumerate().filter(|(_, watch)| watch.from == step) {
                watches.push((number, watch.begin(server).await));
            }
            // Any state will do, says the client; how old it is depends on the server's cache, which a plain list brings up
            // to date.
            let any_state = request.target.contains("resourceVersion=0");
            if request.target.contains("resourceVersion=") {
                server.send(&get(request.target.split('?').next().unwrap_or_default())).await;
            }
            let mut answer = server.send(&known.fill(request)).await;
            known.learn(request, &answer);
            if any_state && let Some(Value::Object(meta)) = answer.body.get_mut("metadata") {
                meta.remove("resourceVersion");
            }
            answers.push(mask.answer(&request.target, &answer));
        }
        watches.sort_by_key(|(number, _)| *number);
        for Watch { kind, .. } in &self.watches {
            let mut last = (kind.body)(&mut Random::new(1));
            for about in ["involvedObject", "regarding"] {
                if last.get(about).is_some() {
                    last[about]["namespace"] = self.namespace.as_str().into();
                }
            }
            last["apiVersion"] = kind.api_version.into();
            last["kind"] = kind.kind.into();
            last["metadata"] = json!({"name": LAST, "labels": {"colour": "red"}});
            server.must(&post(kind.collection(&self.namespace), &last)).await;
            last["metadata"]["labels"]["colour"] = "green".into();
            let patch = Request {
                method: Method::PATCH,
                target: format!("{}/{LAST}", kind.collection(&self.namespace)),
                content_type: Some(MERGE_PATCH),
                accept: None,
                user: None,
                protobuf: false,
                body: Some(json!({"metadata": {"labels": {"colour": "green"}}}).to_string()),
            };
            server.must(&patch).await;
        }
        for ((_, watch), Watch { target, .. }) in watches.into_iter().zip(&self.watches) {
            let seen = Value::from(watch.await.expect("the watch ends by itself"));
            let answer = Answer { code: 200, content_type: String::new(), warnings: Vec::new(), body: seen };
            answers.push(mask.answer(target, &answer));
        }
        if self.flavour == Flavour::Reading {
            self.clear(server).await;
        }
        answers
    }

    /// Lists over all namespaces show what other scripts left behind, so nothing is.
    async fn clear(&self, server: &Server) {
        let clean = |target: String| Request { method: Method::DELETE, ..get(target) };
        for kind in KINDS.iter().filter(|kind| READABLE.contains(&kind.kind)) {
            let every = format!("{}/{}", kind.root, kind.plural);
            for item in server.must(&get(every)).await["items"].as_array().into_iter().flatten() {
                let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
                let path = format!("{}/{}", kind.collection(text("namespace")), text("name"));
                let free = json!({"metadata": {"finalizers": null}}).to_string();
                let free = Request {
                    method: Method::PATCH,
                    content_type: Some(MERGE_PATCH),
                    body: Some(free),
                    ..get(path.clone())
                };
                server.send(&free).await;
                server.send(&clean(format!("{path}?gracePeriodSeconds=0"))).await;
            }
        }
    }
}
