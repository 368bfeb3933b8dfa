//! The client of both servers: HTTP/2 over TLS with the administrator's certificate, and nothing between it and the
//! measurement. It never parses an answer that only has to arrive.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use berth_bed::Bed;
use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What a client lets arrive unread, so that flow control is not what is measured.
const WINDOW_BYTES: u32 = 4 << 20;

/// Where a server is and how it is trusted.
#[derive(Clone)]
pub(super) struct Address {
    socket: SocketAddr,
    connector: TlsConnector,
}

impl Address {
    pub(super) fn of(bed: &Bed) -> anyhow::Result<Self> {
        let socket = bed.url().strip_prefix("https://").context("a bed serves over TLS")?.parse()?;
        let identity = bed.admin_identity();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(identity.authority.as_bytes()) {
            roots.add(certificate?)?;
        }
        let certificates =
            CertificateDer::pem_slice_iter(identity.certificate.as_bytes()).collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { socket, connector: TlsConnector::from(Arc::new(config)) })
    }

    /// The same server on another port.
    pub(super) fn at(&self, socket: SocketAddr) -> Self {
        Self { socket, connector: self.connector.clone() }
    }

    pub(super) async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(self.socket).await?;
        stream.set_nodelay(true)?;
        let stream = self.connector.connect(ServerName::from(self.socket.ip()), stream).await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(16 * WINDOW_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        // It ends with its last sender; why it ended early is told to whoever waits for an answer.
        tokio::spawn(connection);
        Ok(Connection { sender, authority: self.socket.to_string() })
    }
}

/// One connection; clones share it.
#[derive(Clone)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
}

impl Connection {
    /// Sends a request and gives the head of a successful answer.
    pub(super) async fn begin(
        &mut self,
        method: Method,
        target: &str,
        body: Option<(&str, Bytes)>,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}{target}", self.authority))
            .header(header::USER_AGENT, "berth-bench")
            .header(header::ACCEPT, "application/json");
        let mut bytes = Bytes::new();
        if let Some((kind, content)) = body {
            request = request.header(header::CONTENT_TYPE, kind);
            bytes = content;
        }
        self.sender.ready().await?;
        let response = self.sender.send_request(request.body(Full::new(bytes))?).await?;
        if !response.status().is_success() {
            let status = response.status();
            let text = response.into_body().collect().await?.to_bytes();
            bail!("{target}: {status}: {}", String::from_utf8_lossy(&text));
        }
        Ok(response)
    }

    /// Sends a request and gives the whole of a successful answer.
    pub(super) async fn ask(
        &mut self,
        method: Method,
        target: &str,
        body: Option<(&str, Bytes)>,
    ) -> anyhow::Result<Bytes> {
        let response = self.begin(method, target, body).await?;
        Ok(response.into_body().collect().await?.to_bytes())
    }
}
