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
use tokio::time::timeout;

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
    let target = format!("{MAPS}?watch=true&resourceVersion=1");
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
    assert_eq!(place.ask(Method::GET, MAPS, None).await.body["items"].as_array().unwrap().len(), 200);
    place.end().await;
}
