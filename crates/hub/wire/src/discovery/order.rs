//! The order of versions and groups, which clients take for preference.

use std::cmp::Ordering;

/// How far to the front a group stands, as a real server arranges them. Groups of definitions come last.
pub fn group_priority(group: &str) -> u32 {
    match group {
        "" => 18_000,
        "apps" => 17_800,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" => 16_200,
        _ => 1_000,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Maturity {
    Alpha,
    Beta,
    Stable,
}

/// `v2beta1` into maturity, major and minor.
fn parse(version: &str) -> Option<(Maturity, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let (maturity, minor) = match rest {
        "" => (Maturity::Stable, "0"),
        rest => match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
            (Some(minor), _) => (Maturity::Alpha, minor),
            (_, Some(minor)) => (Maturity::Beta, minor),
            _ => return None,
        },
    };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // Go's integers have 63 bits; what is larger is no version.
        is_number.then(|| text.parse::<i64>().ok()).flatten().and_then(|n| u64::try_from(n).ok())
    };
    Some((maturity, number(major)?, number(minor)?))
}

/// Compares versions as Kubernetes does: stable above beta above alpha, then by number; what is no version is below
/// all that are, and among itself in reverse alphabetical order.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stable_versions_come_first_and_strange_ones_last() {
        let mut versions = [
            "foo1",
            "v1alpha1",
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "foo10",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
        ];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }

    proptest! {
        #[test]
        fn any_texts_have_an_order(a in "v?[0-9]{0,3}(alpha|beta)?[0-9]{0,2}", b in "v?[0-9]{0,3}(alpha|beta)?[0-9]{0,2}") {
            prop_assert_eq!(compare_versions(&a, &b), compare_versions(&b, &a).reverse());
        }
    }
}
