//! Labels that follow other labels: the names of before.

use std::collections::BTreeMap;

use super::names::label;

/// Which label follows which.
const PAIRS: [(&str, &str); 2] = [(label::OS, label::OS_BETA), (label::ARCH, label::ARCH_BETA)];

/// The labels to set, with their values; none if all are as they should be. Where the present name is missing, the one of
/// before is left alone.
pub fn missing_labels(labels: &BTreeMap<String, String>) -> BTreeMap<&'static str, &str> {
    let follow = |(leads, follows): (&str, &'static str)| {
        let value = labels.get(leads)?;
        (labels.get(follows) != Some(value)).then_some((follows, value.as_str()))
    };
    PAIRS.into_iter().filter_map(follow).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::labels;
    use super::*;

    /// Upstream: nodelifecycle/node_lifecycle_controller_test.go "TestReconcileNodeLabels".
    #[test]
    fn the_old_names_follow_the_new() {
        type Labels<'l> = &'l [(&'l str, &'l str)];
        let cases: [(Labels<'_>, Labels<'_>); 5] = [
            (&[], &[]),
            (&[("beta.kubernetes.io/os", "linux")], &[]),
            (&[("kubernetes.io/os", "linux")], &[("beta.kubernetes.io/os", "linux")]),
            (
                &[
                    ("kubernetes.io/os", "linux"),
                    ("beta.kubernetes.io/os", "windows"),
                    ("kubernetes.io/arch", "arm64"),
                ],
                &[("beta.kubernetes.io/arch", "arm64"), ("beta.kubernetes.io/os", "linux")],
            ),
            (&[("kubernetes.io/os", "linux"), ("beta.kubernetes.io/os", "linux")], &[]),
        ];
        for (has, wanted) in cases {
            let has = labels(has);
            assert_eq!(missing_labels(&has).into_iter().collect::<Vec<_>>(), wanted, "{has:?}");
        }
    }
}
