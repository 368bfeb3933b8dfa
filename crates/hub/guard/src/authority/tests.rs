use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

fn days_later(days: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + days * 86_400).unwrap()
}

#[derive(Debug)]
struct Fixed(Timestamp);
impl TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(tls::unix_time(self.0))
    }
}

fn client_config(ca: &CertificateDer<'static>, identity: Option<&Identity>) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_details(crypto_provider(), Arc::new(Fixed(now())))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(tls::roots(ca).unwrap());
    Arc::new(match identity {
        Some(identity) => {
            let key = PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![identity.certificate.clone()], key).unwrap()
        }
        None => builder.with_no_client_auth(),
    })
}

/// Shakes hands over memory and tells whom the server sees.
async fn handshake(serving: &Serving, client: Arc<ClientConfig>, name: &str) -> std::io::Result<Peer> {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let acceptor = tokio_rustls::TlsAcceptor::from(serving.config());
    let server = async {
        let mut stream = acceptor.accept(far).await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        let certificates = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec);
        Ok::<_, std::io::Error>(serving.peers().peer(certificates.as_deref(), now()))
    };
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let client = async {
        let mut stream = tokio_rustls::TlsConnector::from(client).connect(name, near).await?;
        stream.write_all(&[1]).await?;
        stream.flush().await?;
        Ok::<_, std::io::Error>(stream)
    };
    // The client's stream must live until the server has read from it.
    let (peer, stream) = tokio::join!(server, client);
    stream?;
    peer
}

#[tokio::test]
async fn a_client_certificate_names_its_user_and_all_its_groups() {
    let authority = Authority::in_memory(now()).unwrap();
    let serving = Serving::new(&authority, &["hub.example".to_owned()], now()).unwrap();
    let groups = ["system:masters".to_owned(), "dev".to_owned(), "ünïcode".to_owned()];
    let identity = authority.client("alice", &groups, now()).unwrap();
    for name in ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "hub.example"] {
        let peer =
            handshake(&serving, client_config(authority.ca_der(), Some(&identity)), name).await.unwrap();
        let user = peer.user(now()).unwrap().unwrap();
        assert_eq!(user.name, "alice");
        assert_eq!(user.groups, ["system:masters", "dev", "ünïcode", "system:authenticated"]);
        assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_is_nobody_in_particular() {
    let authority = Authority::in_memory(now()).unwrap();
    let serving = Serving::new(&authority, &[], now()).unwrap();
    let peer = handshake(&serving, client_config(authority.ca_der(), None), "localhost").await.unwrap();
    assert_eq!(peer, Peer::None);
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_but_the_connection_stands() {
    let (own, other) = (Authority::in_memory(now()).unwrap(), Authority::in_memory(now()).unwrap());
    let serving = Serving::new(&own, &[], now()).unwrap();
    let identity = other.client("mallory", &["system:masters".to_owned()], now()).unwrap();
    let peer = handshake(&serving, client_config(own.ca_der(), Some(&identity)), "localhost").await.unwrap();
    assert_eq!(peer, Peer::Refused);
    assert!(peer.user(now()).is_err());
}

#[tokio::test]
async fn a_serving_certificate_does_not_make_a_client() {
    let authority = Authority::in_memory(now()).unwrap();
    let serving = Serving::new(&authority, &[], now()).unwrap();
    let identity = authority.serving(&[], now()).unwrap();
    let peer =
        handshake(&serving, client_config(authority.ca_der(), Some(&identity)), "localhost").await.unwrap();
    assert_eq!(peer, Peer::Refused);
}

#[tokio::test]
async fn a_client_that_trusts_another_authority_does_not_connect() {
    let (own, other) = (Authority::in_memory(now()).unwrap(), Authority::in_memory(now()).unwrap());
    let serving = Serving::new(&own, &[], now()).unwrap();
    assert!(handshake(&serving, client_config(other.ca_der(), None), "localhost").await.is_err());
    assert!(handshake(&serving, client_config(own.ca_der(), None), "elsewhere").await.is_err());
}

#[test]
fn an_expired_client_certificate_is_refused() {
    let authority = Authority::in_memory(now()).unwrap();
    let verifier = PeerVerifier::new(authority.ca_der()).unwrap();
    let identity = authority.client("al", &[], now()).unwrap();
    let chain = [identity.certificate.clone()];
    assert!(matches!(verifier.peer(Some(&chain), days_later(364)), Peer::Known { .. }));
    assert_eq!(verifier.peer(Some(&chain), days_later(366)), Peer::Refused);
    assert_eq!(verifier.peer(Some(&chain), days_later(-1)), Peer::Refused);
}

#[test]
fn what_was_made_at_the_first_start_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pki");
    let first = Authority::open(&path, now()).unwrap();
    let serving = first.serving(&[], now()).unwrap();
    let second = Authority::open(&path, days_later(10)).unwrap();
    assert_eq!(first.ca_pem(), second.ca_pem());
    assert_eq!(first.signing_key().id(), second.signing_key().id());
    assert_eq!(second.serving(&[], days_later(10)).unwrap().certificate, serving.certificate);
    // Clients of before still belong to the authority of after.
    let identity = second.client("al", &[], days_later(10)).unwrap();
    let verifier = PeerVerifier::new(first.ca_der()).unwrap();
    assert!(matches!(verifier.peer(Some(&[identity.certificate]), days_later(10)), Peer::Known { .. }));
    #[cfg(unix)]
    for entry in std::fs::read_dir(&path).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[test]
fn the_serving_certificate_is_replaced_for_new_names_and_before_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::open(dir.path(), now()).unwrap();
    let first = authority.serving(&[], now()).unwrap();
    let named = authority.serving(&["hub.example".to_owned(), "10.0.0.7".to_owned()], now()).unwrap();
    assert_ne!(first.certificate, named.certificate);
    // A certificate for more names than asked for is good enough.
    assert_eq!(authority.serving(&[], days_later(300)).unwrap().certificate, named.certificate);
    assert_ne!(authority.serving(&[], days_later(340)).unwrap().certificate, named.certificate);
}

#[test]
fn serving_is_renewed_in_place() {
    let authority = Authority::in_memory(now()).unwrap();
    let serving = Serving::new(&authority, &[], now()).unwrap();
    assert!(!serving.renew(&authority, days_later(300)).unwrap());
    assert!(serving.renew(&authority, days_later(340)).unwrap());
    assert!(!serving.renew(&authority, days_later(341)).unwrap());
}

#[test]
fn broken_files_are_named_and_never_replaced() {
    let whole = tempfile::tempdir().unwrap();
    Authority::open(whole.path(), now()).unwrap().serving(&[], now()).unwrap();
    let other = Authority::in_memory(now()).unwrap();
    let text = |name: &str| std::fs::read_to_string(whole.path().join(name)).unwrap();
    let ca = text(CA_FILE);
    let key_start = ca.find("-----BEGIN PRIVATE").unwrap();
    let mixed = format!("{}{}", other.ca_pem(), &ca[key_start..]);
    for (file, content, says) in [
        (CA_FILE, &ca[..key_start], "no readable private key"),
        (CA_FILE, &ca[key_start..], "no certificate"),
        (CA_FILE, &ca[..key_start / 2], "not readable PEM"),
        (CA_FILE, &mixed, "does not belong"),
        (CA_FILE, "", "no certificate"),
        (SIGNING_FILE, "garbage", "no readable private key"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for name in [CA_FILE, SIGNING_FILE] {
            std::fs::write(dir.path().join(name), text(name)).unwrap();
        }
        std::fs::write(dir.path().join(file), content).unwrap();
        let error = Authority::open(dir.path(), now()).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(says), "{error}");
        assert_eq!(std::fs::read_to_string(dir.path().join(file)).unwrap(), content);
    }
    std::fs::write(whole.path().join(SERVING_FILE), "x").unwrap();
    let error = Authority::open(whole.path(), now()).unwrap().serving(&[], now()).unwrap_err().to_string();
    assert!(error.contains(SERVING_FILE), "{error}");
}

#[test]
fn an_expired_authority_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    Authority::open(dir.path(), now()).unwrap();
    assert!(Authority::open(dir.path(), days_later(3649)).is_ok());
    let error = Authority::open(dir.path(), days_later(3651)).unwrap_err();
    assert!(matches!(error, AuthorityError::CaExpired { .. }));
    assert!(error.to_string().contains("remove the file"));
}

#[test]
fn names_that_cannot_stand_in_a_certificate_are_refused() {
    let authority = Authority::in_memory(now()).unwrap();
    assert!(authority.client("", &[], now()).is_err());
    assert!(authority.client(&"x".repeat(2000), &[], now()).is_err());
    assert!(authority.client("al", &vec!["g".to_owned(); 65], now()).is_err());
    for bad in ["white space", "", "ünïcode.example", "a..b"] {
        assert!(authority.serving(&[bad.to_owned()], now()).is_err(), "{bad:?}");
    }
    assert!(authority.serving(&["*.example.com".to_owned()], now()).is_ok());
}

#[test]
fn a_kubeconfig_replaces_its_like_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub/config");
    let authority = Authority::in_memory(now()).unwrap();
    let identity = authority.client("admin", &["system:masters".to_owned()], now()).unwrap();
    let config = Kubeconfig {
        name: "berth",
        server: "https://127.0.0.1:6443",
        ca_pem: authority.ca_pem(),
        identity: &identity,
    };
    write_kubeconfig(&path, &config).unwrap();
    write_kubeconfig(&path, &Kubeconfig { server: "https://127.0.0.1:7000", ..config.clone() }).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let value: serde_json::Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
    assert_eq!(value["clusters"][0]["cluster"]["server"], "https://127.0.0.1:7000");
    assert_eq!(value["current-context"], "berth");
    std::fs::write(&path, "apiVersion: v1\nkind: Config\n").unwrap();
    let error = write_kubeconfig(&path, &config).unwrap_err();
    assert!(matches!(error, AuthorityError::NotOurs { .. }));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "apiVersion: v1\nkind: Config\n");
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let authority = Authority::in_memory(now()).unwrap();
    let identity = authority.client("al", &[], now()).unwrap();
    let shown = format!("{identity:?} {authority:?}");
    let secret = identity.key_pem().lines().nth(1).unwrap();
    assert!(!shown.contains(secret) && !shown.contains("PRIVATE"), "{shown}");
}
