//! Too many at once: connections wait, watches and requests are told to come back.

use berth_hub::Limits;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::place::{MAPS, PATIENCE, Place, SHORT, answer, head, map};

fn watch() -> String {
    head("GET", &format!("{MAPS}?watch=true"), "connection: close\r\n")
}

#[tokio::test]
async fn one_connection_too_many_waits_until_another_ends() {
    let place = Place::with(Limits { connections: 2, ..Limits::default() }).await;
    let (first, second) = (place.tls("http/1.1").await, place.tls("http/1.1").await);
    let mut third = Box::pin(place.get("/version"));
    assert!(timeout(SHORT, &mut third).await.is_err(), "there are two connections already");
    drop(first);
    assert_eq!(timeout(PATIENCE, third).await.unwrap().code, 200);
    drop(second);
    place.end().await;
}

#[tokio::test]
async fn one_watch_too_many_is_told_to_come_back_and_reads_go_on() {
    let place = Place::with(Limits { watches: 2, ..Limits::default() }).await;
    let (mut first, second) = (place.said(&watch()).await, place.said(&watch()).await);
    let mut refused = answer_of_watch(&place).await;
    // The first two may be still on their way.
    while refused.code == 200 {
        refused = answer_of_watch(&place).await;
    }
    refused.is_status(429, "TooManyRequests");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.body["details"]["retryAfterSeconds"], 1);
    assert_eq!(place.get(MAPS).await.code, 200);
    first.shutdown().await.unwrap();
    drop(first);
    while answer_of_watch(&place).await.code != 200 {}
    drop(second);
    place.end().await;
}

/// A watch that ends by itself at once where there is a place for it.
async fn answer_of_watch(place: &Place) -> crate::place::Answer {
    // From a revision that is compacted or never was, a watch is one line; from the future it waits for its time.
    let target = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion=1");
    let mut stream = place.said(&head("GET", &target, "connection: close\r\n")).await;
    answer(&mut stream).await
}

#[tokio::test]
async fn one_request_too_many_is_told_to_come_back_and_health_is_answered() {
    let place = Place::with(Limits { requests: 1, ..Limits::default() }).await;
    let body = map("slow", 100).to_string();
    let headers =
        format!("content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    let mut slow = place.said(&head("POST", MAPS, &headers)).await;
    let mut refused = place.get(MAPS).await;
    while refused.code == 200 {
        refused = place.get(MAPS).await;
    }
    refused.is_status(429, "TooManyRequests");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(place.get("/readyz").await.code, 200);
    slow.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut slow).await.code, 201);
    assert_eq!(place.get(MAPS).await.code, 200);
    place.end().await;
}

#[tokio::test]
async fn one_stream_too_many_waits_until_another_ends() {
    let place = Place::with(Limits { streams_per_connection: 2, ..Limits::default() }).await;
    let mut sender = place.h2().await;
    // The server's settings are known once it has answered something.
    sender.send_request(place.h2_get("/version")).await.unwrap();
    let target = format!("{MAPS}?watch=true");
    let first = sender.send_request(place.h2_get(&target)).await.unwrap();
    let second = sender.send_request(place.h2_get(&target)).await.unwrap();
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    let mut third = Box::pin(sender.send_request(place.h2_get("/version")));
    assert!(timeout(SHORT, &mut third).await.is_err(), "there are two streams already");
    drop(first);
    assert_eq!(timeout(PATIENCE, third).await.unwrap().unwrap().status(), 200);
    place.end().await;
}
