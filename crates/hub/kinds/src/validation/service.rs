//! The rules of services: what a manifest has to say. Addresses are nobody's to give here.

use berth_schema::names;

use super::place::{At, Found};

pub(super) fn service(object: &At<'_>, found: &mut Found) {
    let spec = object.get("spec");
    let kind = spec.get("type").text();
    let ports = spec.get("ports");
    let headless = spec.get("clusterIP").text() == "None";
    if ports.len() == 0 && !headless && kind != "ExternalName" {
        found.required(&ports, "");
    }
    if kind == "ExternalName" {
        let name = spec.get("externalName");
        let text = name.text().strip_suffix('.').unwrap_or(name.text());
        if text.is_empty() {
            found.required(&name, "");
        } else {
            for sentence in names::dns_subdomain(text) {
                found.invalid_text(&name, name.text(), &sentence);
            }
        }
    }
    let mut seen: Vec<&str> = Vec::new();
    for port in ports.items() {
        let name = port.get("name");
        if name.text().is_empty() {
            if ports.len() > 1 {
                found.required(&name, "");
            }
        } else {
            found.label(&name);
            if seen.contains(&name.text()) {
                found.duplicate(&name);
            }
            seen.push(name.text());
        }
        found.port(&port.get("port"));
        found.one_of(&port.get("protocol"), &["SCTP", "TCP", "UDP"]);
        found.port_or_name(&port.get("targetPort"));
    }
    found.labels(&spec.get("selector"));
    found.one_of(&spec.get("sessionAffinity"), &["ClientIP", "None"]);
    found.one_of(&spec.get("type"), &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    let ports: Vec<At<'_>> = ports.items().collect();
    for (index, port) in ports.iter().enumerate() {
        let same = |other: &&At<'_>| {
            ["protocol", "port"].iter().all(|field| other.get(field).value == port.get(field).value)
        };
        if ports[..index].iter().find(same).is_some() {
            found.extend(vec![duplicate(port)]);
        }
    }
}

/// A port that is there already, as messages show it: by protocol and number only.
fn duplicate(port: &At<'_>) -> berth_schema::Problem {
    let shown = super::place::internal(&[
        ("Name", &"".into()),
        ("Protocol", port.get("protocol").value),
        ("AppProtocol", &serde_json::Value::Null),
        ("Port", port.get("port").value),
        ("TargetPort", &0.into()),
        ("NodePort", &0.into()),
    ]);
    berth_schema::Problem {
        path: port.path.clone(),
        kind: berth_schema::ProblemKind::Duplicate,
        message: format!("Duplicate value: {shown}"),
    }
}
