//! The way of a question: one POST over TLS, within a time and a size.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use berth_engine::gate::Address;
use bytes::Bytes;
use http::uri::Authority;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::sync::Semaphore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::answer::{Answer, Silence, shown};
use super::document::{Question, read};
use crate::serve::crypto_provider;

/// What an answer may have, in bytes: a few lines of JSON.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Questions under way at once, in all and to one service: one that hangs leaves places to others.
const QUESTIONS_MAX: usize = 32;
const QUESTIONS_MAX_EACH: usize = 8;
/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(30);
/// Services whose connections are kept. More than there are policies in a cluster; beyond it connections are made anew.
const WAYS_MAX: usize = 64;

/// Asks. Cheap to share: connections and bounds are those of all who ask.
#[derive(Debug)]
pub struct Reviewer {
    places: Semaphore,
    /// Held while one is looked up or made, never across an await.
    ways: Mutex<HashMap<WayKey, Arc<Way>>>,
}

/// Connections are shared by those who go to the same place and trust the same there.
type WayKey = (Authority, Option<Arc<[u8]>>);

/// The connections to one service.
#[derive(Debug)]
struct Way {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    places: Semaphore,
}

impl Default for Reviewer {
    fn default() -> Self {
        Self { places: Semaphore::new(QUESTIONS_MAX), ways: Mutex::default() }
    }
}

impl Reviewer {
    /// Asks the service at `address`. The answer comes within the time that the address has, whatever happens; whoever does
    /// not want it any more drops the future, and the question with it.
    pub async fn ask(&self, address: &Address, question: &Question) -> Answer {
        let unanswered = |why| Answer::Unanswered { why };
        let way = match self.way(address) {
            Ok(way) => way,
            Err(why) => return unanswered(why),
        };
        let deadline = tokio::time::Instant::now() + address.timeout();
        let places = async { (way.places.acquire().await, self.places.acquire().await) };
        let Ok(_places) = tokio::time::timeout_at(deadline, places).await else {
            return unanswered(Silence::Busy);
        };
        match tokio::time::timeout_at(deadline, exchange(&way, address, question)).await {
            Ok(answer) => answer.unwrap_or_else(unanswered),
            Err(_) => unanswered(Silence::Timeout(address.timeout())),
        }
    }

    fn way(&self, address: &Address) -> Result<Arc<Way>, Silence> {
        let authority = address.uri().authority().cloned().expect("an address of https has an authority");
        let key = (authority, address.bundle().map(Arc::clone));
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = ways.get(&key) {
            return Ok(Arc::clone(way));
        }
        let way = Arc::new(Way::new(address.bundle().map(AsRef::as_ref))?);
        if ways.len() >= WAYS_MAX {
            // Questions under way keep theirs.
            ways.clear();
        }
        ways.insert(key, Arc::clone(&way));
        Ok(way)
    }
}

impl Way {
    fn new(bundle: Option<&[u8]>) -> Result<Self, Silence> {
        let failed = |error: &dyn ToString| Silence::Unreachable(error.to_string());
        let builder = ClientConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?;
        let builder = match bundle {
            Some(bundle) => {
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(bundle) {
                    let certificate = certificate.map_err(|error| failed(&error))?;
                    roots.add(certificate).map_err(|error| failed(&error))?;
                }
                builder.with_root_certificates(roots)
            }
            None => builder.with_platform_verifier().map_err(|error| failed(&error))?,
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(builder.with_no_client_auth())
            .https_only()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(QUESTIONS_MAX_EACH)
            .build(connector);
        Ok(Self { client, places: Semaphore::new(QUESTIONS_MAX_EACH) })
    }
}

async fn exchange(way: &Way, address: &Address, question: &Question) -> Result<Answer, Silence> {
    let uid = question.uid();
    let request = Request::post(address.uri())
        .header(header::USER_AGENT, concat!("berth/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", &uid)
        .body(Full::new(Bytes::from(question.document(&uid))))
        .expect("an address and an id are fit for a request");
    let response = way.client.request(request).await.map_err(|error| unreachable(&error))?;
    let (head, body) = response.into_parts();
    if let Some(answer) = Answer::of_head(head.status, &head.headers) {
        return Ok(answer);
    }
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Silence::TooLong { bytes_max: ANSWER_BYTES_MAX }
        } else {
            unreachable(&*error)
        }
    })?;
    read(&body.to_bytes(), question.kind(), &uid)
        .map(|response| Answer::of_document(&response, &head.headers))
}

/// The innermost cause: those around it say only that something failed.
fn unreachable(error: &(dyn Error + 'static)) -> Silence {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Silence::Unreachable(shown(&cause.to_string()))
}
