//! A hub on a socket, and clients that do only what they are told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use berth_hub::{Hub, HubOptions, Limits, Listener};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};

/// How long something that must happen may take: forever, on a machine that works at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A limit on time that a test waits for.
pub(crate) const SHORT: Duration = Duration::from_millis(250);

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A hub that answers on a socket.
pub(crate) struct Place {
    pub(crate) hub: Hub,
    pub(crate) address: SocketAddr,
    pub(crate) serving: JoinHandle<()>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The answer is a Status with this code and reason.
    #[track_caller]
    pub(crate) fn is_status(&self, code: u16, reason: &str) {
        let Value::Object(status) = &self.body else { panic!("no Status: {self:?}") };
        assert_eq!(
            (self.code, &status["kind"], &status["reason"]),
            (code, &json!("Status"), &json!(reason)),
            "{self:?}"
        );
        assert_eq!((&status["code"], &status["status"]), (&json!(code), &json!("Failure")), "{self:?}");
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        let message = self.body["message"].as_str().unwrap_or_default();
        assert!(message.contains(text), "{message:?} does not say {text:?}");
    }
}

/// A ConfigMap with so many bytes of data.
pub(crate) fn map(name: &str, bytes: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"fill": "x".repeat(bytes)}})
}

impl Place {
    pub(crate) async fn with(limits: Limits) -> Self {
        Self::of(HubOptions { limits, ..HubOptions::default() }).await
    }

    pub(crate) async fn of(options: HubOptions) -> Self {
        let hub = Hub::open(options).await.unwrap();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.address();
        let server = hub.clone();
        let serving = tokio::spawn(async move { server.serve(listener).await.unwrap() });
        Self { hub, address, serving }
    }

    /// A request from within the process.
    pub(crate) async fn ask(&self, method: Method, target: &str, body: Option<(&str, Vec<u8>)>) -> Answer {
        let mut request = Request::builder().method(method).uri(target);
        let mut bytes = Vec::new();
        if let Some((kind, content)) = body {
            request = request.header("content-type", kind);
            bytes = content;
        }
        let request = request.body(kube::client::Body::from(bytes)).unwrap();
        let (head, body) = self.hub.client().send(request).await.unwrap().into_parts();
        let text = body.collect().await.unwrap().to_bytes();
        let headers = head.headers.iter();
        Answer {
            code: head.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                .collect(),
            body: serde_json::from_slice(&text).unwrap_or_else(|_| String::from_utf8_lossy(&text).into()),
        }
    }

    pub(crate) async fn create(&self, object: &Value) -> Answer {
        self.ask(Method::POST, MAPS, Some(("application/json", object.to_string().into_bytes()))).await
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection with TLS as the administrator.
    pub(crate) async fn tls(&self, protocol: &str) -> TlsStream<TcpStream> {
        let identity = self.hub.admin().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.hub.ca_pem().as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![identity.certificate.clone()],
                PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(ServerName::from(self.address.ip()), self.tcp().await).await.unwrap()
    }

    /// A connection that has sent this text of HTTP/1.1.
    pub(crate) async fn said(&self, text: &str) -> TlsStream<TcpStream> {
        let mut stream = self.tls("http/1.1").await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        stream
    }

    /// A GET over a connection of its own.
    pub(crate) async fn get(&self, target: &str) -> Answer {
        let mut stream = self.said(&head("GET", target, "connection: close\r\n")).await;
        answer(&mut stream).await
    }

    /// A connection of HTTP/2.
    pub(crate) async fn h2(&self) -> http2::SendRequest<Full<Bytes>> {
        let stream = TokioIo::new(self.tls("h2").await);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    pub(crate) fn h2_get(&self, target: &str) -> Request<Full<Bytes>> {
        Request::get(format!("https://{}{target}", self.address)).body(Full::default()).unwrap()
    }

    pub(crate) fn h2_post(&self, target: &str, body: String) -> Request<Full<Bytes>> {
        let request = Request::post(format!("https://{}{target}", self.address));
        request.header("content-type", "application/json").body(Full::from(body)).unwrap()
    }

    pub(crate) async fn end(self) {
        self.hub.begin_close();
        self.hub.close().await;
        timeout(PATIENCE, self.serving).await.expect("serving ends with the hub").unwrap();
    }
}

/// The head of a request of HTTP/1.1.
pub(crate) fn head(method: &str, target: &str, headers: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nhost: hub\r\n{headers}\r\n")
}

/// Reads until the server closes the connection.
pub(crate) async fn everything(stream: &mut TlsStream<TcpStream>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read =
        timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server ends the connection");
    // A connection that is cut ends without a farewell.
    let _ = read;
    bytes
}

/// Reads the answer of a connection that the server closes after it.
pub(crate) async fn answer(stream: &mut TlsStream<TcpStream>) -> Answer {
    let bytes = everything(stream).await;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let code = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": "));
    Answer {
        code: code.unwrap_or_else(|| panic!("no answer: {text:?}")),
        headers: headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(),
        body: serde_json::from_str(body).unwrap_or_else(|_| body.into()),
    }
}
