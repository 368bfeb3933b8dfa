//! New claims of storage that name no class get the default one; claims grow where their class lets them.

use std::cmp::Ordering;

use berth_hub_guard::webhook::{Operation, Resource};
use berth_hub_kinds::Builtins;
use berth_hub_kinds::admission::{Surroundings, on_create};
use berth_hub_kinds::quantity::Quantity;
use berth_hub_wire::Status;
use serde_json::Value;

use crate::admission::{Admission, Request, Review};

const CLASSES: Resource<'_> = Resource { group: "storage.k8s.io", version: "v1", resource: "storageclasses" };
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
/// Where a claim named its class before it had a field for it, which still wins.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// What claims are given, and may become.
#[derive(Debug)]
pub(super) struct Claims;

impl Admission for Claims {
    fn concerns(&self, request: &Request<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update)
            && request.is_about("", "persistentvolumeclaims")
    }

    fn mutate(&self, review: &mut Review<'_>, object: &mut Value) -> Result<(), Status> {
        if review.request.operation != Operation::Create {
            return Ok(());
        }
        let claim = Builtins::load().kind("", "v1", "PersistentVolumeClaim").expect("claims are built in");
        let default = review
            .list(CLASSES, None)
            .into_iter()
            .find(|class| class["metadata"]["annotations"][IS_DEFAULT] == "true");
        let surroundings = Surroundings {
            default_storage_class: default.as_ref().and_then(|class| class["metadata"]["name"].as_str()),
            ..Surroundings::default()
        };
        on_create(claim, object, &surroundings).map_err(|why| review.forbidden(&why))
    }
    fn validate(&self, review: &mut Review<'_>, object: Option<&Value>) -> Result<(), Status> {
        let (Some(new), Some(old)) = (object, review.request.old) else { return Ok(()) };
        if storage(new).compare(&storage(old)) != Ordering::Greater {
            return Ok(());
        }
        if old["status"]["phase"] != "Bound" {
            return Err(review.forbidden("Only bound persistent volume claims can be expanded"));
        }
        let name = class(new);
        let expands = !name.is_empty()
            && name == class(old)
            && review.find(CLASSES, "", name).is_some_and(|class| class["allowVolumeExpansion"] == true);
        if expands {
            return Ok(());
        }
        Err(review.forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
        ))
    }
}

/// How much a claim asks for: nothing where it does not say.
fn storage(claim: &Value) -> Quantity {
    let said = claim.pointer("/spec/resources/requests/storage").and_then(Value::as_str).unwrap_or("0");
    Quantity::parse(said).or_else(|_| Quantity::parse("0")).expect("zero is a quantity")
}

fn class(claim: &Value) -> &str {
    claim["metadata"]["annotations"]
        .get(CLASS_ANNOTATION)
        .or_else(|| claim["spec"].get("storageClassName"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use berth_hub_guard::webhook::Kind;
    use berth_hub_guard::{Attributes, User, Verdict};
    use serde_json::json;

    use super::*;
    use crate::admission::Lookup;

    /// The class `grows` may be expanded, `stays` may not, and there are no others.
    struct Classes;

    impl Lookup for Classes {
        fn find(&self, _: Resource<'_>, _: &str, name: &str) -> Option<Value> {
            match name {
                "grows" => Some(json!({"allowVolumeExpansion": true})),
                "stays" => Some(json!({})),
                _ => None,
            }
        }

        fn list(&self, _: Resource<'_>, _: Option<&str>) -> Vec<Value> {
            Vec::new()
        }

        fn authorize(&self, _: &Attributes<'_>) -> Verdict {
            unreachable!("claims ask no policy")
        }
    }

    fn claim(class: &str, size: &str, phase: &str) -> Value {
        json!({"metadata": {"name": "c"}, "status": {"phase": phase},
            "spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}}})
    }

    fn refusal(old: &Value, new: &Value) -> Option<String> {
        let user = User::new("u", ["system:authenticated"]);
        let request = Request {
            operation: Operation::Update,
            resource: Resource { group: "", version: "v1", resource: "persistentvolumeclaims" },
            subresource: "",
            kind: Kind { group: "", version: "v1", kind: "PersistentVolumeClaim" },
            namespace: "n",
            name: "c",
            path_name: "c",
            user: &user,
            old: Some(old),
            dry_run: false,
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        assert!(Claims.concerns(&request));
        let mut warnings = Vec::new();
        let mut review = Review::new(request, &Classes, &mut warnings);
        Claims.validate(&mut review, Some(new)).err().map(|status| status.message)
    }

    #[test]
    fn a_bound_claim_grows_where_its_class_lets_it() {
        let grown =
            |class: &str, phase: &str| refusal(&claim(class, "1Gi", phase), &claim(class, "2Gi", phase));
        assert_eq!(grown("grows", "Bound"), None);
        let fixed = "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned pvc can be resized and the \
                     storageclass that provisions the pvc must support resize";
        for class in ["stays", "unknown", ""] {
            assert_eq!(grown(class, "Bound").as_deref(), Some(fixed), "{class}");
        }
        assert_eq!(
            grown("grows", "Pending").as_deref(),
            Some(
                "persistentvolumeclaims \"c\" is forbidden: Only bound persistent volume claims can be expanded"
            )
        );
    }

    #[test]
    fn a_claim_that_does_not_grow_is_not_asked_about() {
        assert_eq!(refusal(&claim("stays", "2Gi", "Bound"), &claim("stays", "1Gi", "Bound")), None);
        assert_eq!(refusal(&claim("stays", "1Gi", "Bound"), &claim("stays", "1024Mi", "Bound")), None);
    }

    #[test]
    fn the_annotation_of_old_names_a_claims_class_before_the_field_does() {
        let mut old = claim("stays", "1Gi", "Bound");
        old["metadata"]["annotations"] = json!({CLASS_ANNOTATION: "grows"});
        let mut new = old.clone();
        new["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
        assert_eq!(refusal(&old, &new), None);
    }
}
