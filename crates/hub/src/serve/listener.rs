//! The accept loop.
//!
//! Owns sockets and their timeouts: a client that is slow to shake hands, to send its headers or to take its answer
//! loses its connection and costs nobody else anything.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use berth_hub_guard::Serving;
use berth_hub_wire::{Reason, Status};
use hyper::body::Incoming;
use hyper::{Request, Response, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::heard::Heard;
use super::sent::{Bounds, Sent};
use super::taking::Answers;
use super::talk::{Patience, Talk, Turn};
use crate::clock::Clock;
use crate::limits::Limits;
use crate::request::Peer;

/// How long the loop waits after the system refused a connection (out of file descriptors) before it asks again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the hub cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {cause}; give another address with --listen, or 127.0.0.1:0 for a free port"
    )]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said. It is in the message, so it is not a source.
        cause: io::Error,
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
        let refused = |cause| ServeError::Bind { address, cause };
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
            let (router, limits, stop) = (router.clone(), Arc::clone(&limits), stop.clone());
            connections.spawn(async move {
                let _place = place;
                let shaken = tokio::select! {
                    shaken = handshake(stream, address, &acceptor, &limits) => shaken,
                    () = stop.cancelled() => return,
                };
                if let Some(stream) = shaken {
                    let certificate = peers.peer(stream.get_ref().1.peer_certificates(), clock.now());
                    converse(stream, Peer::Socket { address, certificate }, address, router, &limits, &stop)
                        .await;
                }
            });
        }
        drop(self.socket);
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(limits.drain, ended).await.is_err() {
            tracing::warn!(after = ?limits.drain, "requests were still open when the hub stopped");
        }
        connections.shutdown().await;
    }
}

/// Answers the requests of one connection, until it ends or has to be ended.
async fn converse(
    stream: TlsStream<TcpStream>,
    peer: Peer,
    address: SocketAddr,
    router: Router,
    limits: &Limits,
    stop: &CancellationToken,
) {
    let (talk, answers) = (Talk::new(), Answers::new());
    let stream = guarded(stream, talk.clone(), limits);
    let bounds = Bounds { bytes: limits.discard, time: limits.body_read };
    let head_max = limits.headers;
    let (spoken, watched) = (talk.clone(), answers.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let open = talk.begin();
        let answer = if head_bytes(&request) > head_max {
            Err(head_too_large(head_max))
        } else {
            request.extensions_mut().insert(peer.clone());
            let body = |body| Body::new(Sent::new(body, bounds, Arc::clone(&open)));
            Ok(router.clone().oneshot(request.map(body)))
        };
        let answers = answers.clone();
        async move {
            let answer = match answer {
                Ok(answer) => answer.await?,
                Err(refused) => refused,
            };
            Ok::<_, Infallible>(answer.map(|body| answers.watch(body).holding(open)))
        }
    });
    let server = builder(limits);
    let mut connection = pin!(server.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let patience = Patience { head: limits.header_read, next: limits.idle };
    let mut ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, %address, "a connection ended early");
                }
                return;
            }
            () = watched.stalled(limits.write_stall) => {
                tracing::debug!(%address, "a client did not take its answer");
                return;
            }
            () = stop.cancelled(), if !ending => {}
            turn = spoken.passed(patience), if !ending => if turn == Turn::Head {
                tracing::debug!(%address, "a client did not finish its headers");
                return;
            },
        }
        // Nothing new is taken on; what is open may finish.
        ending = true;
        connection.as_mut().graceful_shutdown();
    }
}

/// The size of a head as HTTP/2 counts it: names, values, and what it costs to keep each.
fn head_bytes<B>(request: &Request<B>) -> usize {
    const EACH: usize = 32;
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + EACH).sum::<usize>()
        + target
}

fn head_too_large(most: usize) -> Response<Body> {
    let message = format!("the request's target and headers are larger than {most} bytes; send less");
    crate::reply::status(&Status::failure(431, Reason::BadRequest, message), false)
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
    talk: Talk,
    limits: &Limits,
) -> std::pin::Pin<Box<TimeoutStream<Heard<S>>>> {
    let mut stream = TimeoutStream::new(Heard::new(stream, talk));
    stream.set_write_timeout(Some(limits.write_stall));
    Box::pin(stream)
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Heads that are too large are read all the same, within bounds: that they are can only be said to whoever was heard.
    let read_max = limits.headers.saturating_mul(2);
    builder
        .http1()
        .timer(TokioTimer::new())
        // It would count the time between two requests as well; the talk does not.
        .header_read_timeout(None)
        .max_buf_size(read_max.max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(read_max).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams_per_connection)
        // A peer that vanished without a word is noticed, so that its watches end.
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
