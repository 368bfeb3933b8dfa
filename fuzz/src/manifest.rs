//! Any bytes as a stream of manifests.
//!
//! Owns the promises: reading never fails but with a problem that names its place, what was read is written and read
//! back as it was, a valid object becomes a typed one and stays it, and every placement can be decided.

use berth::{convert::convert, manifest as text};
use berth_api::{Object, ReadError};
use berth_engine::{Model, Moment, PlacementKey};
use serde_json::Value;

use crate::fleet::{decide, delta};

/// The moments to decide at: before, within and after the times of the seeds.
const SECONDS: [i64; 3] = [0, 1_709_287_300, 4_102_444_800];

/// Reads the bytes as standard input is read, and decides every placement found.
pub fn manifest(bytes: &[u8]) {
    clusters_selected(bytes);
}

/// How many clusters all placements select together, at any of the moments.
fn clusters_selected(bytes: &[u8]) -> usize {
    let loaded = text::load(&["-".into()], &mut &*bytes);
    for problem in &loaded.problems {
        assert!(!problem.to_string().is_empty(), "a problem says what is wrong");
    }
    let mut model = Model::new();
    for object in loaded.objects {
        assert_eq!(written_and_read(&object.value), object.value, "a document is read as it was written");
        let converted = convert(object.value.clone());
        let current = if converted.conflicts.is_empty() { converted.value } else { object.value };
        if let Some(delta) = typed(current).and_then(delta) {
            model.apply(delta);
        }
    }
    let placements: Vec<PlacementKey> = model.placements().cloned().collect();
    let mut selected = 0;
    for now in SECONDS.map(Moment::from_second) {
        for placement in &placements {
            selected += decide(&mut model, placement, now).map_or(0, |decision| decision.picks.len());
        }
    }
    selected
}

fn written_and_read(value: &Value) -> Value {
    let mut yaml = Vec::new();
    text::write_yaml_document(&mut yaml, value, true).expect("memory takes every write");
    let mut loaded = text::load(&["-".into()], &mut yaml.as_slice());
    assert!(loaded.problems.is_empty(), "{:?} in\n{}", loaded.problems, String::from_utf8_lossy(&yaml));
    assert_eq!(loaded.objects.len(), 1, "one document holds one object");
    loaded.objects.remove(0).value
}

fn typed(document: Value) -> Option<Object> {
    match Object::read(document) {
        Ok(reading) => {
            let again = Object::read(reading.object.to_value()).expect("a valid object stays valid");
            assert_eq!(again.object, reading.object, "an object is read as it was written");
            Some(reading.object)
        }
        Err(error) => {
            assert!(!matches!(error, ReadError::Unreadable { .. }), "a valid document has a type: {error}");
            assert!(!error.to_string().is_empty(), "an error says what is wrong");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fleet_among_the_seeds_selects_its_cluster_until_the_toleration_ends() {
        assert_eq!(clusters_selected(include_bytes!("../corpus/manifest/fleet")), 2);
    }
}
