//! What the hub says about itself: discovery, OpenAPI, version, health, metrics, and a copy of its data.

use axum::body::Body;
use berth_hub_wire::media::negotiate_discovery;
use berth_hub_wire::server_version::ServerVersion;
use berth_hub_wire::{DiscoveryAnswer, Document, Route, Status, envelope};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};

use super::Call;
use crate::registry::hash;
use crate::reply::{self, Reply};

/// The Kubernetes version whose API is served.
pub(crate) const API: (u32, u32, u32) = (1, 36, 4);
/// Where a backup is fetched.
pub const BACKUP_PATH: &str = "/berth/backup";

/// Answers a request that is not about objects.
pub(crate) async fn answer(call: &Call, route: &Route, _body: Body) -> Result<Reply, Status> {
    let documents = call.registry.documents();
    if !matches!(call.method.as_str(), "GET" | "HEAD") {
        return Ok(reply::not_served());
    }
    if *route == Route::Other && call.path == BACKUP_PATH && call.method == http::Method::GET {
        return backup(call).await;
    }
    Ok(match route {
        Route::CoreVersions | Route::Groups => {
            let form = negotiate_discovery(call.accept().as_deref());
            let discovery = documents.discovery();
            let document =
                if *route == Route::CoreVersions { discovery.core(form) } else { discovery.groups(form) };
            cached(call, document, form.content_type(), form != DiscoveryAnswer::Legacy)
        }
        Route::CoreResources { version } => found(call, documents.discovery().resources("", version)),
        Route::Group { group } => found(call, documents.discovery().group(group)),
        Route::GroupResources { group, version } => {
            found(call, documents.discovery().resources(group, version))
        }
        Route::Version => reply::json(200, envelope::encode(&version(), true)),
        Route::Metrics => {
            let text = call.core.metrics.render(call.core.ledger.revision().0);
            reply::whole(200, "application/openmetrics-text; version=1.0.0; charset=utf-8", text.into())
        }
        Route::OpenApiIndex => cached(call, documents.openapi_index(), "application/json", true),
        Route::OpenApiDocument { path } => match documents.openapi(path) {
            Some(document) => {
                let mut reply = cached(call, document, "application/json", true);
                // Whoever asks with the hash gets what will never change.
                if call.query.get("hash").is_some_and(|asked| asked == hash(document)) {
                    reply
                        .headers_mut()
                        .insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
                }
                reply
            }
            None => reply::not_served(),
        },
        Route::Root => {
            reply::json(200, envelope::encode(&serde_json::json!({"paths": documents.paths()}), call.pretty))
        }
        Route::OpenApiV2 => openapi_v2(call),
        Route::Other | Route::Health { .. } | Route::Resource(_) => reply::not_served(),
    })
}

/// The older document, empty. The newer one says everything; but kubectl still asks here about kinds it does not find
/// there (`List`, or a slip of the pen), and takes a refusal for a broken server. One without definitions tells it that
/// nothing is known, which is the case.
fn openapi_v2(call: &Call) -> Reply {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    // The message's fields 1 (`swagger`) and 2 (`info`, with `title` and `version`).
    const DOCUMENT: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.4";
    if call.accept().is_some_and(|accept| accept.contains("proto-openapi")) {
        return reply::whole(200, PROTOBUF, Bytes::from_static(DOCUMENT));
    }
    let (major, minor, patch) = API;
    let info = serde_json::json!({"title": "Kubernetes", "version": format!("v{major}.{minor}.{patch}")});
    let document = serde_json::json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
    reply::json(200, envelope::encode(&document, call.pretty))
}

fn version() -> ServerVersion {
    ServerVersion::new(API.0, API.1, API.2, concat!("berth.", env!("CARGO_PKG_VERSION")))
}

fn found(call: &Call, document: Option<&Document>) -> Reply {
    document.map_or_else(reply::not_served, |document| cached(call, document, "application/json", false))
}

/// A document with its hash as ETag, or word that the client has it already.
fn cached(call: &Call, document: &Document, content_type: &'static str, tagged: bool) -> Reply {
    let tag = document.etag();
    if tagged && document.is_unchanged_for(call.header(header::IF_NONE_MATCH)) {
        let mut reply = reply::whole(304, content_type, Bytes::new());
        set(&mut reply, header::ETAG, tag);
        return reply;
    }
    let mut reply = reply::compressed(
        200,
        content_type,
        document.to_bytes(call.pretty),
        call.header(header::ACCEPT_ENCODING),
    );
    if tagged {
        set(&mut reply, header::ETAG, tag);
        reply.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    }
    reply
}

fn set(reply: &mut Reply, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}

/// Health: the hub is live when it answers, and ready when its log takes writes.
pub(crate) fn health(call: &Call, endpoint: &str, check: &str) -> Reply {
    let trouble = if endpoint == "livez" { None } else { call.core.ledger.trouble() };
    let storage =
        trouble.map_or_else(|| "[+]storage ok".to_owned(), |trouble| format!("[-]storage failed: {trouble}"));
    let failed = storage.starts_with("[-]");
    match check {
        "" if call.query.get("verbose").is_none() && !failed => reply::text(200, "ok"),
        "" | "storage" | "ping" => {
            let code = if failed { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
            let text = match check {
                "" => format!(
                    "[+]ping ok\n{storage}\n{endpoint} check {}\n",
                    if failed { "failed" } else { "passed" }
                ),
                _ if failed && check == "storage" => storage,
                _ => "ok".to_owned(),
            };
            reply::text(if check == "ping" { 200 } else { code.as_u16() }, text)
        }
        _ => reply::not_served(),
    }
}

/// A consistent copy of the store, taken while it runs.
async fn backup(call: &Call) -> Result<Reply, Status> {
    let failed = |error: String| Status::internal(&format!("the backup failed: {error}"));
    let folder = tempfile::tempdir_in(&call.core.scratch).map_err(|error| failed(error.to_string()))?;
    let file = folder.path().join("backup.redb");
    call.core.ledger.backup(&file).await.map_err(|error| failed(error.to_string()))?;
    let file = tokio::fs::File::open(&file).await.map_err(|error| failed(error.to_string()))?;
    // The folder is removed when the last byte is sent; the open file outlives its name.
    drop(folder);
    Ok(reply::stream("application/octet-stream", Body::from_stream(tokio_util::io::ReaderStream::new(file))))
}
