//! Controllers written in Go: the program in `tests/client-go` on both beds.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use berth_bed::{Bed, BedError, cache, or_skip, scenario};

/// The program, built once a run into the cache; nothing where there is no Go.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        if Command::new("go").arg("version").output().is_err() {
            let absent = BedError::Absent {
                what: "Go".to_owned(),
                remedy: "the client-go program needs it to be built",
            };
            return or_skip(Err(absent));
        }
        let folder = cache().join("client-go");
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("client-go");
        let built = Command::new("go")
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/client-go"))
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg(".")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(program)
    };
    BUILT.get_or_init(build).as_deref()
}

scenario! {
    async fn a_program_on_client_go_finds_what_it_expects(bed: &Bed) {
        let Some(program) = program() else { return };
        let output = Command::new(program).env("KUBECONFIG", bed.kubeconfig()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let log = bed.folder().join("client-go.log");
        fs::write(&log, &output.stderr).unwrap();
        assert!(output.status.success(), "on {} ({}):\n{said}", bed.kind(), log.display());
    }
}
