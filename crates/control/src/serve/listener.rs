//! The sockets behind `--metrics-bind` and `--debug-bind`, in the clear or with TLS.
//!
//! Owns connections and what they may cost. Each carries one request: probes, scrapes and questions come seconds apart,
//! and a connection that ends by itself needs no idle timeout, cannot be held open, and frees its place for the next.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::certificate::Certificate;

/// How long a client may take to shake hands.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// How long a client may take to send its request's headers: short, because a kubelet gives up on a probe after five seconds
/// and those who say nothing must have lost their places to it by then.
const HEADERS_WITHIN: Duration = Duration::from_secs(1);
/// How long a connection may last in all, the client's taking of the answer included.
const CONNECTION_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait after the system refused a connection (out of file descriptors) before asking again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long requests under way may take once the process stops.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// What an address is for, and what a client of it may cost.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// What is served, for messages.
    pub what: &'static str,
    /// The flag that names the address.
    pub flag: &'static str,
    /// Connections at once. Further ones wait in the system's queue.
    pub connections_max: usize,
    /// Bytes of a request's headers.
    pub headers_bytes_max: usize,
}

impl Service {
    /// Health and metrics: several probes, scrapers and people, with the shortest headers that the HTTP library can be
    /// held to, which is more than any probe sends.
    pub const BOARD: Self = Self {
        what: "health and metrics",
        flag: "--metrics-bind",
        connections_max: 64,
        headers_bytes_max: 8192,
    };
    /// The debugger: few people, whose answers can be long and whose tokens are.
    pub const DEBUGGER: Self = Self {
        what: "the debugger of placements",
        flag: "--debug-bind",
        connections_max: 16,
        headers_bytes_max: 32 * 1024,
    };
}

/// Why something cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error(
        "cannot serve {} on {address}: {source}; give another address with {}, or 127.0.0.1:0 for a free port",
        .service.what, .service.flag
    )]
    Bind {
        /// What was to be served.
        service: Service,
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A bound socket that does not answer yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    service: Service,
    certificate: Option<Arc<Certificate>>,
}

impl Listener {
    /// Binds, so that a taken address is known at the start, and the address before anything is served.
    pub async fn bind(address: SocketAddr, service: Service) -> Result<Self, ServeError> {
        let refused = |source| ServeError::Bind { service, address, source };
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        Ok(Self { socket, address, service, certificate: None })
    }

    /// Talks TLS, with this certificate, and nothing else.
    #[must_use]
    pub fn with_certificate(self, certificate: Certificate) -> Self {
        Self { certificate: Some(Arc::new(certificate)), ..self }
    }

    /// The address it is bound to, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; requests under way then have a moment to end.
    pub async fn serve(self, router: Router, stop: CancellationToken) {
        let Self { socket, service, certificate, .. } = self;
        let places = Arc::new(Semaphore::new(service.connections_max));
        let acceptor = certificate.as_ref().map(|certificate| TlsAcceptor::from(certificate.config()));
        let _renewal =
            certificate.map(|certificate| AbortOnDropHandle::new(tokio::spawn(certificate.follow_files())));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
                (place, socket.accept().await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accepted => accepted,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let (router, acceptor) = (router.clone(), acceptor.clone());
                    connections.spawn(async move {
                        let _place = place;
                        let answered = async {
                            match acceptor {
                                Some(acceptor) => {
                                    let shaken =
                                        tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream));
                                    match shaken.await {
                                        Ok(Ok(stream)) => answer(stream, router, service).await,
                                        Ok(Err(error)) => tracing::debug!(%peer, %error, "no handshake"),
                                        Err(_) => tracing::debug!(%peer, "the handshake took too long"),
                                    }
                                }
                                None => answer(stream, router, service).await,
                            }
                        };
                        if tokio::time::timeout(CONNECTION_WITHIN, answered).await.is_err() {
                            tracing::debug!(%peer, "a client of {} took too long", service.what);
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection for {} could not be accepted", service.what);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(socket);
        let ended = async { while connections.join_next().await.is_some() {} };
        // Those that are left are cut when the set is dropped.
        let _ = tokio::time::timeout(DRAIN_WITHIN, ended).await;
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(stream: S, router: Router, service: Service) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(service.headers_bytes_max)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection for {} ended early", service.what);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// Sends a request as it is and gives all that comes back.
    pub(crate) async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn server() -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Service::BOARD).await.unwrap();
        let (address, stop) = (listener.address(), CancellationToken::new());
        let router = Router::new().route("/", get(async || "hello"));
        (address, stop.clone(), tokio::spawn(listener.serve(router, stop)))
    }

    const REQUEST: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

    #[tokio::test]
    async fn a_taken_address_is_told_with_a_remedy() {
        let taken = Listener::bind("127.0.0.1:0".parse().unwrap(), Service::BOARD).await.unwrap();
        let error = Listener::bind(taken.address(), Service::BOARD).await.unwrap_err().to_string();
        assert!(error.contains(&taken.address().to_string()) && error.contains("--metrics-bind"), "{error}");
    }

    #[tokio::test]
    async fn a_connection_carries_one_request() {
        let (address, _stop, _server) = server().await;
        let answer = ask(address, &REQUEST.repeat(2)).await;
        assert_eq!(answer.matches("hello").count(), 1, "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_say_nothing_lose_their_place_to_those_who_do() {
        let (address, _stop, _server) = server().await;
        let mut silent = Vec::new();
        for _ in 0..Service::BOARD.connections_max {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(ask(address, REQUEST).await.ends_with("hello"));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_do_not_shake_hands_lose_their_place_too() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Service::DEBUGGER).await.unwrap();
        let listener =
            listener.with_certificate(Certificate::self_signed(vec!["localhost".to_owned()]).unwrap());
        let address = listener.address();
        let router = Router::new().route("/", get(async || "hello"));
        let _server = AbortOnDropHandle::new(tokio::spawn(listener.serve(router, CancellationToken::new())));
        let mut silent = Vec::new();
        for _ in 0..Service::DEBUGGER.connections_max {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(REQUEST.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        plain.read_to_end(&mut answer).await.unwrap();
        // What comes back is an alert: nothing is answered in the clear.
        assert!(!String::from_utf8_lossy(&answer).contains("hello"));
    }

    #[tokio::test]
    async fn headers_without_end_are_refused() {
        let (address, _stop, _server) = server().await;
        let long =
            format!("GET / HTTP/1.1\r\nlong: {}\r\n\r\n", "x".repeat(Service::BOARD.headers_bytes_max));
        let answer = ask(address, &long).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    #[tokio::test]
    async fn a_stopped_server_does_not_wait_for_silent_clients() {
        let (address, stop, server) = server().await;
        let _silent = TcpStream::connect(address).await.unwrap();
        assert!(ask(address, REQUEST).await.ends_with("hello"));
        stop.cancel();
        tokio::time::timeout(2 * DRAIN_WITHIN, server).await.expect("it ends in time").unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
