//! A process that is killed while it writes, again and again.
//!
//! The test starts itself as a child that writes from several tasks and says on standard output what was acknowledged,
//! and kills it without warning. A write counts as acknowledged once its line was read.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use berth_hub_store::{EventKind, Expect, Ledger, ListQuery, Revision};

use crate::support::{delete, key, open_at, pods, put, run, value};

const KILLS: u64 = 50;
const WRITERS: u64 = 6;
const DIRECTORY: &str = "STORE_KILL_TEST_DIRECTORY";

#[test]
#[ignore = "runs as the child of the test below"]
fn child_that_writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    run(async {
        let ledger = open_at(&directory);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let ledger = ledger.clone();
                tokio::spawn(async move {
                    for round in 0_u64.. {
                        let pod = key("a", &format!("pod-{writer}-{}", round % 7));
                        let gone = round % 11 == 10 && ledger.get(&pod).is_some();
                        let write =
                            if gone { delete(&pod, Expect::Present) } else { put(&pod, Expect::Any, round) };
                        let entry = ledger.commit(vec![write]).await.unwrap().remove(0);
                        let line = format!("ack {} {} {}\n", pod.name, entry.revision(), u8::from(gone));
                        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

/// What the parent knows.
#[derive(Default)]
struct Witness {
    /// Acknowledged writes that were not found in the log yet: name, and whether the write was a deletion.
    acknowledged: BTreeMap<u64, (String, bool)>,
    /// The objects that follow from the changes watched so far, with their revisions.
    objects: BTreeMap<String, Revision>,
    /// The last revision watched.
    seen: Revision,
}

impl Witness {
    /// Takes one line of the child; whether it was an acknowledgement.
    fn note(&mut self, line: &str) -> bool {
        // The test harness of the child may have put its own words in front of the first line.
        let Some((_, rest)) = line.split_once("ack ") else { return false };
        let words: Vec<&str> = rest.split(' ').collect();
        let [name, revision, gone @ ("0" | "1")] = words[..] else { return false };
        let Ok(revision) = revision.parse() else { return false };
        self.acknowledged.insert(revision, (name.to_owned(), gone == "1"));
        true
    }

    /// Continues to watch where the last process ended.
    fn inspect(&mut self, ledger: &Ledger, kill: u64) {
        let mut watch = ledger.watch(&pods(), None, self.seen).unwrap();
        while let Some(event) = watch.try_next().unwrap() {
            assert_eq!(event.revision(), self.seen.next(), "kill {kill}: no gap, no duplicate");
            self.seen = event.revision();
            value(event.entry());
            let (name, gone) = (event.entry().key().name.to_string(), event.kind() == EventKind::Deleted);
            if let Some(told) = self.acknowledged.remove(&self.seen.0) {
                assert_eq!(told, (name.clone(), gone), "kill {kill}: revision {}", self.seen);
            }
            let before = if gone { self.objects.remove(&name) } else { self.objects.insert(name, self.seen) };
            assert_eq!(before, event.previous().map(|entry| entry.revision()), "kill {kill}");
        }
        assert!(self.acknowledged.is_empty(), "kill {kill}: lost {:?}", self.acknowledged);
        assert_eq!(self.seen, ledger.revision(), "kill {kill}");
        let list = ledger.list(&pods(), &ListQuery::default()).unwrap();
        let objects: BTreeMap<String, Revision> = list
            .entries
            .iter()
            .map(|entry| {
                value(entry);
                (entry.key().name.to_string(), entry.revision())
            })
            .collect();
        assert_eq!(objects, self.objects, "kill {kill}");
    }
}

#[test]
fn a_killed_process_leaves_every_acknowledged_write_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mut witness = Witness::default();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for kill in 0..KILLS {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_that_writes_until_it_is_killed", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).split(b'\n');
        let mut left = (random >> 33) % 200;
        // Every tenth child dies while it starts.
        while kill % 10 != 9 && left > 0 {
            let line = lines.next().expect("the child writes until it is killed").unwrap();
            left -= u64::from(witness.note(&String::from_utf8_lossy(&line)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had said before it died counts too; a line that was cut does not.
        for line in lines.map_while(Result::ok) {
            witness.note(&String::from_utf8_lossy(&line));
        }
        run(async {
            let ledger = open_at(directory.path());
            witness.inspect(&ledger, kill);
            ledger.close().await;
        });
    }
    assert!(witness.seen > Revision(1000), "the children got to write: {}", witness.seen);
}
