//! Writes a base for kustomize: what `berth install` prints, in a file for each part.
//!
//! ```text
//! cargo run -q -p berth --example deploy -- FOLDER
//! ```
//!
//! `FOLDER/base` has everything but the definitions; `FOLDER` itself adds those, from `FOLDER/crds`.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

use berth::install::Installation;
use berth::install::parts::Part;
use berth::manifest::write_yaml_document;
use serde_json::{Value, json};

const HEADER: &str = "# Generated from crates/berth/src/install; change it there and run ./dev generate.\n";

const FILES: [(&str, Part); 5] = [
    ("namespace.yaml", Part::Namespace),
    ("rights.yaml", Part::Rights),
    ("service.yaml", Part::Plumbing),
    ("workloads.yaml", Part::Workloads),
    ("webhooks.yaml", Part::Webhooks),
];

fn kustomization(resources: &[String]) -> Value {
    json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources})
}

fn write(path: &Path, documents: &[Value]) -> io::Result<()> {
    let mut text = HEADER.as_bytes().to_vec();
    for (index, document) in documents.iter().enumerate() {
        write_yaml_document(&mut text, document, index == 0)?;
    }
    fs::write(path, text)
}

fn main() -> anyhow::Result<ExitCode> {
    let [folder] = &env::args_os().skip(1).collect::<Vec<_>>()[..] else {
        return Ok(ExitCode::from(2));
    };
    let (folder, installation) = (Path::new(folder), Installation::default());
    let base = folder.join("base");
    fs::create_dir_all(&base)?;
    for (name, part) in FILES {
        write(&base.join(name), &part.objects(&installation)?)?;
    }
    write(&base.join("kustomization.yaml"), &[kustomization(&FILES.map(|(name, _)| name.to_owned()))])?;
    let definitions = berth_api::crds();
    let names = definitions.iter().filter_map(|definition| definition.metadata.name.as_deref());
    let mut resources: Vec<String> = names.map(|name| format!("crds/{name}.yaml")).collect();
    resources.sort();
    resources.push("base".to_owned());
    write(&folder.join("kustomization.yaml"), &[kustomization(&resources)])?;
    Ok(ExitCode::SUCCESS)
}
