//! Clients that are slow: to shake hands, to say what they want, to take what they asked for.
//!
//! That a connection was cut is seen from its place: each of these hubs has few connections, and another client gets
//! in only when the slow one is out.

use std::time::Duration;

use berth_hub::{HubOptions, Limits};
use berth_hub_store::{HistoryOptions, LedgerOptions};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::place::{MAPS, PATIENCE, Place, SHORT, answer, everything, head, map};

const FOREVER: Duration = Duration::from_hours(1);

/// No time limit but the ones a test sets.
fn patient() -> Limits {
    let limits = Limits { handshake: FOREVER, header_read: FOREVER, body_read: FOREVER, ..Limits::default() };
    Limits { write_stall: FOREVER, connections: 1, ..limits }
}

/// Another client gets in, because the slow one was cut.
async fn another_gets_in(place: &Place) {
    let got_in = timeout(PATIENCE, place.get("/version")).await;
    assert_eq!(got_in.expect("the slow client is cut").code, 200);
}

#[tokio::test]
async fn a_client_that_does_not_shake_hands_is_cut() {
    let place = Place::with(Limits { handshake: SHORT, ..patient() }).await;
    let mut silent = place.tcp().await;
    another_gets_in(&place).await;
    assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
    place.end().await;
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_headers_is_cut() {
    for said in ["", "GET", "GET /version HTTP/1.1\r\nhost: hub\r\n"] {
        let place = Place::with(Limits { header_read: SHORT, ..patient() }).await;
        let slow = place.said(said).await;
        another_gets_in(&place).await;
        drop(slow);
        place.end().await;
    }
}

#[tokio::test]
async fn a_client_that_drips_its_headers_is_cut_all_the_same() {
    let place = Place::with(Limits { header_read: SHORT, ..patient() }).await;
    let mut slow = place.said("GET /version HTTP/1.1\r\n").await;
    let drip = tokio::spawn(async move {
        while slow.write_all(b"x-drip: 1\r\n").await.is_ok() && slow.flush().await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    });
    another_gets_in(&place).await;
    timeout(PATIENCE, drip).await.expect("the connection is gone").unwrap();
    place.end().await;
}

/// The answer of a request whose connection stays open.
async fn ask_again(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(head("GET", "/livez", "").as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\nok") {
        let byte = timeout(PATIENCE, stream.read_u8()).await.expect("it answers");
        said.push(byte.unwrap_or_else(|error| panic!("{error} after {}", String::from_utf8_lossy(&said))));
    }
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn a_client_that_thinks_between_two_requests_is_not_slow_to_send_headers() {
    let place = Place::with(Limits { header_read: SHORT, idle: FOREVER, ..patient() }).await;
    let mut stream = place.tls("http/1.1").await;
    for _ in 0..3 {
        assert!(ask_again(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
        tokio::time::sleep(2 * SHORT).await;
    }
    // But whoever has begun a head must finish it.
    stream.write_all(b"GET /livez HT").await.unwrap();
    stream.flush().await.unwrap();
    another_gets_in(&place).await;
    place.end().await;
}

#[tokio::test]
async fn a_connection_that_nobody_asks_anything_on_is_ended() {
    let place = Place::with(Limits { idle: SHORT, ..patient() }).await;
    let mut stream = place.tls("http/1.1").await;
    ask_again(&mut stream).await;
    assert!(everything(&mut stream).await.is_empty());
    another_gets_in(&place).await;
    let mut sender = place.h2().await;
    let answer = sender.send_request(place.h2_get("/livez")).await.unwrap();
    answer.into_body().collect().await.unwrap();
    another_gets_in(&place).await;
    assert!(sender.ready().await.is_err(), "the connection is gone");
    place.end().await;
}

#[tokio::test]
async fn a_connection_with_a_quiet_watch_is_not_idle() {
    let place = Place::with(Limits { idle: SHORT, header_read: SHORT, connections: 2, ..patient() }).await;
    let mut sender = place.h2().await;
    let mut over_two =
        sender.send_request(place.h2_get(&format!("{MAPS}?watch=true"))).await.unwrap().into_body();
    let mut over_one = place.said(&head("GET", &format!("{MAPS}?watch=true"), "")).await;
    tokio::time::sleep(3 * SHORT).await;
    assert_eq!(place.create(&map("news", 1)).await.code, 201);
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("news") {
        let frame = timeout(PATIENCE, over_two.frame()).await.expect("news arrive").unwrap().unwrap();
        heard.extend_from_slice(frame.data_ref().unwrap());
    }
    heard.clear();
    while !String::from_utf8_lossy(&heard).contains("news") {
        heard.push(timeout(PATIENCE, over_one.read_u8()).await.expect("news arrive").unwrap());
    }
    drop((over_one, over_two, sender));
    place.end().await;
}

#[tokio::test]
async fn a_client_of_http2_that_does_not_begin_is_cut() {
    for said in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let place = Place::with(Limits { header_read: SHORT, ..patient() }).await;
        let mut slow = place.tls("h2").await;
        slow.write_all(said).await.unwrap();
        slow.flush().await.unwrap();
        another_gets_in(&place).await;
        drop(slow);
        place.end().await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_body_is_told_so() {
    let place = Place::with(Limits { body_read: SHORT, ..patient() }).await;
    let headers = "content-type: application/json\r\ncontent-length: 1000\r\nconnection: close\r\n";
    let mut slow = place.said(&(head("POST", MAPS, headers) + "{\"apiVersion\"")).await;
    let told = answer(&mut slow).await;
    told.is_status(504, "Timeout");
    another_gets_in(&place).await;
    place.end().await;
}

/// Objects that do not fit into what the system buffers for one connection.
async fn fill(place: &Place, count: usize) {
    for number in 0..count {
        assert_eq!(place.create(&map(&format!("large-{number}"), 1 << 20)).await.code, 201);
    }
}

#[tokio::test]
async fn a_client_that_does_not_take_its_answer_is_cut() {
    let place = Place::with(Limits { write_stall: SHORT, ..patient() }).await;
    fill(&place, 24).await;
    let mut slow = place.said(&head("GET", MAPS, "")).await;
    another_gets_in(&place).await;
    let got = everything(&mut slow).await.len();
    assert!(got < 24 << 20, "the answer was not sent whole: {got}");
    place.end().await;
}

#[tokio::test]
async fn a_client_of_http2_that_grants_its_answer_no_room_is_cut() {
    let place = Place::with(Limits { write_stall: SHORT, ..patient() }).await;
    fill(&place, 8).await;
    // The connection itself goes on: this client answers every ping.
    let mut sender = place.h2().await;
    let answer = sender.send_request(place.h2_get(MAPS)).await.unwrap();
    assert_eq!(answer.status(), 200);
    another_gets_in(&place).await;
    assert!(answer.into_body().collect().await.is_err(), "the answer was not sent whole");
    place.end().await;
}

#[tokio::test]
async fn a_watcher_that_takes_nothing_is_cut() {
    let place = Place::with(Limits { write_stall: SHORT, ..patient() }).await;
    let slow = place.said(&head("GET", &format!("{MAPS}?watch=true"), "")).await;
    fill(&place, 24).await;
    another_gets_in(&place).await;
    drop(slow);
    place.end().await;
}

#[tokio::test]
async fn a_watcher_that_falls_behind_is_told_so_and_no_writer_waits_for_it() {
    let history = HistoryOptions { window_events: 20, ..HistoryOptions::default() };
    let ledger = LedgerOptions { history, ..LedgerOptions::default() };
    let place = Place::of(HubOptions { ledger, ..HubOptions::default() }).await;
    let target =
        format!("{MAPS}?watch=true&resourceVersion=1&fieldSelector=metadata.name!%3Dkube-root-ca.crt");
    let request = Request::get(target).body(kube::client::Body::empty()).unwrap();
    let mut watch = place.hub.client().send(request).await.unwrap().into_body();
    for number in 0..200 {
        let made = timeout(PATIENCE, place.create(&map(&format!("m{number}"), 10))).await;
        assert_eq!(made.expect("a writer never waits for a watcher").code, 201);
    }
    let mut lines = Vec::new();
    while let Some(frame) = timeout(PATIENCE, watch.frame()).await.expect("the watch goes on or ends") {
        lines.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    let lines = String::from_utf8(lines).unwrap();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, before) = events.split_last().unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&"ERROR".into(), &410.into()), "{last}");
    assert_eq!(last["object"]["reason"], "Expired", "{last}");
    assert!(before.len() < 200 && before.iter().all(|event| event["type"] == "ADDED"));
    let target = format!("{MAPS}?fieldSelector=metadata.name!%3Dkube-root-ca.crt");
    assert_eq!(place.ask(Method::GET, &target, None).await.body["items"].as_array().unwrap().len(), 200);
    place.end().await;
}
