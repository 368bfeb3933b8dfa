//! What is sent: too large, too deep, too long, or not what it says it is.

use berth_hub::Limits;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::place::{MAPS, Place, head, map};
use crate::place::{answer, everything};

const JSON: &str = "application/json";

#[tokio::test]
async fn a_body_larger_than_allowed_is_refused_with_413() {
    let place = Place::with(Limits { body: 2_000, ..Limits::default() }).await;
    assert_eq!(place.create(&map("fits", 1_000)).await.code, 201);
    let refused = place.create(&map("large", 2_000)).await;
    refused.is_status(413, "RequestEntityTooLarge");
    refused.says("limit is 2000");
    // The same over a socket, where the length is announced and most of the body never read.
    let body = map("large", 100_000).to_string();
    let headers =
        format!("content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    let mut stream = place.said(&(head("POST", MAPS, &headers) + &body)).await;
    answer(&mut stream).await.is_status(413, "RequestEntityTooLarge");
    place.end().await;
}

/// Whoever still sends when it is refused gets to know why: over either version, each time, and its connection goes on.
#[tokio::test]
async fn a_client_that_is_still_sending_sees_why_it_was_refused() {
    let place = Place::with(Limits { body: 2_000, discard: 8 << 20, ..Limits::default() }).await;
    let body = map("large", 6 << 20).to_string();
    let mut sender = place.h2().await;
    for _ in 0..5 {
        let request = place.h2_post(MAPS, body.clone());
        let answer = sender.send_request(request).await.expect("an answer, not a reset stream");
        assert_eq!(answer.status(), 413);
        let told = answer.into_body().collect().await.expect("the whole answer").to_bytes();
        let status: Value = serde_json::from_slice(&told).unwrap();
        assert_eq!(status["reason"], "RequestEntityTooLarge", "{status}");
        assert_eq!(status["message"], "Request entity too large: limit is 2000");
    }
    assert_eq!(sender.send_request(place.h2_get("/version")).await.unwrap().status(), 200);
    let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let next = head("GET", "/version", "connection: close\r\n");
    let mut stream = place.said(&(head("POST", MAPS, &headers) + &body + &next)).await;
    let said = String::from_utf8(everything(&mut stream).await).unwrap();
    assert!(said.starts_with("HTTP/1.1 413") && said.contains("HTTP/1.1 200 OK"), "{said}");
    place.end().await;
}

/// Past the bound the answer was sent all the same: it is complete before the stream is reset, and not as an error.
#[tokio::test]
async fn a_client_of_http2_that_never_stops_sending_is_cut_after_its_answer() {
    let place = Place::with(Limits { body: 2_000, discard: 100_000, ..Limits::default() }).await;
    let mut sender = place.h2().await;
    for _ in 0..5 {
        let request = place.h2_post(MAPS, map("huge", 24 << 20).to_string());
        let answer = sender.send_request(request).await.expect("an answer, not a reset stream");
        assert_eq!(answer.status(), 413);
    }
    assert_eq!(sender.send_request(place.h2_get("/version")).await.unwrap().status(), 200);
    place.end().await;
}

#[tokio::test]
async fn an_object_larger_than_allowed_is_refused_however_it_grows() {
    let place = Place::with(Limits { object: 4_000, ..Limits::default() }).await;
    assert_eq!(place.create(&map("a", 3_000)).await.code, 201);
    place.create(&map("b", 4_000)).await.is_status(413, "RequestEntityTooLarge");
    let patch = json!({"data": {"more": "y".repeat(2_000)}}).to_string().into_bytes();
    let target = format!("{MAPS}/a");
    let grown = place.ask(Method::PATCH, &target, Some(("application/merge-patch+json", patch))).await;
    grown.is_status(413, "RequestEntityTooLarge");
    let kept = place.ask(Method::GET, &target, None).await;
    assert_eq!(kept.body["data"].as_object().unwrap().len(), 1, "the object is as it was");
    place.end().await;
}

#[tokio::test]
async fn a_head_larger_than_allowed_is_refused_with_431_and_no_other_request_notices() {
    let place = Place::with(Limits { headers: 8_192, ..Limits::default() }).await;
    // A little more than allowed is read to the end, and told in a Status.
    let long = "x".repeat(10_000);
    let headers = format!("x-long: {long}\r\nconnection: close\r\n");
    let refused = answer(&mut place.said(&head("GET", "/version", &headers)).await).await;
    refused.is_status(431, "BadRequest");
    refused.says("larger than 8192 bytes");
    let path = format!("/api/{long}");
    let refused = answer(&mut place.said(&head("GET", &path, "connection: close\r\n")).await).await;
    refused.is_status(431, "BadRequest");
    let mut sender = place.h2().await;
    let mut request = place.h2_get("/version");
    request.headers_mut().insert("x-long", long.parse().unwrap());
    let refused = sender.send_request(request).await.expect("an answer, not a reset stream");
    assert_eq!(refused.status(), 431);
    let told = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&told).contains("larger than 8192 bytes"), "{told:?}");
    // Much more is not read: 431 without words over HTTP/1.1, and HTTP/2 refuses the one stream.
    let long = "x".repeat(40_000);
    let headers = format!("x-long: {long}\r\nconnection: close\r\n");
    assert_eq!(answer(&mut place.said(&head("GET", "/version", &headers)).await).await.code, 431);
    let mut request = place.h2_get("/version");
    request.headers_mut().insert("x-long", long.parse().unwrap());
    match sender.send_request(request).await {
        Ok(refused) => assert_eq!(refused.status(), 431),
        Err(error) => assert!(!error.is_timeout(), "{error}"),
    }
    assert_eq!(sender.send_request(place.h2_get("/version")).await.unwrap().status(), 200);
    place.end().await;
}

#[tokio::test]
async fn more_than_a_hundred_headers_are_refused_over_http1() {
    let place = Place::with(Limits::default()).await;
    let many = |count: usize| {
        let lines = (0..count).map(|number| format!("x-{number}: 1\r\n"));
        head("GET", "/version", &(lines.collect::<String>() + "connection: close\r\n"))
    };
    // `host` and `connection` count.
    assert_eq!(answer(&mut place.said(&many(98)).await).await.code, 200);
    assert_eq!(answer(&mut place.said(&many(99)).await).await.code, 431);
    let mut request = place.h2_get("/version");
    for number in 0..300 {
        let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
        request.headers_mut().insert(name, "1".parse().unwrap());
    }
    assert_eq!(place.h2().await.send_request(request).await.unwrap().status(), 200);
    place.end().await;
}

#[tokio::test]
async fn selectors_as_long_as_a_header_block_are_read_and_longer_ones_are_not() {
    let place = Place::with(Limits::default()).await;
    let values: Vec<String> = (0..6_000).map(|number| format!("v{number}")).collect();
    let within = format!("{MAPS}?labelSelector=a+in+({})", values.join(","));
    assert!(within.len() < Limits::default().headers);
    assert_eq!(place.get(&within).await.code, 200);
    let beyond = format!("{MAPS}?labelSelector={}", "a,".repeat(40_000));
    let code = answer(&mut place.said(&head("GET", &beyond, "connection: close\r\n")).await).await.code;
    assert!([414, 431].contains(&code), "{code}");
    for wrong in
        ["labelSelector=a+in+(", "labelSelector=%21%21", "fieldSelector=a%3D%3D%3Db", "fieldSelector=x"]
    {
        let refused = place.get(&format!("{MAPS}?{wrong}")).await;
        refused.is_status(400, "BadRequest");
    }
    place.end().await;
}

#[tokio::test]
async fn a_body_nested_too_deeply_is_refused_in_json_and_yaml() {
    let place = Place::with(Limits::default()).await;
    for depth in [200, 100_000, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            if nested.len() > Limits::default().body {
                continue;
            }
            let object = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{nested}}}"#
            );
            for kind in [JSON, "application/yaml"] {
                let refused = place.ask(Method::POST, MAPS, Some((kind, object.clone().into_bytes()))).await;
                refused.is_status(400, "BadRequest");
            }
        }
    }
    assert_eq!(place.create(&map("a", 1)).await.code, 201);
    place.end().await;
}

#[tokio::test]
async fn yaml_aliases_that_unfold_without_end_are_refused() {
    let place = Place::with(Limits::default()).await;
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let below = level - 1;
        let aliases = vec![format!("*a{below}"); 9].join(",");
        bomb.extend(["a", &level.to_string(), ": &a", &level.to_string(), " [", &aliases, "]\n"]);
    }
    let object =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bomb}}\n{bomb}data: {{x: *a11}}\n");
    place
        .ask(Method::POST, MAPS, Some(("application/yaml", object.into_bytes())))
        .await
        .is_status(400, "BadRequest");
    place.end().await;
}

#[tokio::test]
async fn a_json_patch_has_a_bounded_number_of_operations_and_bounded_growth() {
    let place = Place::with(Limits::default()).await;
    assert_eq!(place.create(&map("a", 10)).await.code, 201);
    let target = format!("{MAPS}/a");
    let patch = async |operations: &Value| {
        let body = Some(("application/json-patch+json", operations.to_string().into_bytes()));
        place.ask(Method::PATCH, &target, body).await
    };
    let one = json!({"op": "test", "path": "/data/fill", "value": "xxxxxxxxxx"});
    assert_eq!(patch(&vec![one.clone(); 10_000].into()).await.code, 200);
    let refused = patch(&vec![one; 10_001].into()).await;
    refused.is_status(413, "RequestEntityTooLarge");
    refused.says("10000");
    // Each copy doubles what is there: sixty of them would need more memory than there is.
    let double: Vec<Value> = (0..60)
        .map(|number| json!({"op": "copy", "from": "/data", "path": format!("/data/d{number}")}))
        .collect();
    let refused = patch(&double.into()).await;
    assert!((400..500).contains(&refused.code), "{refused:?}");
    place.end().await;
}

#[tokio::test]
async fn a_continue_token_that_is_not_ours_is_refused() {
    let place = Place::with(Limits::default()).await;
    let long = "a".repeat(10_000);
    for token in ["x", "%00", "bm90IGEgdG9rZW4", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "%F0%9F%A6%80", &long] {
        let refused = place.get(&format!("{MAPS}?limit=1&continue={token}")).await;
        refused.is_status(400, "BadRequest");
    }
    place.end().await;
}

#[tokio::test]
async fn what_is_not_http_or_not_tls_costs_its_own_connection_only() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let place = Place::with(Limits::default()).await;
    let mut stream = place.said("\u{1}\u{2} neither one thing\r\nnor the other\r\n\r\n").await;
    let said = everything(&mut stream).await;
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&said));
    let mut plain = place.tcp().await;
    plain.write_all(b"GET / HTTP/1.1\r\nhost: hub\r\n\r\n").await.unwrap();
    let mut said = Vec::new();
    let _ = tokio::time::timeout(crate::place::PATIENCE, plain.read_to_end(&mut said))
        .await
        .expect("it is closed");
    assert_eq!(place.get("/version").await.code, 200);
    place.end().await;
}
