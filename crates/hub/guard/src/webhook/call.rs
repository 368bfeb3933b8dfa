//! The call: one HTTPS request to one webhook, trusting its CA bundle and nothing else.
//!
//! Owns addresses, TLS and limits of the exchange. Never interprets the answer beyond its HTTP status.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use berth_text::gotext::quote;
use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::configuration::{Address, Webhook};
use crate::authority::crypto_provider;

/// What a webhook may answer, in bytes: as much as a request to the API itself may carry.
const ANSWER_BYTES_MAX: usize = 3 << 20;
/// TLS set-ups kept, one per CA bundle, so that sessions can be resumed.
const TLS_CONFIGS_MAX: usize = 64;
/// How much of an error page is worth quoting.
const ERROR_TEXT_BYTES_MAX: usize = 2048;

/// Finds where a service is served, since there is no cluster network here.
pub trait ServiceResolver: Send + Sync {
    /// `host:port` to connect to, or why there is none.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<String, String>;
}

/// Knows no services: webhooks must be given by URL.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServices;

impl ServiceResolver for NoServices {
    fn resolve(&self, namespace: &str, name: &str, _port: u16) -> Result<String, String> {
        Err(format!(
            "there is no cluster network to reach service {namespace}/{name}; use clientConfig.url instead"
        ))
    }
}

/// Services by `namespace/name`, each at a fixed `host:port`.
#[derive(Clone, Debug, Default)]
pub struct ServiceMap(pub HashMap<String, String>);

impl ServiceResolver for ServiceMap {
    fn resolve(&self, namespace: &str, name: &str, _port: u16) -> Result<String, String> {
        self.0
            .get(&format!("{namespace}/{name}"))
            .cloned()
            .ok_or_else(|| format!("service {namespace}/{name} is mapped to no address"))
    }
}

/// Why a webhook could not be asked. Whether that stops the request is the webhook's failure policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub(super) String);

/// Where to connect, whom to expect there, and what to ask for.
struct Route {
    connect: String,
    server_name: ServerName<'static>,
    host: String,
    path: String,
    /// The address as messages name it.
    url: String,
}

/// Calls webhooks.
pub(super) struct Caller {
    resolver: Arc<dyn ServiceResolver>,
    time: Arc<dyn TimeProvider>,
    /// Held while one entry is looked up or made, never across an await.
    configs: Mutex<HashMap<Arc<[u8]>, Arc<ClientConfig>>>,
}

impl Caller {
    pub(super) fn new(resolver: Arc<dyn ServiceResolver>, time: Arc<dyn TimeProvider>) -> Self {
        Self { resolver, time, configs: Mutex::default() }
    }

    /// Posts a review and gives the body of the answer.
    pub(super) async fn post(&self, hook: &Webhook, body: Bytes) -> Result<Bytes, CallError> {
        let route =
            self.route(hook).map_err(|text| CallError(format!("could not get REST client: {text}")))?;
        let config = self
            .config(&hook.ca_bundle)
            .map_err(|text| CallError(format!("could not get REST client: {text}")))?;
        let result = tokio::time::timeout(hook.timeout, exchange(&route, config, hook.timeout, body)).await;
        let failed = |text: String| CallError(format!("failed to call webhook: {text}"));
        let at = |text: &str| failed(format!("Post {}: {text}", quote(&route.url)));
        match result {
            Err(_) => Err(at("context deadline exceeded")),
            Ok(Err(Fault::Transport(text))) => Err(at(&text)),
            Ok(Err(Fault::Status(text))) => Err(failed(text)),
            Ok(Ok(body)) => Ok(body),
        }
    }

    fn route(&self, hook: &Webhook) -> Result<Route, String> {
        let seconds = hook.timeout.as_secs();
        match &hook.address {
            Address::Missing => Err("webhook configuration must have either service or URL".to_owned()),
            Address::Service { namespace, name, path, port } => {
                let host = format!("{name}.{namespace}.svc");
                let server_name =
                    ServerName::try_from(host.clone()).map_err(|_| format!("bad service name {host:?}"))?;
                let connect = self.resolver.resolve(namespace, name, *port)?;
                let path = if path.is_empty() { "/" } else { path };
                let path = format!("/{}?timeout={seconds}s", path.trim_start_matches('/'));
                let authority = format!("{host}:{port}");
                Ok(Route {
                    connect,
                    server_name,
                    url: format!("https://{authority}{path}"),
                    host: authority,
                    path,
                })
            }
            Address::Url(text) => url_route(text, seconds),
        }
    }

    fn config(&self, bundle: &Arc<[u8]>) -> Result<Arc<ClientConfig>, String> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(bundle) {
            return Ok(Arc::clone(config));
        }
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle) {
            let added = certificate.map_err(|_| ()).and_then(|der| roots.add(der).map_err(|_| ()));
            added.map_err(|()| {
                "unable to load root certificates: unable to parse bytes as PEM block".to_owned()
            })?;
        }
        if roots.is_empty() && !bundle.is_empty() {
            return Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned());
        }
        if roots.is_empty() {
            return Err(
                "clientConfig.caBundle holds no certificate; no other authority is trusted here".to_owned()
            );
        }
        let mut config = ClientConfig::builder_with_details(crypto_provider(), Arc::clone(&self.time))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        if configs.len() >= TLS_CONFIGS_MAX {
            configs.clear();
        }
        configs.insert(Arc::clone(bundle), Arc::clone(&config));
        Ok(config)
    }
}

fn url_route(text: &str, seconds: u64) -> Result<Route, String> {
    let uri: Uri = text.parse().map_err(|error| format!("Unparsable URL: {error}"))?;
    if uri.scheme_str() != Some("https") {
        return Err(format!("the URL {} must start with https://", quote(text)));
    }
    let host = uri.host().ok_or_else(|| format!("the URL {} names no host", quote(text)))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let server_name =
        ServerName::try_from(bare.to_owned()).map_err(|_| format!("{} is not a host name", quote(bare)))?;
    let authority = uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let connect = format!("{host}:{}", uri.port_u16().unwrap_or(443));
    let path = if uri.path().is_empty() { "/" } else { uri.path() };
    let path = format!("{path}?timeout={seconds}s");
    Ok(Route { connect, server_name, url: format!("https://{authority}{path}"), host: authority, path })
}

enum Fault {
    /// The webhook was not reached or did not speak HTTP.
    Transport(String),
    /// It answered with an error status.
    Status(String),
}

fn transport(text: impl Into<String>) -> Fault {
    Fault::Transport(text.into())
}

async fn exchange(
    route: &Route,
    config: Arc<ClientConfig>,
    timeout: Duration,
    body: Bytes,
) -> Result<Bytes, Fault> {
    let tcp = TcpStream::connect(&route.connect)
        .await
        .map_err(|error| transport(format!("dial tcp {}: {}", route.connect, connect_text(&error))))?;
    // Small requests must not wait for acknowledgements; failing to say so costs time only.
    let _ = tcp.set_nodelay(true);
    let tls = TlsConnector::from(config)
        .connect(route.server_name.clone(), tcp)
        .await
        .map_err(|error| transport(tls_text(&error)))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(tls)).await.map_err(|error| transport(error.to_string()))?;
    // Dropped with this future, which ends the connection's task whatever happens.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let request = Request::post(&route.path)
        .header(header::HOST, &route.host)
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| transport(error.to_string()))?;
    let response = sender.send_request(request).await.map_err(|error| transport(error.to_string()))?;
    let status = response.status().as_u16();
    let is_text =
        response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/"));
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            transport(format!("the answer is larger than {ANSWER_BYTES_MAX} bytes"))
        } else {
            transport(format!("the answer broke off within {}s: {error}", timeout.as_secs()))
        }
    })?;
    let body = body.to_bytes();
    if (200..=206).contains(&status) {
        Ok(body)
    } else {
        Err(Fault::Status(status_text(status, &body, is_text)))
    }
}

fn connect_text(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        std::io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => error.to_string(),
    }
}

fn tls_text(error: &std::io::Error) -> String {
    use rustls::CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let verify = "tls: failed to verify certificate: x509:";
    match inner {
        // An authority of the same name with another key is another authority.
        Some(rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature)) => {
            format!("{verify} certificate signed by unknown authority")
        }
        Some(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
            format!("{verify} certificate is not valid for the name of the webhook")
        }
        Some(rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })) => {
            format!("{verify} certificate has expired or is not yet valid")
        }
        Some(other) => format!("tls: {other}"),
        None => error.source().map_or_else(|| error.to_string(), ToString::to_string),
    }
}

/// An error status in the words of the client library webhooks are usually called with.
fn status_text(code: u16, body: &[u8], is_text: bool) -> String {
    if let Ok(status) = serde_json::from_slice::<serde_json::Value>(body)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return message.to_owned();
    }
    let page = String::from_utf8_lossy(&body[..body.len().min(ERROR_TEXT_BYTES_MAX)]);
    let page = if is_text && !page.trim().is_empty() { page.trim().to_owned() } else { "unknown".to_owned() };
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => page,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request"
            .to_owned(),
        500.. => format!("an error on the server ({}) has prevented the request from succeeding", quote(&page)),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}
