//! The reader against a server that says what the script says, to the byte.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;

use berth_api::Placement;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use kube::client::Body;

use super::vigil::UNWELL_MAX;
use super::*;
use crate::serve::Health;
use crate::world::Object;

/// What the server does next in an answer.
enum Step {
    Say(Bytes),
    /// The connection is lost.
    Lose,
    /// Nothing comes for so long.
    Wait(Duration),
    /// Nothing more comes, and the connection stays.
    Stall,
}

type Answer = (u16, Vec<Step>);

fn say(text: impl Into<String>) -> Step {
    Step::Say(Bytes::from(text.into()))
}

fn answer(text: &str) -> Answer {
    (200, vec![say(text)])
}

fn page(names: &[&str], revision: &str, token: &str) -> Answer {
    let items: Vec<String> = names.iter().map(|name| object(name, 1, "3")).collect();
    let items = items.join(",");
    answer(&format!(
        r#"{{"kind":"PlacementList","metadata":{{"resourceVersion":"{revision}","continue":"{token}"}},"items":[{items}]}}"#
    ))
}

fn object(name: &str, revision: u32, wanted: &str) -> String {
    format!(
        r#"{{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{{"name":"{name}","namespace":"n","resourceVersion":"{revision}","managedFields":[{{"manager":"somebody"}}]}},"spec":{{"numberOfClusters":{wanted}}}}}"#
    )
}

fn line(event: &str, name: &str, revision: u32) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{}}}\n", object(name, revision, "3"))
}

fn bookmark(revision: u32) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Placement\",\"metadata\":{{\"resourceVersion\":\"{revision}\"}}}}}}\n"
    )
}

fn refusal(code: u16) -> String {
    format!(r#"{{"kind":"Status","status":"Failure","message":"no","reason":"No","code":{code}}}"#)
}

fn error_event(code: u16) -> String {
    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", refusal(code))
}

/// A server with a script, and the reader of it.
struct Scene {
    asked: Arc<Mutex<Vec<String>>>,
    hearing: mpsc::Receiver<Told>,
    /// The revisions of the lists that were heard.
    lists: Vec<String>,
    /// Whether what happens is heard, each time that this was told.
    sight: Vec<bool>,
    metrics: Arc<Metrics>,
    health: Health,
    _reader: AbortOnDropHandle<()>,
}

impl Scene {
    /// After the script the server stalls.
    fn new(script: Vec<Answer>) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        let log = Arc::clone(&asked);
        let server = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().trim_start_matches('&').to_owned();
            log.lock().unwrap().push(query);
            let (code, steps) = script.lock().unwrap().pop_front().unwrap_or((200, vec![Step::Stall]));
            async move { Ok::<_, Infallible>(Response::builder().status(code).body(body(steps)).unwrap()) }
        });
        let (told, hearing) = mpsc::channel(100);
        let (metrics, health) = (Arc::new(Metrics::default()), Health::default());
        let watches = Watches {
            client: Client::new(server, "default"),
            home: "berth-system".to_owned(),
            told,
            metrics: Arc::clone(&metrics),
            vigil: Arc::new(Vigil::new(&health)),
            stop: CancellationToken::new(),
        };
        let reader = tokio::spawn(Reader::<Placement>::new(watches).run());
        Self {
            asked,
            hearing,
            lists: Vec::new(),
            sight: Vec::new(),
            metrics,
            health,
            _reader: AbortOnDropHandle::new(reader),
        }
    }

    /// The next things told, in short.
    async fn hear(&mut self, count: usize) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.len() < count {
            let told = self.hearing.recv().await.unwrap();
            match told {
                Told::ListOf(_, revision) => self.lists.push(revision),
                Told::Lost(_) => self.sight.push(false),
                Told::Followed(_) => self.sight.push(true),
                told => heard.push(short(&told)),
            }
        }
        heard
    }

    /// The requests once there are so many.
    async fn asked(&mut self, count: usize) -> Vec<String> {
        loop {
            let asked = self.asked.lock().unwrap().clone();
            if asked.len() >= count {
                return asked;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn failures(&self) -> usize {
        let text = self.metrics.text();
        let line = text.lines().find(|line| line.starts_with("berth_watch_failures_total"));
        line.and_then(|line| line.rsplit_once(' ')).map_or(0, |(_, count)| count.parse().unwrap())
    }
}

fn body(steps: Vec<Step>) -> UnsyncBoxBody<Bytes, std::io::Error> {
    let frames = futures::stream::iter(steps).then(async |step| match step {
        Step::Say(piece) => Ok(Frame::data(piece)),
        Step::Wait(time) => {
            tokio::time::sleep(time).await;
            Ok(Frame::data(Bytes::new()))
        }
        Step::Lose => Err(std::io::Error::other("cut")),
        Step::Stall => std::future::pending().await,
    });
    UnsyncBoxBody::new(StreamBody::new(frames))
}

fn short(told: &Told) -> String {
    match told {
        Told::ListBegins(_) => "list".to_owned(),
        Told::ListEnds(_) => "listed".to_owned(),
        Told::Seen(Object::Placement(object)) => {
            assert!(object.metadata.managed_fields.is_none());
            format!("{}@{}", name(&object.metadata), object.metadata.resource_version.as_deref().unwrap())
        }
        Told::Ended(_, end) => format!("end of {}", name(end)),
        Told::Unreadable(_, key) => format!("unreadable {}", key.name),
        other => panic!("no watch tells {other:?}"),
    }
}

fn name(metadata: &kube::api::ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap()
}

const WATCHING: &str = "watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=";

fn watching(revision: &str) -> String {
    format!("{WATCHING}{revision}")
}

#[tokio::test(start_paused = true)]
async fn a_list_goes_on_page_by_page_and_the_watch_from_its_end() {
    let mut scene = Scene::new(vec![
        page(&["a", "b"], "9", "more"),
        page(&["c"], "9", ""),
        answer(&(line("ADDED", "d", 10) + &line("MODIFIED", "a", 11) + &line("DELETED", "b", 12))),
    ]);
    let heard = scene.hear(8).await;
    assert_eq!(heard, ["list", "a@1", "b@1", "c@1", "listed", "d@10", "a@11", "end of b"]);
    assert_eq!(scene.lists, ["9"], "once for all its pages");
    let asked = scene.asked(4).await;
    assert_eq!(asked, ["limit=500", "limit=500&continue=more", &watching("9"), &watching("12")]);
    assert_eq!(scene.failures(), 0, "a watch that ends is no failure");
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_is_where_the_next_watch_begins() {
    let mut scene = Scene::new(vec![page(&[], "9", ""), answer(&bookmark(70))]);
    assert_eq!(scene.asked(3).await[1..], [watching("9"), watching("70")]);
}

#[tokio::test(start_paused = true)]
async fn what_was_cut_off_is_told_by_the_next_watch_wherever_the_cut_was() {
    let text = line("ADDED", "a", 10) + &line("ADDED", "b", 11);
    for cut in 0..=text.len() {
        let before = &text[..cut];
        let begins_at = before.matches('\n').count();
        let rest: String = text.split_inclusive('\n').skip(begins_at).collect();
        let mut scene = Scene::new(vec![
            page(&[], "9", ""),
            (200, vec![say(before), Step::Lose]),
            (200, vec![say(rest), Step::Stall]),
        ]);
        let heard = scene.hear(4).await;
        assert_eq!(heard, ["list", "listed", "a@10", "b@11"], "cut {cut}");
        let from = ["9", "10", "11"][begins_at];
        assert_eq!(scene.asked(3).await[2], watching(from), "cut {cut}");
        assert_eq!(scene.failures(), 1, "cut {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_forgotten_the_way_is_listed_again() {
    for expired in [answer(&error_event(410)), (410, vec![say(refusal(410))])] {
        let mut scene = Scene::new(vec![page(&["a"], "9", ""), expired, page(&[], "20", "")]);
        assert_eq!(scene.hear(5).await, ["list", "a@1", "listed", "list", "listed"]);
        assert_eq!(scene.asked(4).await[2..], ["limit=500", &watching("20")]);
    }
}

#[tokio::test(start_paused = true)]
async fn any_other_trouble_of_a_watch_leaves_it_where_it_was() {
    let later = answer(&(line("ADDED", "a", 10) + &error_event(500)));
    for trouble in [later, (429, vec![say(refusal(429))]), (502, vec![say("bad gateway")])] {
        let mut scene = Scene::new(vec![page(&[], "9", ""), trouble, answer(&line("ADDED", "b", 11))]);
        let heard = scene.hear(3).await;
        assert_eq!(heard[..2], ["list", "listed"]);
        let asked = scene.asked(3).await;
        let reached = if heard[2] == "a@10" { "10" } else { "9" };
        assert_eq!(asked[2], watching(reached), "{heard:?}");
        assert_eq!(scene.failures(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_on_the_way_begins_anew() {
    let expired = (410, vec![say(refusal(410))]);
    let mut scene = Scene::new(vec![page(&["a"], "9", "more"), expired, page(&["b"], "10", "")]);
    assert_eq!(scene.hear(5).await, ["list", "a@1", "list", "b@1", "listed"]);
    assert_eq!(scene.asked(4).await[2..], ["limit=500", &watching("10")]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_gone_quiet_is_not_believed_for_ever() {
    let quiet = || (200, vec![say(line("ADDED", "a", 10)), Step::Stall]);
    let mut scene = Scene::new(vec![page(&[], "9", ""), quiet(), answer(&line("ADDED", "b", 11))]);
    let begun = tokio::time::Instant::now();
    assert_eq!(scene.hear(4).await, ["list", "listed", "a@10", "b@11"]);
    assert!(begun.elapsed() > Duration::from_secs(290), "the server may take its time");
    assert!(begun.elapsed() < Duration::from_secs(320));
    assert_eq!(scene.asked(3).await[2], watching("10"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_told_by_its_name_and_ends_nothing() {
    let broken = object("a", 10, "\"many\"");
    let items =
        format!(r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{broken},{}]}}"#, object("b", 8, "1"));
    let event = format!("{{\"type\":\"MODIFIED\",\"object\":{broken}}}\n");
    let end = event.replace("MODIFIED", "DELETED");
    let mut scene = Scene::new(vec![answer(&items), answer(&(event + &line("ADDED", "c", 11) + &end))]);
    let heard = scene.hear(7).await;
    assert_eq!(heard, ["list", "unreadable a", "b@8", "listed", "unreadable a", "c@11", "end of a"]);
    assert_eq!(scene.failures(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_at_all_is_made_up_for_by_a_list() {
    let nameless = r#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"10"}}}"#;
    let without_revision = r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#;
    for garbled in ["<html>", nameless, without_revision, r#"{"type":"NEW","object":{}}"#] {
        let mut scene = Scene::new(vec![
            page(&[], "9", ""),
            answer(&format!("{garbled}\n{}", line("ADDED", "lost", 11))),
            page(&["a"], "12", ""),
        ]);
        assert_eq!(scene.hear(5).await, ["list", "listed", "list", "a@1", "listed"], "{garbled}");
        let asked = scene.asked(4).await;
        assert_eq!((&asked[2..], scene.failures()), (&["limit=500".to_owned(), watching("12")][..], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_without_an_end_is_made_up_for_by_a_list() {
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let endless = (200, (0..33).map(|_| Step::Say(piece.clone())).collect());
    let mut scene = Scene::new(vec![page(&[], "9", ""), endless, page(&["a"], "12", "")]);
    assert_eq!(scene.hear(5).await, ["list", "listed", "list", "a@1", "listed"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_garbles_is_not_listed_thick_and_fast_and_not_ready() {
    let garbling = (0..100).flat_map(|_| [page(&[], "9", ""), answer("<html>\n")]);
    let mut scene = Scene::new(garbling.chain([page(&[], "9", "")]).collect());
    let begun = tokio::time::Instant::now();
    let hears = async { while scene.hearing.recv().await.is_some() {} };
    let unready = async {
        while scene.health.is_ready() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! { () = hears => unreachable!("the reader goes on"), () = unready => {} }
    assert!(begun.elapsed() >= UNWELL_MAX);
    assert!(scene.asked.lock().unwrap().len() < 40, "{:?}", scene.asked);
    let hears = async { while scene.hearing.recv().await.is_some() {} };
    let ready = async {
        while !scene.health.is_ready() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! { () = hears => unreachable!("the reader goes on"), () = ready => {} }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_ends_the_trouble_without_a_word() {
    let away = || (503, vec![say("away")]);
    let quiet = (200, vec![Step::Stall]);
    let script = std::iter::once(page(&[], "9", "")).chain((0..120).map(|_| away())).chain([quiet]);
    let mut scene = Scene::new(script.collect());
    scene.asked(121).await;
    assert!(!scene.health.is_ready());
    scene.asked(122).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(scene.health.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_gone_back_is_listed_again() {
    let mut scene = Scene::new(vec![page(&[], "100", ""), answer(&bookmark(60)), page(&["a"], "61", "")]);
    assert_eq!(scene.hear(5).await, ["list", "listed", "list", "a@1", "listed"]);
    assert_eq!(scene.lists, ["100", "61"]);
    assert_eq!(scene.asked(4).await[3], watching("61"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lasted_without_a_word_or_a_bookmark_is_not_believed() {
    let mute = |seconds| (200, vec![Step::Wait(Duration::from_secs(seconds))]);
    let mut scene = Scene::new(vec![page(&[], "100", ""), mute(60), mute(290), page(&[], "61", "")]);
    assert_eq!(scene.hear(4).await, ["list", "listed", "list", "listed"]);
    assert_eq!(scene.asked(5).await[1..4], [&*watching("100"), &watching("100"), "limit=500"]);
    assert_eq!(scene.failures(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_revision_is_no_list() {
    let mut scene = Scene::new(vec![page(&["a"], "", ""), page(&["a"], "9", "")]);
    assert_eq!(scene.hear(5).await, ["list", "a@1", "list", "a@1", "listed"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_nothing_may_be_null() {
    let nothing = answer(r#"{"metadata":{"resourceVersion":"9"},"items":null}"#);
    assert_eq!(Scene::new(vec![nothing]).hear(2).await, ["list", "listed"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_large_is_asked_for_in_smaller_ones() {
    let piece = Bytes::from(vec![b' '; 1 << 20]);
    let large = (200, (0..257).map(|_| Step::Say(piece.clone())).collect());
    let mut scene = Scene::new(vec![large, page(&["a"], "9", "")]);
    assert_eq!(scene.hear(4).await, ["list", "list", "a@1", "listed"]);
    assert_eq!(scene.asked(2).await[..2], ["limit=500", "limit=250"]);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_do_not_come_thick_and_fast() {
    let script = std::iter::once(page(&[], "9", "")).chain((0..200).map(|_| answer("")));
    let mut scene = Scene::new(script.collect());
    let begun = tokio::time::Instant::now();
    scene.asked(60).await;
    assert!(begun.elapsed() > Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_asked_again_and_again() {
    let away = || (503, vec![say("away")]);
    let script = (0..50).map(|_| away()).chain([page(&["a"], "9", "")]);
    let mut scene = Scene::new(script.collect());
    let heard = scene.hear(52).await;
    assert_eq!(heard[50..], ["list", "a@1"], "{heard:?}");
    assert_eq!(scene.failures(), 50);
}

#[tokio::test(start_paused = true)]
async fn that_what_happens_is_not_heard_is_told_once_and_so_is_that_it_is_again() {
    let mut scene = Scene::new(vec![
        page(&[], "9", ""),
        (200, vec![say(line("ADDED", "a", 10)), Step::Lose]),
        (503, vec![say("away")]),
        (503, vec![say("away")]),
        (200, vec![say(line("ADDED", "b", 11)), say(line("ADDED", "c", 12)), Step::Stall]),
    ]);
    assert_eq!(scene.hear(5).await, ["list", "listed", "a@10", "b@11", "c@12"]);
    assert_eq!(scene.sight, [true, false, true]);
}
