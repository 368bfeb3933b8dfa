//! Where the programs of the beds are: what `./dev upstream` built, and the `berth` binary.

use std::{env, path::PathBuf};

use crate::BedError;

/// The module files that name the versions; `upstream/build` reads the same lines.
const ETCD: (&str, &str) = ("go.etcd.io/etcd/server/v3", include_str!("../../../upstream/etcd/go.mod"));
const KUBERNETES: (&str, &str) = ("k8s.io/kubernetes", include_str!("../../../upstream/kubernetes/go.mod"));
const OCM: (&str, &str) = ("open-cluster-management.io/ocm", include_str!("../../../upstream/ocm/go.mod"));

/// What to do about a tool that is missing.
const BUILD: &str = "run ./dev upstream";
/// And about one that only `./dev bench peers` needs.
const BUILD_PEERS: &str = "run ./dev upstream --peers";

/// Where Berth keeps what it builds once: `BERTH_CACHE`, else `berth` in the user's cache folder.
pub fn cache() -> PathBuf {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("BERTH_CACHE").unwrap_or_else(|| {
        let user = from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
        user.unwrap_or_else(env::temp_dir).join("berth")
    })
}

/// The path of a tool that `./dev upstream` builds: `etcd`, `kube-apiserver`, `kube-controller-manager` or `kubectl`, or of
/// the folder `ocm-definitions`; with `--peers`, `ocm-placement` or `ocm-placement-patched`.
pub fn tool(name: &str) -> Result<PathBuf, BedError> {
    let (folder, (module, file), remedy) = match name {
        "etcd" => ("etcd", ETCD, BUILD),
        "ocm-definitions" => ("ocm", OCM, BUILD),
        "ocm-placement" | "ocm-placement-patched" => ("ocm", OCM, BUILD_PEERS),
        _ => ("kubernetes", KUBERNETES, BUILD),
    };
    let version = version(module, file).expect("our own module file requires the module it is for");
    let path = cache().join("upstream").join(format!("{folder}-{version}")).join("bin").join(name);
    if path.exists() { Ok(path) } else { Err(BedError::Absent { what: format!("{name} {version}"), remedy }) }
}

/// The `berth` binary: `BERTH_BIN`, else the one cargo put beside the running test.
pub fn berth() -> Result<PathBuf, BedError> {
    let built = || {
        let test = env::current_exe().ok()?; // target/PROFILE/deps/TEST, or target/PROFILE/PROGRAM
        test.ancestors().skip(1).take(2).map(|folder| folder.join("berth")).find(|path| path.is_file())
    };
    if let Some(named) = env::var_os("BERTH_BIN").map(PathBuf::from) {
        // Named and wrong is a mistake to hear about, not a reason to skip.
        let there = named.metadata().map_err(BedError::system(format!("use BERTH_BIN={}", named.display())));
        return there.map(|_| named);
    }
    built().ok_or_else(|| BedError::Absent {
        what: "the berth binary".to_owned(),
        remedy: "run cargo build -p berth, or name it in BERTH_BIN",
    })
}

/// The version that a go.mod requires of `module`.
fn version<'a>(module: &str, file: &'a str) -> Option<&'a str> {
    file.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some(module)).then(|| words.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_our_module_files() {
        for (module, file) in [ETCD, KUBERNETES, OCM] {
            let version = version(module, file).unwrap();
            assert!(version.starts_with('v') && version.split('.').count() == 3, "{module} {version}");
        }
        assert_eq!(version("k8s.io/kube", KUBERNETES.1), None);
    }

    #[test]
    fn a_tool_that_was_never_built_is_absent_and_says_how_to_build_it() {
        let error = tool("kube-nothing").unwrap_err();
        assert!(matches!(error, BedError::Absent { .. }));
        assert!(error.to_string().ends_with("run ./dev upstream"), "{error}");
    }
}
