//! Token requests: what `create` on `serviceaccounts/token` answers.
//!
//! Owns defaulting, validation and the answer object. Never finds the service account: the caller has it already.

use berth_text::gotext::quote;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::service_account::{
    Binding, NameUid, ObjectLookup, ServiceAccountRef, ServiceAccountTokens, uid_of,
};
use crate::refusal::{FieldProblem, Refusal};
use crate::shape::{object_at, set};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// What a request that names no lifetime gets.
const LIFE_DEFAULT_S: i64 = 60 * 60;
const LIFE_MIN_S: i64 = 10 * 60;
const LIFE_MAX_S: i64 = 1 << 32;
/// More audiences than anybody serves; keeps tokens small enough for a header.
const AUDIENCES_MAX: usize = 64;

impl ServiceAccountTokens {
    /// Answers a TokenRequest for `account`; the result is the object to send back, token included.
    pub fn request(
        &self,
        body: &Value,
        account: &ServiceAccountRef,
        now: Timestamp,
        lookup: &dyn ObjectLookup,
    ) -> Result<Value, Refusal> {
        let metadata = |key: &str| body["metadata"][key].as_str().unwrap_or_default();
        for (field, own) in [("name", &account.name), ("namespace", &account.namespace)] {
            let given = metadata(field);
            if !given.is_empty() && given != own {
                let detail = format!("must match the service account {field} if specified");
                let problem = FieldProblem::invalid(format!("metadata.{field}"), &quote(given), &detail);
                return Err(invalid(&account.name, vec![problem]));
            }
        }
        let uid = metadata("uid");
        if !uid.is_empty() && uid != account.uid {
            return Err(Refusal::Conflict {
                group: GROUP.to_owned(),
                resource: KIND.to_owned(),
                name: account.name.clone(),
                detail: format!(
                    "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                    account.uid
                ),
            });
        }
        let (audiences, life_s) = self.read_spec(&body["spec"])?;
        let binding = bind(&body["spec"]["boundObjectRef"], account, lookup)?;
        let token = self
            .issue(account, &audiences, life_s, &binding, now)
            .map_err(|error| Refusal::Internal(format!("failed to generate token: {error}")))?;
        let mut answer = body.clone();
        let whole_now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        for (path, value) in [
            (&["apiVersion"][..], json!("authentication.k8s.io/v1")),
            (&["kind"], json!(KIND)),
            (&["metadata", "name"], json!(account.name)),
            (&["metadata", "namespace"], json!(account.namespace)),
            (&["metadata", "uid"], json!(account.uid)),
            (&["metadata", "creationTimestamp"], json!(whole_now.to_string())),
            (&["spec", "audiences"], json!(audiences)),
            (&["spec", "expirationSeconds"], json!(life_s)),
        ] {
            set(&mut answer, path, value);
        }
        object_at(&mut answer, &["spec"]).entry("boundObjectRef").or_insert(Value::Null);
        // The bounds on a lifetime keep this within what a timestamp can hold, up to the year 9999.
        let end = Timestamp::from_second(now.as_second().saturating_add(life_s)).unwrap_or(Timestamp::MAX);
        set(&mut answer, &["status"], json!({"token": token, "expirationTimestamp": end.to_string()}));
        Ok(answer)
    }

    fn read_spec(&self, spec: &Value) -> Result<(Vec<String>, i64), Refusal> {
        let mut audiences = crate::rule::strings(spec.get("audiences"));
        if audiences.is_empty() {
            audiences = self.audiences().to_vec();
        }
        let life_s = match &spec["expirationSeconds"] {
            Value::Null => LIFE_DEFAULT_S,
            value => value.as_i64().ok_or_else(|| {
                Refusal::BadRequest("spec.expirationSeconds must be a whole number of seconds".to_owned())
            })?,
        };
        let mut problems = Vec::new();
        if life_s < LIFE_MIN_S {
            let detail = "may not specify a duration less than 10 minutes";
            problems.push(FieldProblem::invalid("spec.expirationSeconds", &life_s.to_string(), detail));
        }
        if life_s > LIFE_MAX_S {
            let detail = "may not specify a duration larger than 2^32 seconds";
            problems.push(FieldProblem::invalid("spec.expirationSeconds", &life_s.to_string(), detail));
        }
        if audiences.len() > AUDIENCES_MAX {
            problems.push(FieldProblem {
                reason: "FieldValueTooMany",
                message: format!("Too many: {}: must have at most {AUDIENCES_MAX} items", audiences.len()),
                field: "spec.audiences".to_owned(),
            });
        }
        if problems.is_empty() { Ok((audiences, life_s)) } else { Err(invalid("", problems)) }
    }
}

fn invalid(name: &str, problems: Vec<FieldProblem>) -> Refusal {
    Refusal::Invalid { group: GROUP.to_owned(), kind: KIND.to_owned(), name: name.to_owned(), problems }
}

fn bind(
    reference: &Value,
    account: &ServiceAccountRef,
    lookup: &dyn ObjectLookup,
) -> Result<Binding, Refusal> {
    if !reference.is_object() {
        return Ok(Binding::None);
    }
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let (kind, name, namespace) = (text("kind"), text("name"), account.namespace.as_str());
    let version = text("apiVersion");
    let (group, short_version) = version.split_once('/').unwrap_or(("", version));
    let plural = match (group, kind) {
        ("", "Pod") => "pods",
        ("", "Secret") => "secrets",
        ("", "Node") => "nodes",
        _ => {
            let text = format!("cannot bind token to object of type {group}/{short_version}, Kind={kind}");
            return Err(Refusal::BadRequest(text));
        }
    };
    let place = if kind == "Node" { "" } else { namespace };
    let object = lookup.find(plural, place, name).ok_or_else(|| Refusal::NotFound {
        group: String::new(),
        resource: plural.to_owned(),
        name: name.to_owned(),
    })?;
    let found = NameUid { name: name.to_owned(), uid: uid_of(&object).to_owned() };
    let binding = match kind {
        "Pod" => bind_pod(&object, found.clone(), account, lookup)?,
        "Secret" => Binding::Secret(found.clone()),
        _ => Binding::Node(found.clone()),
    };
    let wanted = text("uid");
    if !wanted.is_empty() && wanted != found.uid {
        return Err(Refusal::Conflict {
            group: String::new(),
            resource: kind.to_owned(),
            name: name.to_owned(),
            detail: format!(
                "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            ),
        });
    }
    Ok(binding)
}

fn bind_pod(
    object: &Value,
    pod: NameUid,
    account: &ServiceAccountRef,
    lookup: &dyn ObjectLookup,
) -> Result<Binding, Refusal> {
    if object["spec"]["serviceAccountName"].as_str().unwrap_or_default() != account.name {
        return Err(Refusal::BadRequest(format!(
            "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
            quote(&account.name)
        )));
    }
    let node = object["spec"]["nodeName"].as_str().filter(|name| !name.is_empty()).map(|name| NameUid {
        name: name.to_owned(),
        uid: lookup.find("nodes", "", name).map(|node| uid_of(&node).to_owned()).unwrap_or_default(),
    });
    Ok(Binding::Pod { pod, node })
}
