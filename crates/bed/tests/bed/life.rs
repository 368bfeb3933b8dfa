//! The life of a bed: it serves, survives what is done to it, and leaves nothing behind.

use std::{collections::BTreeMap, io, net::TcpStream, time::Duration};

use berth_bed::{Bed, Kind, or_skip, scenario};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use rustix::process::{Pid, test_kill_process};
use tokio::time::timeout;

fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

fn alive(pid: u32) -> bool {
    test_kill_process(Pid::from_raw(pid as i32).unwrap()).is_ok()
}

scenario! {
    async fn a_namespace_made_for_a_scenario_is_active(bed: &Bed) {
        let name = bed.namespace("story").await;
        assert!(name.starts_with("story-"), "{name}");
        let namespace = Api::<Namespace>::all(bed.client()).get(&name).await.unwrap();
        assert_eq!(namespace.status.unwrap().phase.as_deref(), Some("Active"));
    }

    async fn the_bed_knows_its_administrator_and_whom_it_impersonates(bed: &Bed) {
        let ask = async |client: Client| {
            let review = Api::<SelfSubjectReview>::all(client);
            let answer = review.create(&PostParams::default(), &SelfSubjectReview::default()).await;
            let user = answer.unwrap().status.unwrap().user_info.unwrap();
            (user.username.unwrap(), user.groups.unwrap())
        };
        let (_, groups) = ask(bed.client()).await;
        assert!(groups.contains(&"system:masters".to_owned()), "{groups:?}");
        let (user, groups) = ask(bed.client_as("jane", &["pilots"])).await;
        assert_eq!((user.as_str(), groups.first().map(String::as_str)), ("jane", Some("pilots")));
    }

    async fn a_client_without_rights_is_refused(bed: &Bed) {
        let refused = maps(bed.client_as("nobody", &[])).get("any").await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.is_forbidden()), "{refused}");
    }

    async fn what_was_written_survives_a_kill_and_a_stop(bed: &mut Bed) {
        let (client, url) = (bed.client(), bed.url().to_owned());
        let written = maps(client.clone()).create(&PostParams::default(), &map("kept", "first")).await.unwrap();

        bed.kill();
        assert_eq!(bed.pid(), None);
        let address = url.strip_prefix("https://").unwrap();
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        bed.start().await.unwrap();
        assert_eq!(maps(bed.client()).get("kept").await.unwrap(), written);
        // A client from before finds the server again: same address, same certificates.
        assert_eq!(maps(client).get("kept").await.unwrap(), written);

        bed.stop().await.unwrap();
        bed.stop().await.unwrap();
        bed.start().await.unwrap();
        bed.start().await.unwrap();
        assert_eq!(bed.url(), url);
        assert_eq!(maps(bed.client()).get("kept").await.unwrap(), written);
    }

    async fn a_paused_server_answers_when_it_is_resumed(bed: &mut Bed) {
        let maps = maps(bed.client());
        maps.create(&PostParams::default(), &map("paused", "")).await.unwrap();
        bed.pause().unwrap();
        let mut answer = Box::pin(maps.get("paused"));
        assert!(timeout(Duration::from_millis(300), &mut answer).await.is_err());
        bed.resume().unwrap();
        answer.await.unwrap();
    }

    async fn nothing_is_left_of_a_bed(bed: &mut Bed) {
        let other = match bed.kind() {
            Kind::Hub => Bed::hub().await.unwrap(),
            Kind::Kubernetes => Bed::kubernetes().without_fsync().await.unwrap(),
        };
        let (pids, folder) = (other.pids(), other.folder().to_owned());
        assert!(pids.iter().all(|(_, pid)| alive(*pid)) && folder.join("kubeconfig").exists());
        drop(other);
        for (name, pid) in pids {
            assert!(!alive(pid), "{name} {pid} is still there");
        }
        assert!(!folder.exists());
        // The one beside it goes on.
        Api::<Namespace>::all(bed.client()).get("default").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_run_beside_the_server_when_asked_for() {
    let flags = ["--controllers=serviceaccount-controller"];
    let Some(bed) = or_skip(Bed::kubernetes().without_fsync().controller_manager(&flags).await) else {
        return;
    };
    let namespace = bed.namespace("served").await;
    let accounts = Api::<ServiceAccount>::namespaced(bed.client(), &namespace);
    let made = async {
        while accounts.get_opt("default").await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    // It is there as soon as the program is up, which on a busy machine takes more than a minute.
    timeout(Duration::from_mins(3), made)
        .await
        .expect("the controller gives each namespace a service account");
    assert_eq!(bed.pids().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_the_server_does_not_know_is_shown_from_its_log() {
    match Bed::kubernetes().api_server(&["--no-such-flag"]).await {
        Ok(_) => panic!("started with a flag that does not exist"),
        Err(absent @ berth_bed::BedError::Absent { .. }) => assert!(or_skip::<()>(Err(absent)).is_none()),
        Err(error) => {
            assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
            let berth_bed::BedError::Ended { log, .. } = error else { panic!("{error}") };
            std::fs::remove_dir_all(log.parent().unwrap()).unwrap();
        }
    }
}
