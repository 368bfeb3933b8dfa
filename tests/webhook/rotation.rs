//! Certificates of seconds: several are replaced under load, and their authority with them, and no write is refused.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use berth_bed::{Bed, or_skip};
use berth_tests::{caller::Caller, waiting::until};
use serde_json::{Value, json};
use std::time::Duration;

use crate::ground::{GROUP, Ground, alone, webhook};

/// Writers at once.
const WRITERS: usize = 4;
/// The least number of writes for the result to mean something.
const WRITES_MIN: usize = 200;
/// How long a whole turn of authorities may take.
const PATIENCE: Duration = Duration::from_mins(3);

async fn secret(admin: &Caller) -> Value {
    admin.get("/api/v1/namespaces/default/secrets/berth-webhook-tls").await.ok()
}

async fn rotated(bed: &mut Bed) {
    let Some(_webhook) = or_skip(webhook(bed, "webhook", &["--certificate-life=15s"]).await) else { return };
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
    let first = secret(&admin).await;
    let mut serving = BTreeSet::new();
    until("a new authority signs, and several certificates were shown", PATIENCE, async || {
        let now = secret(&admin).await;
        serving.insert(now["data"]["tls.crt"].to_string());
        let is_other = now["data"]["signer.pem"] != first["data"]["signer.pem"];
        let is_ended = writers.iter().any(tokio::task::JoinHandle::is_finished);
        let count = count.load(Ordering::Relaxed);
        if is_ended || (is_other && serving.len() >= 4 && count >= WRITES_MIN) {
            Ok(())
        } else {
            Err(format!("{} certificates, another authority: {is_other}, {count} writes", serving.len()))
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
