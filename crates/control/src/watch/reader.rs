//! One kind, listed and watched for ever.
//!
//! Owns how an API server is followed: a list in pages, then a watch from where the list ends, and from where the watch
//! ended when it ends. Only where the way from there is no longer known, or cannot be understood, does it begin with a list
//! again. It decides nothing about what it hears: that is told on in the order in which it came.
//!
//! ```text
//!   list --pages--> watch --ended, lost, silent--> watch ...
//!    ^                 '-- 410: too long ago; a line that cannot be read; a server gone back
//!    '-----------------------'
//! ```

use std::marker::PhantomData;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::Resource as _;
use kube::api::{ListParams, WatchParams};
use kube::client::Body;
use kube::core::Status;
use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Watches;
use super::lines::{Lines, TooLong};
use super::news::{Garbled, News, Page, item};
use crate::world::{Kind, Known, Scope, Told, number};

/// The first wait after a failure.
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// The longest wait after a failure: how late we may notice that the server is back.
const RETRY_MAX: Duration = Duration::from_secs(2);
/// The longest wait before a list that makes up for a line that cannot be read: lists are dear, and whoever sends one such
/// line may send many.
const RELIST_MAX: Duration = Duration::from_secs(30);
/// Objects in one page of a list.
const PAGE_OBJECTS: u32 = 500;
/// Bytes in one page. Where objects are so large, fewer are asked for.
const PAGE_BYTES_MAX: usize = 256 << 20;
/// How long a page may take: longer than any server lets a request take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a server is asked to keep a watch open, and how much later it counts as lost.
const WATCH: Duration = Duration::from_secs(290);
const WATCH_SLACK: Duration = Duration::from_secs(15);
/// A watch that ends sooner than this and told nothing does not work, and is not begun again at once.
const WATCH_LEAST: Duration = Duration::from_secs(1);
/// Bookmarks come about every minute. A watch that lasted for so long without any may be one from a revision that the server
/// has yet to reach, because it has gone back: such a watch is silent.
const BOOKMARKS_LATE: Duration = Duration::from_secs(150);
/// How often a server that does not serve an optional kind is asked whether it does by now.
const UNSERVED_WAIT: Duration = Duration::from_secs(10);
/// For how long a kind that was served must not be before its objects count as gone.
const UNSERVED_PATIENCE: Duration = Duration::from_mins(1);
/// The longest explanation of a refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// What a server says of its groups, and of the resources in one.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Served>,
}

#[derive(Deserialize)]
struct Served {
    name: String,
}

/// Why a list or a watch ended.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Request(#[from] kube::Error),
    #[error("the server refuses: {} ({})", .0.message, .0.code)]
    Refused(Box<Status>),
    #[error(transparent)]
    Garbled(#[from] Garbled),
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("a page of the list has more than {PAGE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the connection was lost: {0}")]
    Lost(String),
    #[error("no answer in time")]
    Silent,
    #[error("the server is at revision {now} and was past {before}")]
    WentBack { before: String, now: String },
    #[error("the controllers have stopped listening")]
    Deaf,
}

impl Trouble {
    fn code(&self) -> Option<u16> {
        match self {
            Self::Request(kube::Error::Api(status)) | Self::Refused(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether the server sent what cannot be read, and from the same place would send it again.
    fn is_garbled(&self) -> bool {
        matches!(self, Self::Garbled(_) | Self::TooLong(_))
    }

    /// Whether what happened can only be found out by a list: it is too long ago, was not told, or has been undone.
    fn needs_list(&self) -> bool {
        self.code() == Some(410) || self.is_garbled() || matches!(self, Self::WentBack { .. })
    }

    /// What a person can do about it, where that is known.
    fn advice(&self, kind: Kind) -> String {
        match self.code() {
            Some(404) => format!("{self}: {kind} is not served; apply its CustomResourceDefinition"),
            Some(403) => format!("{self}: this identity may not list and watch {}", kind.plural()),
            _ => self.to_string(),
        }
    }
}

/// What a watch that has ended in order is good for.
enum Heard {
    /// The next may begin where it ended.
    Something,
    /// It lasted and told nothing at all: whether nothing happened is found out by a list.
    Nothing,
}

/// Follows one kind.
pub(super) struct Reader<K> {
    watches: Watches,
    request: kube::core::Request,
    /// Objects to ask for in one page.
    page: u32,
    /// The next wait.
    wait: Duration,
    is_troubled: bool,
    /// Whether it was told that what happens is not heard.
    is_lost: bool,
    /// Whether it was ever served, as far as is known since.
    was_served: bool,
    /// Since when it is not.
    unserved_since: Option<Instant>,
    /// Memory to read objects in.
    slim: String,
    kind: PhantomData<fn() -> K>,
}

impl<K: Known> Reader<K> {
    pub(super) fn new(watches: Watches) -> Self {
        let namespace = match K::KIND.scope() {
            Scope::Everywhere => None,
            Scope::Namespace(name) => Some(name.to_owned()),
            Scope::Home => Some(watches.home.clone()),
        };
        Self {
            watches,
            request: kube::core::Request::new(K::Of::url_path(&(), namespace.as_deref())),
            page: PAGE_OBJECTS,
            wait: RETRY_FIRST,
            is_troubled: false,
            // Whoever was here before may have ended without a word.
            is_lost: true,
            was_served: false,
            unserved_since: None,
            slim: String::new(),
            kind: PhantomData,
        }
    }

    /// Follows the kind until nobody listens any more.
    pub(super) async fn run(mut self) {
        loop {
            let mut revision = match self.list().await {
                Ok(revision) => revision,
                Err(Trouble::Deaf) => return,
                Err(trouble) if K::KIND.is_optional() && trouble.code() == Some(404) => {
                    match self.unserved().await {
                        Ok(true) => sleep(UNSERVED_WAIT).await,
                        Ok(false) => self.rest(&trouble).await,
                        Err(Trouble::Deaf) => return,
                        Err(trouble) => self.rest(&trouble).await,
                    }
                    continue;
                }
                Err(trouble) => {
                    self.rest(&trouble).await;
                    continue;
                }
            };
            self.unserved_since = None;
            self.was_served = true;
            loop {
                match self.watch(&mut revision).await {
                    Ok(Heard::Something) => {}
                    Ok(Heard::Nothing) => break,
                    Err(Trouble::Deaf) => return,
                    Err(trouble) => {
                        self.rest(&trouble).await;
                        if trouble.needs_list() || (K::KIND.is_optional() && trouble.code() == Some(404)) {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// A list was answered with 404. Whoever stands before the server says that as well, so its discovery is asked: if that shows
    /// that the kind is not served, there are no objects of it, and that is told. Objects that were there are gone with their
    /// definition only if that goes on for a while: a server that has just begun may not know its definitions yet.
    async fn unserved(&mut self) -> Result<bool, Trouble> {
        let (group, version) = (K::Of::group(&()), K::Of::version(&()));
        let groups: Groups = self.ask("/apis".to_owned()).await?;
        let mut versions = groups.groups.iter().filter(|one| one.name == group).flat_map(|one| &one.versions);
        let is_served = if versions.any(|one| one.version == version) {
            let resources: Resources = self.ask(format!("/apis/{group}/{version}")).await?;
            resources.resources.iter().any(|one| one.name == K::Of::plural(&()))
        } else {
            false
        };
        if is_served {
            self.unserved_since = None;
            return Ok(false);
        }
        let since = *self.unserved_since.get_or_insert_with(Instant::now);
        if self.was_served && since.elapsed() < UNSERVED_PATIENCE {
            return Ok(false);
        }
        self.was_served = false;
        self.tell(Told::ListBegins(K::KIND)).await?;
        self.tell(Told::ListEnds(K::KIND)).await?;
        self.well().await?;
        Ok(true)
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, path: String) -> Result<T, Trouble> {
        let request = Request::get(path).body(Vec::new()).expect("groups and versions make a path");
        let bytes = self.page(request).await?;
        serde_json::from_slice(&bytes).map_err(|error| Garbled::from(error).into())
    }

    /// Everything there is; the revision it is of comes back.
    async fn list(&mut self) -> Result<String, Trouble> {
        self.tell(Told::ListBegins(K::KIND)).await?;
        let mut token: Option<String> = None;
        loop {
            let is_first = token.is_none();
            let mut params = ListParams { field_selector: fields::<K>(), ..ListParams::default() };
            params = params.limit(self.page);
            params.continue_token = token;
            let request = self.request.list(&params).map_err(kube::Error::BuildRequest)?;
            let bytes = match self.page(request).await {
                Err(Trouble::TooLarge) if self.page > 1 => {
                    self.page /= 2;
                    return Err(Trouble::TooLarge);
                }
                read => read?,
            };
            let page: Page<'_> = serde_json::from_slice(&bytes).map_err(Garbled::from)?;
            if is_first {
                self.tell(Told::ListOf(K::KIND, page.metadata.resource_version.clone())).await?;
            }
            for object in page.items {
                let told = item::<K>(object, &mut self.slim)?;
                self.tell(told).await?;
            }
            if page.metadata.token.is_empty() {
                let revision = page.metadata.resource_version;
                if revision.is_empty() {
                    return Err(Garbled::NoRevision.into());
                }
                self.tell(Told::ListEnds(K::KIND)).await?;
                return Ok(revision);
            }
            token = Some(page.metadata.token);
        }
    }

    async fn page(&self, request: Request<Vec<u8>>) -> Result<Bytes, Trouble> {
        let read = async {
            let response = self.send(request).await?;
            let body = Limited::new(response.into_body(), PAGE_BYTES_MAX).collect().await;
            body.map(http_body_util::Collected::to_bytes).map_err(|error| {
                if error.is::<LengthLimitError>() {
                    Trouble::TooLarge
                } else {
                    Trouble::Lost(error.to_string())
                }
            })
        };
        timeout(PAGE_TIMEOUT, read).await.unwrap_or(Err(Trouble::Silent))
    }

    /// What happens after `revision`, which goes along, until the watch ends.
    async fn watch(&mut self, revision: &mut String) -> Result<Heard, Trouble> {
        let begun = Instant::now();
        let params = WatchParams {
            field_selector: fields::<K>(),
            timeout: Some(u32::try_from(WATCH.as_secs()).expect("a few minutes")),
            ..WatchParams::default()
        };
        let mut request = self.request.watch(&params, revision).map_err(kube::Error::BuildRequest)?;
        // Events are small and each is to be seen at once.
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let mut silence = pin!(sleep_until(begun + WATCH + WATCH_SLACK));
        let mut body = tokio::select! {
            response = self.send(request) => response?.into_body(),
            () = &mut silence => return Err(Trouble::Silent),
        };
        let mut lines = Lines::default();
        let mut has_told = false;
        // A server that is well may have nothing to tell for long; one that is not may answer and end at once.
        let mut lasting = pin!(sleep(WATCH_LEAST));
        let mut is_well = false;
        loop {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = &mut lasting, if !is_well => {
                    is_well = true;
                    self.well().await?;
                    continue;
                }
                () = &mut silence => return Err(Trouble::Silent),
            };
            let piece = match frame {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Err(Trouble::Lost(error.to_string())),
                None => break,
            };
            lines.feed(piece);
            while let Some(line) = lines.next()? {
                match News::read::<K>(&line, &mut self.slim)? {
                    News::Told { told, revision: reached } => {
                        self.tell(told).await?;
                        *revision = reached;
                    }
                    News::Mark(reached) if number(&reached) < number(revision) => {
                        return Err(Trouble::WentBack { before: revision.clone(), now: reached });
                    }
                    News::Mark(reached) => *revision = reached,
                    News::Trouble(status) => return Err(Trouble::Refused(status)),
                }
                has_told = true;
                if !std::mem::replace(&mut is_well, true) {
                    self.well().await?;
                }
            }
        }
        // What came of a line without its end is told again by the next watch.
        if !has_told && begun.elapsed() < WATCH_LEAST {
            tracing::debug!(kind = %K::KIND, "the watch ended at once");
            self.watches.vigil.fails(K::KIND);
            self.lose().await?;
            self.pause(RETRY_MAX).await;
        }
        let is_mute = !has_told && begun.elapsed() >= BOOKMARKS_LATE;
        Ok(if is_mute { Heard::Nothing } else { Heard::Something })
    }

    /// Sends a request; an answer that is a refusal is an error.
    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, Trouble> {
        let response = self.watches.client.send(request.map(Body::from)).await?;
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let status = serde_json::from_slice::<Status>(&body).ok().filter(|status| status.code != 0);
        let status = status.unwrap_or_else(|| {
            // Not every refusal is a Status: a proxy answers in words of its own.
            Status::failure(String::from_utf8_lossy(&body).trim(), "").with_code(code.as_u16())
        });
        Err(Trouble::Refused(status.boxed()))
    }

    async fn tell(&self, told: Told) -> Result<(), Trouble> {
        self.watches.told.send(told).await.map_err(|_| Trouble::Deaf)
    }

    /// The watch works: it told something, or it lasts.
    async fn well(&mut self) -> Result<(), Trouble> {
        self.wait = RETRY_FIRST;
        self.watches.vigil.works(K::KIND);
        if std::mem::take(&mut self.is_lost) {
            self.tell(Told::Followed(K::KIND)).await?;
        }
        if std::mem::take(&mut self.is_troubled) {
            tracing::info!(kind = %K::KIND, "the watch works again");
        }
        Ok(())
    }

    /// Tells that what happens from here on is not heard.
    async fn lose(&mut self) -> Result<(), Trouble> {
        if std::mem::replace(&mut self.is_lost, true) { Ok(()) } else { self.tell(Told::Lost(K::KIND)).await }
    }

    /// Something failed: says so, once for each trouble and not once for each try, and waits.
    async fn rest(&mut self, trouble: &Trouble) {
        self.watches.metrics.watch_failed(K::KIND);
        self.watches.vigil.fails(K::KIND);
        if !std::mem::replace(&mut self.is_troubled, true) {
            tracing::warn!(kind = %K::KIND, error = %trouble.advice(K::KIND), "the watch failed; trying again");
        }
        // Where nobody listens any more, the next that is told finds out.
        let _ = self.lose().await;
        self.pause(if trouble.is_garbled() { RELIST_MAX } else { RETRY_MAX }).await;
    }

    async fn pause(&mut self, longest: Duration) {
        sleep(self.wait.min(longest)).await;
        self.wait = (self.wait * 2).min(longest);
    }
}

/// Every node and every leader election has a lease that is renewed all the time.
fn fields<K: Known>() -> Option<String> {
    let [name] = K::KIND.names() else { return None };
    Some(format!("metadata.name={name}"))
}
