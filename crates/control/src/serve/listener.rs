//! The socket behind `--metrics-bind`.
//!
//! Owns connections and what they may cost. Each carries one request: probes and scrapes come seconds apart, and a
//! connection that ends by itself needs no idle timeout, cannot be held open, and frees its place for the next.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections at once: several probes, scrapers and people. Further ones wait in the system's queue.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send its request's headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a request's headers: the least that the HTTP library takes, and more than any probe sends.
const HEADERS_BYTES_MAX: usize = 8192;
/// How long a connection may last in all, the client's taking of the answer included.
const CONNECTION_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait after the system refused a connection (out of file descriptors) before asking again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long requests under way may take once the process stops.
const DRAIN_WITHIN: Duration = Duration::from_secs(1);

/// Why health and metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error(
        "cannot serve health and metrics on {address}: {source}; give another address with --metrics-bind, or 127.0.0.1:0 for a free port"
    )]
    Bind {
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
}

impl Listener {
    /// Binds, so that a taken address is known at the start, and the address before anything is served.
    pub async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let refused = |source| ServeError::Bind { address, source };
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        Ok(Self { socket, address })
    }

    /// The address it is bound to, with the port the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; requests under way then have a moment to end.
    pub async fn serve(self, router: Router, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
                (place, self.socket.accept().await)
            };
            let (place, accepted) = tokio::select! {
                accepted = accepted => accepted,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let router = router.clone();
                    connections.spawn(async move {
                        let _place = place;
                        if tokio::time::timeout(CONNECTION_WITHIN, answer(stream, router)).await.is_err() {
                            tracing::debug!(%peer, "a client of health or metrics took too long");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection for health or metrics could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.socket);
        let ended = async { while connections.join_next().await.is_some() {} };
        // Those that are left are cut when the set is dropped.
        let _ = tokio::time::timeout(DRAIN_WITHIN, ended).await;
    }
}

async fn answer(stream: TcpStream, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADERS_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection for health or metrics ended early");
    }
}

#[cfg(test)]
pub(super) mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, stop) = (listener.address(), CancellationToken::new());
        let router = Router::new().route("/", get(async || "hello"));
        (address, stop.clone(), tokio::spawn(listener.serve(router, stop)))
    }

    const REQUEST: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

    #[tokio::test]
    async fn a_taken_address_is_told_with_a_remedy() {
        let taken = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = Listener::bind(taken.address()).await.unwrap_err().to_string();
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
        for _ in 0..CONNECTIONS_MAX {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(ask(address, REQUEST).await.ends_with("hello"));
    }

    #[tokio::test]
    async fn headers_without_end_are_refused() {
        let (address, _stop, _server) = server().await;
        let long = format!("GET / HTTP/1.1\r\nlong: {}\r\n\r\n", "x".repeat(HEADERS_BYTES_MAX));
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
