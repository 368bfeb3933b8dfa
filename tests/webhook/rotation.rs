//! Certificates of seconds: several are replaced under load, and their authority with them, and no write is refused.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use berth_bed::{Bed, Companion, or_skip};
use berth_tests::{caller::Caller, waiting::until};
use serde_json::{Value, json};

use crate::{
    ground::{GROUP, Ground, alone, webhook},
    hostile::{authorities, handshake, trusting},
};

/// Writers at once.
const WRITERS: usize = 4;
/// The least number of writes for the result to mean something, after the first authority is gone. An API server keeps its
/// connections, and shakes hands anew only when it is told to trust somebody else: before that, what was renewed meets nobody.
const WRITES_MIN: usize = 200;
/// The life of a certificate. A third of it is left when it is renewed: where others keep the machine busy, a single write of the
/// webhook was seen to take 7 seconds.
const LIFE: Duration = Duration::from_secs(40);
/// The least number of certificates that must have been shown: an authority lasts four lives.
const CERTIFICATES_MIN: usize = 4;
/// How long a whole turn of authorities may take; 160 seconds where nothing is in the way.
const PATIENCE: Duration = Duration::from_mins(6);

async fn secret(admin: &Caller) -> Value {
    admin.get("/api/v1/namespaces/default/secrets/berth-webhook-tls").await.ok()
}

/// Whom a configuration says to trust: every webhook of it the same, for one write changes them all.
async fn bundle(admin: &Caller, kind: &str) -> Value {
    let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/berth-admission");
    let configuration = admin.get(&path).await.ok();
    let webhooks = configuration["webhooks"].as_array().unwrap();
    let bundle = &webhooks[0]["clientConfig"]["caBundle"];
    assert!(webhooks.iter().all(|webhook| webhook["clientConfig"]["caBundle"] == *bundle), "{configuration}");
    bundle.clone()
}

/// A handshake of somebody who has just read whom to trust, as an API server makes one that has no connection yet: the bundle,
/// and the certificate that was shown. It may fail only if the bundle was another by then.
async fn shaken(admin: &Caller, webhook: &Companion, kind: &str) -> (Value, Vec<u8>) {
    let mut told = bundle(admin, kind).await;
    loop {
        let failure = match handshake(webhook, &trusting(&authorities(&told))).await {
            Ok(certificate) => return (told, certificate),
            Err(failure) => failure,
        };
        let now = bundle(admin, kind).await;
        assert_ne!(now, told, "whom the {kind} configuration says to trust does not vouch: {failure}");
        told = now;
    }
}

async fn rotated(bed: &mut Bed) {
    let life = format!("--certificate-life={}s", LIFE.as_secs());
    let Some(webhook) = or_skip(webhook(bed, "webhook", &[&life]).await) else { return };
    let admin = Caller::admin(bed);
    let namespace = bed.namespace("rotated").await;
    let collection = format!("{GROUP}/v1beta1/namespaces/{namespace}/placements");
    let (done, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let (done, count, collection) = (Arc::clone(&done), Arc::clone(&count), collection.clone());
        let caller = Caller::admin(bed);
        writers.push(tokio::spawn(async move {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                let placement = json!({
                    "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
                    "metadata": {"name": format!("p-{writer}-{number}")}, "spec": {"numberOfClusters": 1},
                });
                // Every single one: a refusal fails the test here.
                caller.post(&format!("{collection}?dryRun=All"), &placement).await.ok();
                count.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    let first = authorities(&secret(&admin).await["data"]["ca.crt"]);
    let mut shown = BTreeSet::new();
    // How many writes there were when nobody was told to trust the first authority any more.
    let mut turned = None;
    until("writes that only the next authority vouches for", PATIENCE, async || {
        if writers.iter().any(tokio::task::JoinHandle::is_finished) {
            return Ok(());
        }
        let mut told = Vec::new();
        for kind in ["mutating", "validating"] {
            let (bundle, certificate) = shaken(&admin, &webhook, kind).await;
            told.push(bundle);
            shown.insert(certificate);
        }
        let held = secret(&admin).await["data"]["ca.crt"].clone();
        let is_first_gone = authorities(&held).iter().all(|authority| !first.contains(authority));
        let count = count.load(Ordering::Relaxed);
        if turned.is_none() && is_first_gone && told.iter().all(|told| *told == held) {
            turned = Some(count);
        }
        match turned {
            Some(then) if count >= then + WRITES_MIN && shown.len() >= CERTIFICATES_MIN => Ok(()),
            _ => Err(format!(
                "{} certificates; the first authority is gone: {is_first_gone}; {count} writes, of them before that: {turned:?}",
                shown.len()
            )),
        }
    })
    .await;
    done.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("no write was refused");
    }
    // It was the webhook that let them through: one that cannot work is still refused.
    let bad = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "bad"}, "spec": {"tolerations": [{"operator": "Equal", "value": "a"}]},
    });
    admin.post(&collection, &bad).await.refused(422);
}

#[test]
fn certificates_are_replaced_under_load_without_a_refused_write_on_the_hub() {
    alone(Ground::Hub, rotated);
}

#[test]
fn certificates_are_replaced_under_load_without_a_refused_write_on_kubernetes() {
    alone(Ground::Kubernetes, rotated);
}
