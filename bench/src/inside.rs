//! Controllers inside this process, and a server that is no more than a function.
//!
//! Owns the server: it shows what a page function says, and tells of one change after the other. So what is counted is reading,
//! the world, the controllers and the loop, without sockets, TLS and the kernel, and it is the same on every machine.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use berth_control::lead::{Fence, HOME};
use berth_control::serve::{Health, Metrics};
use berth_control::{Dialect, EvictionLimits, Inquirer, Options, inquiries};
use berth_engine::node::LifecyclePolicy;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc;
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// How often everybody else gets a turn for one change: a line wakes the reader, what it tells the loop.
const TURNS: usize = 8;
/// Where events are sent.
const EVENTS: &str = "/events";
/// The check that passes when controllers have seen all that they need.
const CACHES: &str = "caches";

/// Controllers, and a way to tell them of changes.
pub(crate) struct Inside {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) inquirer: Inquirer,
    pub(crate) metrics: Arc<Metrics>,
    tell: mpsc::UnboundedSender<Bytes>,
    stop: CancellationToken,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Inside {
    /// Controllers that have seen everything. A list is what `page` makes of a path and a query; changes are told about
    /// the resource `told_of`.
    pub(crate) fn new(
        controllers: &str,
        fence: Fence,
        told_of: &'static str,
        page: impl Fn(&str, &str) -> String + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (tell, told) = mpsc::unbounded();
        let (inquirer, asked) = inquiries();
        let (stop, metrics, health) =
            (CancellationToken::new(), Arc::new(Metrics::default()), Health::default());
        let options = Options {
            controllers: controllers.parse().map_err(anyhow::Error::msg)?,
            identity: "bench".to_owned(),
            home: HOME.to_owned(),
            evictions: EvictionLimits::default(),
            lifecycle: LifecyclePolicy::default(),
            dialect: Dialect::OURS,
            fence,
            health: health.clone(),
            metrics: Arc::clone(&metrics),
            inquiries: asked,
            pace: berth_control::Pace::default(),
        };
        {
            let _within = runtime.enter();
            runtime.spawn(berth_control::run(server(told_of, told, page), options, stop.clone()));
        }
        runtime.block_on(async {
            while !health.report().iter().any(|(name, state)| *name == CACHES && state.is_ok()) {
                tokio::task::yield_now().await;
            }
        });
        Ok(Self { runtime, inquirer, metrics, tell, stop })
    }

    /// Tells lines of a watch one by one, as they come.
    pub(crate) fn tell(&self, lines: &[Bytes]) -> anyhow::Result<()> {
        self.runtime.block_on(async {
            for line in lines {
                self.tell.unbounded_send(line.clone()).context("the watch has ended")?;
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
            }
            Ok(())
        })
    }
}

/// The line of a watch that tells of a change.
pub(crate) fn modified(object: &Value) -> Bytes {
    Bytes::from(format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"))
}

/// A page of a list that ends with it.
pub(crate) fn last_page(items: &[Value]) -> String {
    json!({"metadata": {"resourceVersion": "2"}, "items": items}).to_string()
}

fn server(
    told_of: &'static str,
    told: mpsc::UnboundedReceiver<Bytes>,
    page: impl Fn(&str, &str) -> String + Send + Sync + 'static,
) -> Client {
    let (told, page) = (Arc::new(Mutex::new(Some(told))), Arc::new(page));
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let path = request.uri().path().to_owned();
        let (told, page) = (Arc::clone(&told), Arc::clone(&page));
        async move {
            // Events are told behind what is measured, and how many of them fall into it would be chance.
            if path.ends_with(EVENTS) {
                futures::future::pending::<()>().await;
            }
            let body: UnsyncBoxBody<Bytes, Infallible> = if query.contains("watch=true") {
                let source = if path.rsplit('/').next() == Some(told_of) {
                    told.lock().ok().and_then(|mut told| told.take())
                } else {
                    None
                };
                let lines = match source {
                    Some(lines) => lines.left_stream(),
                    None => futures::stream::pending().right_stream(),
                };
                UnsyncBoxBody::new(StreamBody::new(lines.map(|line| Ok(Frame::data(line)))))
            } else {
                let page = Bytes::from(page(&path, &query));
                UnsyncBoxBody::new(StreamBody::new(futures::stream::iter([Ok(Frame::data(page))])))
            };
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    Client::new(service, "default")
}
