//! The accept loop.
//!
//! Owns sockets and their timeouts: a client that is slow to shake hands, to send its headers or to take its answer
//! loses its connection and costs nobody else anything.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use berth_hub_guard::Serving;
use hyper::body::Incoming;
use hyper::{Request, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::Peer;
use super::opening::Opening;
use super::taking::Answers;
use crate::clock::Clock;
use crate::limits::Limits;

/// How long the loop waits after the system refused a connection (out of file descriptors) before it asks again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the hub cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {source}; give another address with --listen, or 127.0.0.1:0 for a free port"
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
    /// Binds, so that the address is known before anything is served.
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

    /// Serves until `stop`, then lets open requests end for as long as the limits say.
    ///
    /// The certificate may be renewed meanwhile: connections made after that see the new one.
    pub async fn serve(
        self,
        router: Router,
        serving: &Serving,
        clock: Clock,
        limits: Limits,
        stop: CancellationToken,
    ) {
        let places = Arc::new(Semaphore::new(limits.connections));
        let limits = Arc::new(limits);
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let place = tokio::select! {
                place = Arc::clone(&places).acquire_owned() => place.expect("the semaphore is never closed"),
                () = stop.cancelled() => break,
            };
            let (stream, address) = tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                },
                () = stop.cancelled() => break,
            };
            let acceptor = TlsAcceptor::from(serving.config());
            let (peers, clock) = (serving.peers().clone(), clock.clone());
            let (router, limits, watcher) = (router.clone(), Arc::clone(&limits), graceful.watcher());
            connections.spawn(async move {
                let _place = place;
                if let Some(stream) = handshake(stream, address, &acceptor, &limits).await {
                    let certificate = peers.peer(stream.get_ref().1.peer_certificates(), clock.now());
                    let peer = Peer::Socket { address, certificate };
                    let stream = guarded(stream, &limits);
                    let server = builder(&limits);
                    let answers = Answers::new();
                    let watched = answers.clone();
                    let service = service_fn(move |mut request: Request<Incoming>| {
                        request.extensions_mut().insert(peer.clone());
                        let answer = router.clone().oneshot(request.map(Body::new));
                        let answers = answers.clone();
                        async move { Ok::<_, Infallible>(answer.await?.map(|body| answers.watch(body))) }
                    });
                    let connection =
                        server.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
                    tokio::select! {
                        ended = watcher.watch(connection) => if let Err(error) = ended {
                            tracing::debug!(%error, %address, "a connection ended early");
                        },
                        () = watched.stalled(limits.write_stall) => {
                            tracing::debug!(%address, "a client did not take its answer");
                        }
                    }
                }
            });
        }
        drop(self.socket);
        if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
            tracing::warn!(after = ?limits.drain, "requests were still open when the hub stopped");
        }
        connections.shutdown().await;
    }
}

async fn handshake(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: &TlsAcceptor,
    limits: &Limits,
) -> Option<TlsStream<TcpStream>> {
    // Answers are written whole; waiting to fill a segment only delays them.
    stream.set_nodelay(true).ok();
    match tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, %address, "a TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!(%address, "a TLS handshake took too long");
            None
        }
    }
}

fn guarded<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    limits: &Limits,
) -> std::pin::Pin<Box<TimeoutStream<Opening<S>>>> {
    let mut stream = TimeoutStream::new(Opening::new(stream, limits.header_read));
    stream.set_write_timeout(Some(limits.write_stall));
    Box::pin(stream)
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read)
        .max_buf_size(limits.headers.max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.headers).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams_per_connection)
        // A peer that vanished without a word is noticed, so that its watches end.
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
