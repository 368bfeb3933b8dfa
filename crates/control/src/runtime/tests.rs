//! The loop by its turns: who is first, who waits for whom, and who finds a place.

use std::convert::Infallible;
use std::sync::Mutex;

use http::{Request, Response};
use kube::client::Body;

use super::*;
use crate::act::{Note, Target, Write};
use crate::controllers::Verdict;
use crate::inquiry::inquiries;
use crate::rights::Need;
use crate::world::Change;

/// A controller that writes down what it is asked for, has work that was put off, and decides on a write for everybody.
struct Diary {
    lines: Arc<Mutex<Vec<String>>>,
    is_guard: bool,
    /// What somebody waits to be told.
    news: Option<Note>,
    /// Whether it decides on words alone.
    only_tells: bool,
}

impl Diary {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

impl Controller for Diary {
    fn name(&self) -> ControllerName {
        ControllerName::ClusterSet
    }

    fn kinds(&self) -> &'static [Kind] {
        &[]
    }

    fn needs(&self) -> &'static [Need] {
        &[]
    }

    fn observe(&mut self, _: &Change, _: &World, _: &mut Due) {}

    fn go_on(&mut self, _: &mut Due) -> bool {
        self.note("goes on".to_owned());
        true
    }

    fn advance(&mut self, _: Moment, _: &World, _: &mut Due) {
        if self.is_guard {
            self.note("looks".to_owned());
        }
    }

    fn may_stop(&self) -> bool {
        self.is_guard
    }

    fn heed(&mut self, stop: Option<&Freeze>) {
        self.note(stop.map_or("may act".to_owned(), |stop| stop.reason.to_string()));
    }

    fn news(&mut self) -> Option<Note> {
        self.news.take()
    }

    fn ended(&mut self, subject: &ObjectKey, ended: Ended, _: Moment, _: &World, _: &mut Due) {
        self.note(format!("{} has ended: {ended:?}", subject.name));
    }

    fn decide(&mut self, subject: &ObjectKey, _: &World, _: Moment) -> Verdict {
        self.note(format!("decides {}", subject.name));
        if self.only_tells {
            return Verdict { notes: vec![words()], ..Verdict::default() };
        }
        let writes = vec![Write::Unchanged(Target::to_come(Kind::Set, subject.clone()))];
        Verdict { writes, ..Verdict::default() }
    }
}

fn words() -> Note {
    Note {
        regarding: Target::to_come(Kind::Set, ObjectKey::new("", "s")),
        related: None,
        is_warning: false,
        reason: "R",
        action: "A",
        note: "words".to_owned(),
        reporter: "diary",
        namespace: "n".to_owned(),
    }
}

async fn recorded(metrics: &Metrics, so_many: usize) {
    let line = format!("berth_events_total{{result=\"ok\"}} {so_many}");
    while !metrics.text().lines().any(|told| told == line) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_somebody_waits_for_is_told_although_every_place_is_taken() {
    let (mut the_loop, diary) = diary();
    let lines = Arc::clone(&diary);
    let news = Some(words());
    the_loop.seats[0].controller = Box::new(Diary { lines, is_guard: false, news, only_tells: false });
    the_loop.seats[0].jobs = PLACES;
    the_loop.seats[0].due.mark(&ObjectKey::new("", "a"));
    let _under_way = the_loop.writer.events.writing();
    the_loop.decide_ready(now());
    assert!(diary.lock().unwrap().is_empty(), "nobody is decided");
    recorded(&the_loop.writer.metrics, 1).await;
}

#[tokio::test]
async fn who_has_only_to_tell_something_takes_no_place() {
    let (mut the_loop, diary) = diary();
    let lines = Arc::clone(&diary);
    the_loop.seats[0].controller = Box::new(Diary { lines, is_guard: false, news: None, only_tells: true });
    for name in 0..2 * PLACES {
        the_loop.seats[0].due.mark(&ObjectKey::new("", &name.to_string()));
    }
    while the_loop.seats[0].due.is_ready() {
        the_loop.turned = Instant::now();
        assert!(!the_loop.decide_ready(now()));
    }
    assert!(the_loop.jobs.is_empty());
    assert_eq!(diary.lock().unwrap()[..2], ["decides 0", "0 has ended: Done"]);
    recorded(&the_loop.writer.metrics, 2 * PLACES).await;
}

/// A loop with a diary in it, in a world where nothing happens.
fn diary() -> (Loop, Arc<Mutex<Vec<String>>>) {
    let server = tower::service_fn(|_: Request<Body>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(Body::empty())))
    });
    let client = Client::new(server, "default");
    let (told, hearing) = mpsc::channel(TOLD_MAX);
    let (health, metrics) = (Health::default(), Arc::new(Metrics::default()));
    let (events, _) =
        Events::start(client.clone(), Fence::open(), "me".to_owned(), Arc::clone(&metrics), Pace::default());
    let diary = Arc::new(Mutex::new(Vec::new()));
    let mut seat = Seat::new(Box::new(Diary {
        lines: Arc::clone(&diary),
        is_guard: false,
        news: None,
        only_tells: false,
    }));
    seat.is_filled = true;
    let the_loop = Loop {
        world: World::default(),
        seats: vec![seat],
        kinds: Vec::new(),
        writer: Writer {
            client: client.clone(),
            fence: Fence::open(),
            told: told.clone(),
            events,
            metrics: Arc::clone(&metrics),
            reviewer: Arc::default(),
        },
        fence: Fence::open(),
        jobs: JoinSet::new(),
        whose: HashMap::new(),
        hearing,
        inquiries: inquiries().1,
        dialects: watch::channel(Dialect::OURS).1,
        watches: Watches {
            client,
            home: "home".to_owned(),
            told,
            metrics,
            vigil: Arc::new(Vigil::new(&health)),
            stop: CancellationToken::new(),
        },
        waiting: health.check("caches"),
        pulse: health.pulse("loop", PULSE_MAX),
        turned: Instant::now(),
        tempo: Tempo::new(Pace::default(), Instant::now()),
        news: 0,
        asking: 0,
        first: 0,
        is_behind: false,
        is_put_off: false,
        stop: None,
    };
    (the_loop, diary)
}

#[tokio::test]
async fn what_was_put_off_comes_after_what_is_ready_and_its_writes_but_is_not_put_off_for_ever() {
    let (mut the_loop, diary) = diary();
    let mut turn = |subject: Option<&str>| {
        if let Some(subject) = subject {
            the_loop.seats[0].due.mark(&ObjectKey::new("", subject));
        }
        the_loop.turned = Instant::now();
        the_loop.decide(Moment::from_second(1));
        assert!(the_loop.is_behind, "there always is something left");
        std::mem::take(&mut *diary.lock().unwrap())
    };
    assert_eq!(turn(None), ["goes on"]);
    assert_eq!(turn(Some("a")), ["decides a"], "its writes leave first");
    assert_eq!(turn(None), ["goes on"]);
    assert_eq!(turn(Some("b")), ["decides b"]);
    assert_eq!(turn(Some("c")), ["decides c", "goes on"], "it was put off once already");
    assert_eq!(turn(Some("d")), ["decides d"]);
}

#[tokio::test]
async fn nobody_acts_before_who_may_know_why_not_has_looked() {
    let (mut the_loop, diary) = diary();
    the_loop.seats.push(Seat::new(Box::new(Diary {
        lines: Arc::clone(&diary),
        is_guard: true,
        news: None,
        only_tells: false,
    })));
    let mut turn = |sees_all| {
        the_loop.seats[1].is_filled = sees_all;
        the_loop.seats[0].due.mark(&ObjectKey::new("", "a"));
        the_loop.turned = Instant::now();
        the_loop.decide(Moment::from_second(1));
        let mut lines = std::mem::take(&mut *diary.lock().unwrap());
        lines.dedup();
        lines
    };
    let unseen = "clusterset-controller has not seen yet how things stand";
    assert_eq!(turn(false)[..2], [unseen, "decides a"]);
    assert_eq!(turn(true)[..2], ["looks", "may act"]);
}

#[test]
fn a_storm_in_one_controller_leaves_the_others_their_places() {
    let begin = |jobs: usize, others: &[usize]| {
        let beyond = |jobs: usize| jobs.saturating_sub(JOBS_OWN);
        may_begin(jobs, beyond(jobs) + others.iter().copied().map(beyond).sum::<usize>())
    };
    assert!(begin(JOBS_OWN + JOBS_SHARED - 1, &[]), "alone it has all");
    assert!(!begin(JOBS_OWN + JOBS_SHARED, &[]));
    assert!(begin(0, &[JOBS_OWN + JOBS_SHARED]) && begin(JOBS_OWN - 1, &[JOBS_OWN + JOBS_SHARED]));
    assert!(!begin(JOBS_OWN, &[JOBS_OWN + JOBS_SHARED]));
    assert!(
        begin(JOBS_OWN + JOBS_SHARED - 1, &[JOBS_OWN]),
        "what others have of their own takes nothing away"
    );
}
