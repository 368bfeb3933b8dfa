//! A random walk of requests, and how it is played to a server.

use http::Method;
use serde_json::{Value, json};

use crate::exchange::{Answer, Request, Server, get, post};
use crate::learned::Learned;
use crate::mask::Mask;
use crate::random::Random;
use crate::vocabulary::{KINDS, Kind};
use crate::walk::{MERGE_PATCH, PARTIAL, Walk};
use crate::watching::{self, LAST};

/// What a script is mostly about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Mixed,
    Apply,
    Strategic,
}

/// The requests of one walk and the watches beside them.
pub(crate) struct Script {
    namespace: String,
    steps: Vec<Request>,
    watches: Vec<Watch>,
}

/// A watch that is open while a script runs.
struct Watch {
    target: String,
    accept: Option<&'static str>,
    kind: &'static Kind,
}

impl Script {
    pub(crate) fn generate(mut random: Random, flavour: Flavour, number: usize) -> Self {
        let namespace = format!("s{number}");
        let usable: Vec<&'static Kind> =
            KINDS.iter().filter(|kind| flavour != Flavour::Strategic || !kind.custom).collect();
        let mut kinds: Vec<&'static Kind> = (0..2).map(|_| *random.pick(&usable)).collect();
        // One event written through both groups: who owns what of it is the one thing that is not carried over.
        if kinds.iter().all(|kind| kind.kind == "Event") {
            kinds.truncate(1);
        }
        let mut walk = Walk { random, flavour, namespace: namespace.clone(), number };
        let steps = (0..18 + walk.random.below(16))
            .map(|_| {
                let kind = *walk.random.pick(&kinds);
                walk.step(kind)
            })
            .collect();
        let mut watches = Vec::new();
        for kind in &kinds {
            if kind.namespaced
                && !kind.only_tried()
                && kind.kind != "PersistentVolumeClaim"
                && !watches.iter().any(|other: &Watch| other.kind.kind == kind.kind)
            {
                let query = *walk.random.pick(&[
                    "",
                    "&labelSelector=colour%3Dred",
                    "&labelSelector=colour+notin+(red)",
                    "&allowWatchBookmarks=true",
                    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
                ]);
                let accept = walk.random.chance(20).then_some(PARTIAL);
                let target = format!("{}?watch=true{query}{}", kind.collection(&namespace), kind.own(number));
                watches.push(Watch { target, accept, kind: *kind });
            }
        }
        Self { namespace, steps, watches }
    }

    /// Requests, and one more for what each watch saw.
    pub(crate) fn len(&self) -> usize {
        self.steps.len() + self.watches.len()
    }

    pub(crate) fn describe(&self, step: usize) -> String {
        if let Some(watch) = self.watches.get(step.wrapping_sub(self.steps.len())) {
            return format!("what `GET {}` saw", watch.target);
        }
        let shown: Vec<String> = self.steps[..=step]
            .iter()
            .map(|request| {
                format!(
                    "{} {} {} {}",
                    request.method,
                    request.target,
                    request.content_type.or(request.accept).unwrap_or_default(),
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
        server
            .must(&post(
                "/api/v1/namespaces",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}),
            ))
            .await;
        let mut watches = Vec::new();
        for Watch { target, accept, kind } in &self.watches {
            let list = server.must(&get(kind.collection(&self.namespace))).await;
            let revision = list
                .pointer("/metadata/resourceVersion")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            watches.push(
                watching::watch(server, &format!("{target}&resourceVersion={revision}"), *accept).await,
            );
        }
        let (mut mask, mut known, mut answers) = (Mask::default(), Learned::default(), Vec::new());
        for request in &self.steps {
            let mut answer = server.send(&known.fill(request)).await;
            known.learn(request, &answer);
            // Any state will do, says the client; how old it is depends on the server's cache.
            let any_state = request.target.contains("resourceVersion=0");
            if any_state && let Some(Value::Object(meta)) = answer.body.get_mut("metadata") {
                meta.remove("resourceVersion");
            }
            answers.push(mask.answer(&request.target, &answer));
        }
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
                body: Some(json!({"metadata": {"labels": {"colour": "green"}}}).to_string()),
            };
            server.must(&patch).await;
        }
        for (watch, Watch { target, .. }) in watches.into_iter().zip(&self.watches) {
            let seen = Value::from(watch.await.expect("the watch ends by itself"));
            let answer = Answer { code: 200, content_type: String::new(), warnings: Vec::new(), body: seen };
            answers.push(mask.answer(target, &answer));
        }
        answers
    }
}
