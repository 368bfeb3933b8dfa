//! The manifests in the proposals this project began with are read and converted as written.
//!
//! The proposals lie beside the project and are not part of it; without them there is nothing to check.

use std::path::Path;

use berth::convert::convert;
use berth::manifest::load;

/// The fenced YAML blocks of a Markdown text, with the indent of their fence taken off.
fn yaml_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        match &mut open {
            Some(_) if bare.starts_with("```") => blocks.extend(open.take().map(|(_, block)| block)),
            Some((width, block)) => {
                block.push_str(line.get(*width..).unwrap_or(bare));
                block.push('\n');
            }
            None if bare.starts_with("```yaml") => open = Some((indent, String::new())),
            None => {}
        }
    }
    blocks
}

#[test]
fn every_manifest_of_the_placement_proposals_converts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    if !folder.is_dir() {
        eprintln!("skipped: the proposals are not beside this project");
        return;
    }
    let mut seen = 0;
    for name in ["placement-apis.md", "taint-toleration.md", "extensible-scheduling.md"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        for block in yaml_blocks(&text) {
            let loaded = load(&["-".into()], &mut block.as_bytes());
            assert_eq!(loaded.problems, [], "{name}\n{block}");
            for object in loaded.objects {
                let converted = convert(object.value);
                assert_eq!(converted.conflicts, [], "{name}\n{block}");
                let version = converted.value["apiVersion"].as_str().unwrap();
                match converted.value["kind"].as_str().unwrap() {
                    "Placement" | "PlacementDecision" => {
                        assert_eq!(version, "cluster.open-cluster-management.io/v1beta1");
                    }
                    "ManagedClusterSetBinding" => {
                        assert_eq!(version, "cluster.open-cluster-management.io/v1beta2");
                    }
                    _ => {}
                }
                assert_eq!(convert(converted.value).changes, [], "{name}\n{block}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 15, "only {seen} manifests were found");
}
