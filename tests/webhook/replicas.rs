//! Several replicas: one Secret, whoever makes it, and the same certificate from each.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth_bed::{Bed, Companion, or_skip};
use berth_tests::{caller::Caller, waiting::eventually};
use serde_json::Value;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};

use crate::{
    ground::{BESIDE, Ground, alone},
    hostile::{certificate, trust},
};

async fn share(bed: &mut Bed) {
    // Both find nothing and make a Secret; one of them is second.
    let other: Vec<&str> = BESIDE.iter().copied().filter(|flag| !flag.starts_with("--url")).collect();
    let (one, two) = tokio::join!(
        Companion::berth(bed, "one", "webhook", BESIDE),
        Companion::berth(bed, "two", "webhook", &other),
    );
    let (Some(one), Some(two)) = (or_skip(one), or_skip(two)) else { return };
    let admin = Caller::admin(bed);
    // One asks for another name than the other, so whoever was second may have issued anew.
    let secret = eventually("both showing what the Secret holds", async || {
        let secret = admin.get("/api/v1/namespaces/default/secrets/berth-webhook-tls").await.ok();
        let trusted = trust(&secret);
        let held = STANDARD.decode(secret["data"]["tls.crt"].as_str()?).ok()?;
        let held = CertificateDer::from_pem_slice(&held).ok()?.to_vec();
        let shown = [certificate(&one, &trusted).await, certificate(&two, &trusted).await];
        shown.iter().all(|shown| *shown == held).then_some(secret)
    })
    .await;
    for kind in ["mutating", "validating"] {
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/berth-admission");
        let configuration = admin.get(&path).await.ok();
        for webhook in configuration["webhooks"].as_array().unwrap() {
            assert_eq!(webhook["clientConfig"]["caBundle"], secret["data"]["ca.crt"], "{kind}");
        }
    }
    // Nobody's log has a key in it.
    for log in [one.log(), two.log()] {
        assert!(!log.contains("PRIVATE") && !log.contains("BEGIN"), "{log}");
    }
    assert!(matches!(secret["data"]["successor.pem"], Value::Null));
}

#[test]
fn replicas_share_a_secret_on_the_hub() {
    alone(Ground::Hub, share);
}

#[test]
fn replicas_share_a_secret_on_kubernetes() {
    alone(Ground::Kubernetes, share);
}
