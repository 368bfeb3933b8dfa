//! Callers that are no API server.

use std::{io, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth_bed::{Bed, Companion, or_skip};
use berth_tests::{caller::Caller, waiting::in_time};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

use crate::ground::{Ground, alone, webhook};

/// More than any AdmissionReview, and less than a test should send.
const HUGE_BYTES: usize = 9 * 1024 * 1024;

/// Whom the Secret says to trust.
pub(crate) fn trust(secret: &Value) -> Arc<ClientConfig> {
    trusting(&authorities(&secret["data"]["ca.crt"]))
}

/// The authorities of a bundle, as Secrets and configurations hold it.
pub(crate) fn authorities(bundle: &Value) -> Vec<CertificateDer<'static>> {
    let pem = STANDARD.decode(bundle.as_str().unwrap()).unwrap();
    CertificateDer::pem_slice_iter(&pem).map(Result::unwrap).collect()
}

/// Somebody who trusts these and nobody else.
pub(crate) fn trusting(authorities: &[CertificateDer<'static>]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).unwrap();
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Where a webhook listens, by the line it printed.
fn address(webhook: &Companion) -> String {
    let line = webhook.announcement();
    let (_, rest) = line.split_once("https://").unwrap_or_else(|| panic!("no address in {line:?}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

async fn open(webhook: &Companion, trusted: &Arc<ClientConfig>) -> TlsStream<TcpStream> {
    try_open(webhook, trusted).await.unwrap()
}

async fn try_open(webhook: &Companion, trusted: &Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address(webhook)).await.unwrap();
    let connector = TlsConnector::from(Arc::clone(trusted));
    // Both replicas are called by the name of the Service.
    let name = ServerName::try_from("berth-webhook.default.svc").unwrap();
    in_time("a handshake", connector.connect(name, stream)).await
}

/// The certificate a webhook shows, as far as it is trusted.
pub(crate) async fn certificate(webhook: &Companion, trusted: &Arc<ClientConfig>) -> Vec<u8> {
    handshake(webhook, trusted).await.unwrap()
}

/// The certificate a webhook shows, or why it is not trusted.
pub(crate) async fn handshake(webhook: &Companion, trusted: &Arc<ClientConfig>) -> io::Result<Vec<u8>> {
    let stream = try_open(webhook, trusted).await?;
    Ok(stream.get_ref().1.peer_certificates().unwrap()[0].to_vec())
}

/// Sends bytes and reads until the other side ends.
async fn say(webhook: &Companion, trusted: &Arc<ClientConfig>, head: &str, body: &[u8]) -> (u16, String) {
    let mut stream = open(webhook, trusted).await;
    let head = format!("{head}\r\nhost: hook\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let told = async {
        // A server that has refused already need not take the rest.
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body).await;
        let _ = stream.flush().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let answer = in_time(head.lines().next().unwrap(), told).await;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_else(|| panic!("no answer to {head}: {answer:?}")), answer)
}

async fn hostile(bed: &mut Bed) {
    let Some(webhook) = or_skip(webhook(bed, "webhook", &[]).await) else { return };
    let secret = Caller::admin(bed).get("/api/v1/namespaces/default/secrets/berth-webhook-tls").await.ok();
    let trusted = trust(&secret);
    let json_post = "POST /validate HTTP/1.1\r\ncontent-type: application/json";
    let review = |api_version: &str| {
        json!({"apiVersion": api_version, "kind": "AdmissionReview", "request": {
            "uid": "u1", "resource": {"group": "", "version": "v1", "resource": "pods"}, "operation": "CREATE",
            "userInfo": {}, "object": {}, "oldObject": null,
        }})
        .to_string()
    };
    let say = async |head: &str, body: &[u8]| say(&webhook, &trusted, head, body).await;

    let (code, answer) = say(json_post, review("admission.k8s.io/v1").as_bytes()).await;
    assert_eq!(code, 200, "{answer}");
    assert!(answer.contains(r#""allowed":true"#) && answer.contains(r#""uid":"u1""#), "{answer}");
    assert_eq!(say(json_post, b"{").await.0, 400);
    assert_eq!(say(json_post, b"\xff\x00").await.0, 400);
    assert_eq!(say(json_post, b"").await.0, 400);
    assert_eq!(say(json_post, review("admission.k8s.io/v1beta1").as_bytes()).await.0, 400);
    assert_eq!(say(json_post, "[".repeat(500_000).as_bytes()).await.0, 400);
    assert_eq!(say("POST /validate HTTP/1.1\r\ncontent-type: text/plain", b"{}").await.0, 415);
    assert_eq!(say(json_post, &vec![b' '; HUGE_BYTES]).await.0, 413);
    assert_eq!(say("GET /validate HTTP/1.1", b"").await.0, 405);
    assert_eq!(say("POST /elsewhere HTTP/1.1\r\ncontent-type: application/json", b"{}").await.0, 404);
    let long =
        format!("POST /validate HTTP/1.1\r\ncontent-type: application/json\r\nlong: {}", "x".repeat(20_000));
    assert_eq!(say(&long, b"{}").await.0, 431);

    // Without TLS nothing is said at all.
    let mut plain = TcpStream::connect(address(&webhook)).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: hook\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = in_time("a plain connection ending", plain.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");

    // Who never finishes a head or a body loses the connection, and nobody else does.
    let mut slow = open(&webhook, &trusted).await;
    slow.write_all(b"POST /validate HTTP/1.1\r\nhost: hook\r\n").await.unwrap();
    let mut slower = open(&webhook, &trusted).await;
    slower
        .write_all(format!("{json_post}\r\nhost: hook\r\ncontent-length: 100\r\n\r\n{{").as_bytes())
        .await
        .unwrap();
    assert_eq!(say(json_post, review("admission.k8s.io/v1").as_bytes()).await.0, 200);
    let mut answer = Vec::new();
    let _ = in_time("an unfinished head ending", slow.read_to_end(&mut answer)).await;
    let mut answer = vec![0; 12];
    in_time("an unfinished body ending", slower.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[test]
fn hostile_callers_are_turned_away_and_hold_up_nobody() {
    alone(Ground::Hub, hostile);
}
