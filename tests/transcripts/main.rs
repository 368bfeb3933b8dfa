//! Stories: what a person types at `kubectl`, and what it answers, to the letter.
//!
//! A story is a file of shell commands in `stories/`; its snapshot is the transcript. Each is played twice, on the hub
//! and on a real Kubernetes, and both transcripts must be the same one: kubectl cannot tell the two apart. The few
//! stories that only one of them can tell are marked in the list below, with the reason.
//!
//! What changes from run to run (uids, times, ages, ports) is replaced by a word in capitals, see `mask.rs`.
//! `INSTA_UPDATE=always` accepts what came out; look at the difference before keeping it.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod mask;
mod stage;
mod story;

use berth_bed::Kind;

/// Tells a story on a bed and compares the transcript.
fn tell(name: &str, kind: Kind) {
    compare(name, stage::play(name, kind));
}

/// Tells a story on a new hub.
fn tell_anew(name: &str) {
    compare(name, stage::play_anew(name));
}

fn compare(name: &str, transcript: Option<String>) {
    let Some(transcript) = transcript else { return };
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(format!("stories/{name}.story"));
    settings.bind(|| insta::assert_snapshot!(name, transcript));
}

macro_rules! stories {
    ($(#[$attribute:meta])* $name:ident $(, $($more:tt)*)?) => {
        $(#[$attribute])*
        mod $name {
            #[test]
            fn on_the_hub() {
                crate::tell(stringify!($name), berth_bed::Kind::Hub);
            }

            #[test]
            fn on_kubernetes() {
                crate::tell(stringify!($name), berth_bed::Kind::Kubernetes);
            }
        }
        $(stories!($($more)*);)?
    };
    ($(#[$attribute:meta])* $name:ident: hub only $(, $($more:tt)*)?) => {
        $(#[$attribute])*
        mod $name {
            #[test]
            fn on_the_hub() {
                crate::tell(stringify!($name), berth_bed::Kind::Hub);
            }
        }
        $(stories!($($more)*);)?
    };
    ($(#[$attribute:meta])* $name:ident: new hub $(, $($more:tt)*)?) => {
        $(#[$attribute])*
        mod $name {
            #[test]
            fn on_a_new_hub() {
                crate::tell_anew(stringify!($name));
            }
        }
        $(stories!($($more)*);)?
    };
    () => {};
}

stories! {
    access,
    apply,
    apply_server_side,
    create,
    custom_resource,
    definition,
    delete,
    describe,
    diff,
    discovery,
    edit,
    events,
    explain,
    get,
    label,
    node,
    patch,
    refusals,
    replace,
    roles,
    scale,
    wait,
    watch,
    // Pods on a node end only where a kubelet ends them; the hub, which has none, ends them itself.
    drain: hub only,
    // The words about built-in kinds are those of the release that k8s-openapi follows, and values are not listed.
    explain_enumeration: hub only,
    // It begins with a cluster that has nothing of ours.
    fleet: new hub,
}

/// A story that nobody tells would look like one that passes.
#[test]
fn every_story_is_told() {
    let told = include_str!("main.rs");
    let list = &told[told.find("\nstories! {").unwrap()..];
    for name in story::names() {
        let line = |end: &str| list.contains(&format!("\n    {name}{end}"));
        assert!(
            line(",") || line(": hub only,") || line(": new hub,"),
            "stories/{name}.story is not in the list"
        );
    }
}
