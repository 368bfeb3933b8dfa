use super::*;

const UID: &str = "u-1";

fn read(kind: WebhookKind, review: &Value) -> Result<Answer, String> {
    read_answer("h.example.com", kind, UID, ReviewVersion::V1, review.to_string().as_bytes())
}

fn answer(response: &Value) -> Value {
    let mut response = response.clone();
    response["uid"] = json!(UID);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

fn denied(response: &Value) -> (u16, String, Value) {
    let refusal = read(WebhookKind::Validating, &answer(response)).unwrap().verdict.unwrap_err();
    (refusal.code(), refusal.message(), refusal.status())
}

#[test]
fn a_denial_says_who_and_why_and_never_with_a_success_code() {
    let (code, message, status) = denied(
        &json!({"allowed": false, "status": {"message": "too big", "code": 403, "reason": "Forbidden"}}),
    );
    assert_eq!(
        (code, message.as_str()),
        (403, "admission webhook \"h.example.com\" denied the request: too big")
    );
    assert_eq!(
        status,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403,
               "message": "admission webhook \"h.example.com\" denied the request: too big"})
    );
    let (code, message, _) = denied(&json!({"allowed": false, "status": {"reason": "NoWay", "code": 200}}));
    assert_eq!(
        (code, message.as_str()),
        (400, "admission webhook \"h.example.com\" denied the request: NoWay")
    );
    let (code, message, status) = denied(&json!({"allowed": false}));
    assert_eq!(
        (code, message.as_str()),
        (400, "admission webhook \"h.example.com\" denied the request without explanation")
    );
    assert!(status.get("reason").is_none());
}

#[test]
fn answers_that_break_the_rules_are_failures() {
    let patch = STANDARD.encode("[]");
    for (kind, response, says) in [
        (
            WebhookKind::Mutating,
            json!({"allowed": true, "patch": patch}),
            "webhook returned response.patch but not response.patchType",
        ),
        (
            WebhookKind::Mutating,
            json!({"allowed": true, "patchType": "JSONPatch"}),
            "webhook returned response.patchType but not response.patch",
        ),
        (
            WebhookKind::Mutating,
            json!({"allowed": true, "patch": "%", "patchType": "JSONPatch"}),
            "response.patch is not base64",
        ),
        (
            WebhookKind::Validating,
            json!({"allowed": true, "patch": patch}),
            "validating webhook may not return response.patch",
        ),
        (
            WebhookKind::Validating,
            json!({"allowed": true, "patchType": "JSONPatch"}),
            "validating webhook may not return response.patchType",
        ),
    ] {
        assert_eq!(
            read(kind, &answer(&response)).unwrap_err(),
            format!("received invalid webhook response: {says}")
        );
    }
    let wrong_kind = json!({"apiVersion": "v1", "kind": "Pod", "response": {"uid": UID, "allowed": true}});
    assert_eq!(
        read(WebhookKind::Validating, &wrong_kind).unwrap_err(),
        "received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /v1, Kind=Pod"
    );
    assert_eq!(
        read(WebhookKind::Validating, &json!({})).unwrap_err(),
        "received invalid webhook response: webhook response was absent"
    );
}

#[test]
fn an_empty_patch_is_no_patch_and_a_patch_must_be_a_list() {
    let with =
        |text: &str| json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(text)});
    assert_eq!(read(WebhookKind::Mutating, &answer(&with("[]"))).unwrap().patch, None);
    let operations = json!([{"op": "remove", "path": "/a"}]);
    let given = read(WebhookKind::Mutating, &answer(&with(&operations.to_string()))).unwrap();
    assert_eq!(given.patch, Some(operations));
    assert!(
        read(WebhookKind::Mutating, &answer(&with("{}")))
            .unwrap_err()
            .starts_with("received undecodable patch")
    );
}

#[test]
fn the_old_review_version_is_taken_at_its_word() {
    let body = json!({"response": {"allowed": true, "patch": STANDARD.encode("[1]"), "warnings": ["w"]}})
        .to_string();
    let given =
        read_answer("h", WebhookKind::Mutating, UID, ReviewVersion::V1Beta1, body.as_bytes()).unwrap();
    assert_eq!((given.patch, given.warnings), (Some(json!([1])), vec!["w".to_owned()]));
}
