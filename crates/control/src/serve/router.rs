//! The answers: health as Kubernetes' components give it, metrics as Prometheus reads them.
//!
//! | path | answer |
//! |---|---|
//! | `/healthz`, `/livez` | `ok` while everything turns; 500 and the list of checks when a part is stuck |
//! | `/readyz` | `ok` when everything needed has been seen; leading or standing by makes no difference |
//! | `/readyz?verbose` | the list of checks, `[+]name ok` or `[-]name failed: why`, also when all is well |
//! | `/readyz?exclude=NAME` | without that check |
//! | `/readyz/NAME` | one check |
//! | `/metrics` | OpenMetrics text |

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use berth_text::gotext;
use http::{StatusCode, header};

use super::health::{Health, State};
use super::metrics::Metrics;

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The paths of this module, to be served as they are or beside others.
pub fn router(health: &Health, metrics: Arc<Metrics>) -> Router {
    let mut router = Router::new()
        .route("/metrics", get(async move || reply(StatusCode::OK, OPEN_METRICS, metrics.text())));
    let alive: fn(&Health) -> Vec<(&'static str, State)> = Health::pulses;
    for (name, checks) in [("healthz", alive), ("livez", alive), ("readyz", Health::report)] {
        let (all, one) = (health.clone(), health.clone());
        router = router
            .route(
                &format!("/{name}"),
                get(async move |RawQuery(query): RawQuery| {
                    together(name, &with_ping(checks(&all)), query.as_deref().unwrap_or_default())
                }),
            )
            .route(
                &format!("/{name}/{{check}}"),
                get(async move |Path(check): Path<String>| alone(&with_ping(checks(&one)), &check)),
            );
    }
    router
}

/// That an answer comes at all is a check of its own.
fn with_ping(checks: Vec<(&'static str, State)>) -> Vec<(&'static str, State)> {
    std::iter::once(("ping", Ok(()))).chain(checks).collect()
}

fn together(name: &str, checks: &[(&'static str, State)], query: &str) -> Response {
    let mut verbose = false;
    let mut excluded = BTreeSet::new();
    for pair in query.split('&') {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("verbose", _) => verbose = true,
            ("exclude", check) => drop(excluded.insert(check)),
            _ => {}
        }
    }
    let mut lines = String::new();
    let mut passed = true;
    for (check, state) in checks {
        let line = match state {
            _ if excluded.remove(check) => format!("[+]{check} excluded: ok"),
            Ok(()) => format!("[+]{check} ok"),
            Err(why) => {
                passed = false;
                format!("[-]{check} failed: {why}")
            }
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    if !excluded.is_empty() {
        let unknown: Vec<&str> = excluded.into_iter().collect();
        let unknown = gotext::quote_all(&unknown);
        writeln!(lines, "warn: some health checks cannot be excluded: no matches for {unknown}")
            .expect("text takes all that is written to it");
    }
    match (passed, verbose) {
        (true, false) => reply(StatusCode::OK, TEXT, "ok".to_owned()),
        (true, true) => reply(StatusCode::OK, TEXT, format!("{lines}{name} check passed\n")),
        (false, _) => reply(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{lines}{name} check failed\n")),
    }
}

fn alone(checks: &[(&'static str, State)], wanted: &str) -> Response {
    match checks.iter().find(|(check, _)| *check == wanted) {
        Some((_, Ok(()))) => reply(StatusCode::OK, TEXT, "ok".to_owned()),
        Some((_, Err(why))) => {
            reply(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("internal server error: {why}\n"))
        }
        None => reply(StatusCode::NOT_FOUND, TEXT, format!("no check is called {}\n", gotext::quote(wanted))),
    }
}

fn reply(status: StatusCode, content: &'static str, body: String) -> Response {
    let headers = [(header::CONTENT_TYPE, content), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::serve::listener::tests::ask;
    use crate::serve::{Listener, Service};

    /// What the server answers: the status and the body.
    async fn answer(health: &Health, path: &str) -> (u16, String) {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Service::BOARD).await.unwrap();
        let address = listener.address();
        let router = router(health, Arc::default());
        let stop = tokio_util::sync::CancellationToken::new();
        let server = tokio::spawn(listener.serve(router, stop.clone()));
        let answer = ask(address, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        stop.cancel();
        server.await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    #[tokio::test]
    async fn what_is_well_says_ok() {
        let health = Health::default();
        for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
            assert_eq!(answer(&health, path).await, (200, "ok".to_owned()), "{path}");
        }
    }

    #[tokio::test]
    async fn what_is_not_ready_says_why_and_stays_alive() {
        let health = Health::default();
        let caches = health.check("caches");
        caches.fail("waiting for placements".to_owned());
        let told = "[+]ping ok\n[-]caches failed: waiting for placements\nreadyz check failed\n";
        assert_eq!(answer(&health, "/readyz").await, (500, told.to_owned()));
        assert_eq!(
            answer(&health, "/readyz/caches").await,
            (500, "internal server error: waiting for placements\n".to_owned())
        );
        assert_eq!(answer(&health, "/healthz").await.0, 200);
        caches.pass();
        let told = "[+]ping ok\n[+]caches ok\nreadyz check passed\n";
        assert_eq!(answer(&health, "/readyz?verbose").await, (200, told.to_owned()));
        assert_eq!(answer(&health, "/readyz/caches").await, (200, "ok".to_owned()));
    }

    #[tokio::test]
    async fn a_check_can_be_left_out_by_name() {
        let health = Health::default();
        let _caches = health.check("caches");
        assert_eq!(answer(&health, "/readyz?exclude=caches").await, (200, "ok".to_owned()));
        let told = "[+]ping ok\n[+]caches excluded: ok\n\
                    warn: some health checks cannot be excluded: no matches for \"nope\"\nreadyz check passed\n";
        assert_eq!(
            answer(&health, "/readyz?exclude=caches&exclude=nope&verbose=true").await,
            (200, told.to_owned())
        );
    }

    #[tokio::test]
    async fn a_part_that_is_stuck_is_seen_in_healthz() {
        let health = Health::default();
        let _pulse = health.pulse("loop", Duration::ZERO);
        while health.is_alive() {
            tokio::task::yield_now().await;
        }
        let (status, told) = answer(&health, "/healthz").await;
        assert_eq!(status, 500);
        assert!(told.starts_with("[+]ping ok\n[-]loop failed: stuck for 0 s"), "{told}");
        assert_eq!(answer(&health, "/readyz").await.0, 200);
    }

    #[tokio::test]
    async fn metrics_are_open_metrics_and_nothing_else_is_served() {
        let (status, text) = answer(&Health::default(), "/metrics").await;
        assert_eq!(status, 200);
        assert!(text.contains("# TYPE berth_leads gauge") && text.ends_with("# EOF\n"), "{text}");
        for path in ["/", "/readyz/nope", "/readyz/a/b", "/debug", "/metrics/x"] {
            assert_eq!(answer(&Health::default(), path).await.0, 404, "{path}");
        }
    }
}
