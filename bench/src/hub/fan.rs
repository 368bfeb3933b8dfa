//! Many watchers, many updates, and the time until everybody has seen everything.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::task::JoinSet;

use super::client::{Address, Connection};
use super::objects::Kind;

/// Watches on one connection: servers allow a hundred streams or more.
const WATCHES_PER_CONNECTION: usize = 50;

/// Updates under way at once.
const WRITERS: usize = 8;

/// How long the whole may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// How often a watch that the server cut may be taken up again.
const RESUMES_MAX: usize = 1_000;

/// Opens the watches, makes the updates to objects `f1-r0-0` to `f1-r0-7`, and waits until every watch showed them all.
pub(super) async fn out(
    address: &Address,
    name: &str,
    watchers: usize,
    updates: usize,
    round: usize,
) -> anyhow::Result<Duration> {
    tokio::time::timeout(PATIENCE, measured(address, name, watchers, updates, round))
        .await
        .context("the watchers did not see every update in time")?
}

async fn measured(
    address: &Address,
    name: &str,
    watchers: usize,
    updates: usize,
    round: usize,
) -> anyhow::Result<Duration> {
    let stem = name.strip_suffix("-0").context("the first of the objects")?;
    let mut writer = address.connect().await?;
    let list =
        writer.ask(Method::GET, &format!("{}?limit=1", Kind::ManagedCluster.collection()), None).await?;
    let list: serde_json::Value = serde_json::from_slice(&list)?;
    let from = list["metadata"]["resourceVersion"].as_str().context("a list has a revision")?.to_owned();

    let mut watches = JoinSet::new();
    let mut connection = None;
    for number in 0..watchers {
        if number % WATCHES_PER_CONNECTION == 0 {
            connection = Some(address.connect().await?);
        }
        let connection: Connection = connection.clone().expect("opened for the first of them");
        let mut watcher = Watcher { connection, from: from.clone(), lines: Lines::default(), resumes: 0 };
        let body = watcher.begin().await?;
        watches.spawn(async move { watcher.see(body, updates).await });
    }

    let begun = Instant::now();
    let mut writers = JoinSet::new();
    for worker in 0..WRITERS {
        let mut writer = writer.clone();
        let target = Kind::ManagedCluster.path(&format!("{stem}-{worker}"));
        writers.spawn(async move {
            for update in (worker..updates).step_by(WRITERS) {
                let patch = format!(r#"{{"metadata":{{"annotations":{{"update":"{round}-{update}"}}}}}}"#);
                writer
                    .ask(Method::PATCH, &target, Some(("application/merge-patch+json", patch.into())))
                    .await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    while let Some(ended) = watches.join_next().await {
        ended??;
    }
    Ok(begun.elapsed())
}

struct Watcher {
    connection: Connection,
    from: String,
    lines: Lines,
    resumes: usize,
}

impl Watcher {
    async fn begin(&mut self) -> anyhow::Result<Incoming> {
        let target =
            format!("{}?watch=true&resourceVersion={}", Kind::ManagedCluster.collection(), self.from);
        Ok(self.connection.begin(Method::GET, &target, None).await?.into_body())
    }

    /// Reads until so many events were seen.
    async fn see(&mut self, mut body: Incoming, wanted: usize) -> anyhow::Result<()> {
        while self.lines.count < wanted {
            if let Some(Ok(frame)) = body.frame().await {
                if let Ok(data) = frame.into_data() {
                    self.lines.read(&data);
                }
                continue;
            }
            // A server may cut a watcher that it finds slow; a client comes back, as clients do.
            self.resumes += 1;
            ensure!(self.resumes < RESUMES_MAX, "a watch is cut again and again");
            if let Some(revision) = self.lines.revision() {
                self.from = revision;
            }
            self.lines.begun.clear();
            body = self.begin().await?;
        }
        let seen = self.lines.count;
        ensure!(seen == wanted, "a watcher saw {seen} events of {wanted}");
        Ok(())
    }
}

/// Events as they arrive, a line each. They are counted, not read: the client's own work should not be what is measured.
#[derive(Default)]
struct Lines {
    count: usize,
    /// The last whole line.
    last: Bytes,
    /// The line that is not whole yet.
    begun: Vec<u8>,
}

impl Lines {
    #[expect(clippy::naive_bytecount, reason = "the compiler makes vector instructions of it")]
    fn read(&mut self, data: &Bytes) {
        let end_of_line = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
        let Some(end) = end_of_line(data) else {
            self.begun.extend_from_slice(data);
            return;
        };
        self.count += data.iter().filter(|byte| **byte == b'\n').count();
        self.last = match end_of_line(&data[..end]) {
            Some(before) => data.slice(before + 1..end),
            None if self.begun.is_empty() => data.slice(..end),
            None => {
                self.begun.extend_from_slice(&data[..end]);
                std::mem::take(&mut self.begun).into()
            }
        };
        self.begun.clear();
        self.begun.extend_from_slice(&data[end + 1..]);
    }

    /// The revision that the last whole line tells last, which is the object's: fields are sorted, and nothing after
    /// `metadata` has one.
    fn revision(&self) -> Option<String> {
        const FIELD: &[u8] = b"\"resourceVersion\":\"";
        let at = self.last.windows(FIELD.len()).rposition(|window| window == FIELD)? + FIELD.len();
        let digits: Vec<u8> = self.last[at..].iter().copied().take_while(u8::is_ascii_digit).collect();
        String::from_utf8(digits).ok().filter(|digits| !digits.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_goes_on_from_the_last_whole_line_however_lines_arrive() {
        let text = "{\"resourceVersion\":\"7\"}\n{\"resourceVersion\":\"12\"}\n{\"resourceVersion\":\"13";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            for part in text.as_bytes().chunks(size) {
                lines.read(&Bytes::copy_from_slice(part));
            }
            assert_eq!((lines.count, lines.revision().as_deref()), (2, Some("12")), "in parts of {size}");
        }
        assert_eq!(Lines::default().revision(), None);
    }
}
