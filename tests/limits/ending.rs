//! The end of a hub: watches end, requests under way finish, and whoever does not is cut.

use std::time::Duration;

use berth_hub::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::place::{MAPS, PATIENCE, Place, SHORT, answer, everything, head, map};

fn post(body: &str) -> String {
    let headers =
        format!("content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    head("POST", MAPS, &headers)
}

/// Waits until the hub works on a request: it has asked for the rest of the body.
async fn is_under_way(place: &Place, stream: &mut tokio_rustls::client::TlsStream<TcpStream>) {
    let mut told = [0; 25];
    timeout(PATIENCE, stream.read_exact(&mut told)).await.expect("the hub asks for the body").unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert!(!place.serving.is_finished());
}

#[tokio::test]
async fn watches_end_and_a_request_under_way_is_answered() {
    let place = Place::with(Limits { drain: Duration::from_mins(5), ..Limits::default() }).await;
    let mut watch = place.said(&head("GET", &format!("{MAPS}?watch=true"), "")).await;
    let mut line = [0; 17];
    watch.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 200 OK\r\n");
    let body = map("last", 10).to_string();
    let mut slow = place.said(&post(&body).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")).await;
    is_under_way(&place, &mut slow).await;

    place.hub.begin_close();
    let rest = String::from_utf8(everything(&mut watch).await).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "the watch ends as a body ends: {rest:?}");
    assert!(!place.serving.is_finished(), "a request is under way");
    slow.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut slow).await.code, 201);
    assert!(TcpStream::connect(place.address).await.is_err(), "nobody new gets in");
    place.end().await;
}

#[tokio::test]
async fn a_request_that_does_not_end_in_time_is_cut() {
    let place = Place::with(Limits { drain: SHORT, ..Limits::default() }).await;
    let body = map("never", 10).to_string();
    let mut slow = place.said(&post(&body).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")).await;
    is_under_way(&place, &mut slow).await;
    let hub = place.hub.clone();
    place.end().await;
    assert!(everything(&mut slow).await.is_empty());
    drop(hub);
}

#[tokio::test]
async fn closing_twice_is_closing_once() {
    let place = Place::with(Limits::default()).await;
    place.hub.close().await;
    place.hub.close().await;
    let refused = place.create(&map("late", 1)).await;
    refused.is_status(503, "ServiceUnavailable");
    timeout(PATIENCE, place.serving).await.expect("serving ends with the hub").unwrap();
}

#[tokio::test]
async fn a_watch_is_ended_after_its_time_and_marked_meanwhile() {
    let limits = Limits { watch: SHORT, bookmark: SHORT / 10, ..Limits::default() };
    let place = Place::with(limits).await;
    let target = format!("{MAPS}?watch=true&resourceVersion=1&allowWatchBookmarks=true");
    let mut watch = place.said(&head("GET", &target, "connection: close\r\n")).await;
    let said = String::from_utf8(everything(&mut watch).await).unwrap();
    assert!(said.ends_with("0\r\n\r\n"), "the watch ends as a body ends: {said:?}");
    assert!(said.matches(r#""type":"BOOKMARK""#).count() > 1, "{said:?}");
    place.end().await;
}
