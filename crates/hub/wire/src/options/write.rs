//! Options of create, update and patch.

use super::refuse;
use crate::field_error::{forbidden, invalid, not_supported, required, too_long};
use crate::gotext::{code_point, is_print, quote};
use crate::media::PatchType;
use crate::query::Query;
use crate::status::{Cause, Status};

/// Bytes of a field manager's name.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// What to do about fields that the kind does not know and fields given twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and say so.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of a create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Do everything but keep the result.
    pub dry_run: bool,
    /// Who owns the fields; empty leaves it to the client's name.
    pub field_manager: String,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
}

/// Options of an update: those of a create.
pub type UpdateOptions = CreateOptions;

/// Options of a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// Do everything but keep the result.
    pub dry_run: bool,
    /// Take over fields that others own; apply only.
    pub force: bool,
    /// Who owns the fields; never empty for apply.
    pub field_manager: String,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
}

impl CreateOptions {
    /// Reads and checks the options of a create.
    pub fn parse(query: &Query) -> Result<Self, Status> {
        Self::parse_as(query, "CreateOptions")
    }

    /// Reads and checks the options of an update.
    pub fn parse_update(query: &Query) -> Result<Self, Status> {
        Self::parse_as(query, "UpdateOptions")
    }

    fn parse_as(query: &Query, kind: &str) -> Result<Self, Status> {
        let mut wrong = Vec::new();
        let (dry_run, field_manager, field_validation) = common(query, &mut wrong);
        refuse(kind, &wrong)?;
        Ok(CreateOptions { dry_run, field_manager, field_validation })
    }
}

impl PatchOptions {
    /// Reads and checks the options of a patch of this type.
    pub fn parse(query: &Query, patch: PatchType) -> Result<Self, Status> {
        let mut wrong = Vec::new();
        let force = query.boolean("force");
        match patch {
            PatchType::Apply => {
                if query.get("fieldManager").unwrap_or_default().is_empty() {
                    wrong.push(required("fieldManager", "is required for apply patch"));
                }
            }
            PatchType::Json | PatchType::Merge | PatchType::StrategicMerge => {
                if force.is_some() {
                    wrong.push(forbidden("force", "may not be specified for non-apply patch"));
                }
            }
        }
        let (dry_run, field_manager, field_validation) = common(query, &mut wrong);
        refuse("PatchOptions", &wrong)?;
        Ok(PatchOptions { dry_run, force: force.unwrap_or(false), field_manager, field_validation })
    }
}

fn common(query: &Query, wrong: &mut Vec<Cause>) -> (bool, String, FieldValidation) {
    let field_manager = query.text("fieldManager");
    check_field_manager(&field_manager, wrong);
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    check_dry_run(&dry_run, wrong);
    let validation = match query.get("fieldValidation").unwrap_or_default() {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            wrong.push(not_supported("fieldValidation", &quote(other), &supported));
            FieldValidation::Warn
        }
    };
    (!dry_run.is_empty(), field_manager, validation)
}

fn check_field_manager(name: &str, wrong: &mut Vec<Cause>) {
    if name.len() > FIELD_MANAGER_BYTES_MAX {
        wrong.push(too_long("fieldManager", FIELD_MANAGER_BYTES_MAX));
    }
    for (position, c) in name.char_indices().filter(|(_, c)| !is_print(*c)) {
        let detail = format!("invalid character {} (at position {position})", code_point(c));
        wrong.push(invalid("fieldManager", name, &detail));
    }
}

pub(super) fn check_dry_run(said: &[&str], wrong: &mut Vec<Cause>) {
    if said.iter().any(|value| *value != "All") {
        let shown = serde_json::to_string(said).unwrap_or_default();
        wrong.push(not_supported("dryRun", &shown, &["All"]));
    }
}

/// The manager that a write is put down to: the one it names, or else the beginning of the client's name.
pub fn manager_name(field_manager: &str, user_agent: Option<&str>) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let prefix = user_agent.unwrap_or_default().split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in prefix.chars().filter(|c| is_print(*c)) {
        if name.len() + c.len_utf8() > FIELD_MANAGER_BYTES_MAX {
            break;
        }
        name.push(c);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(Some(text))
    }

    fn create(text: &str) -> Result<CreateOptions, String> {
        CreateOptions::parse(&query(text)).map_err(|status| status.message)
    }

    #[test]
    fn a_write_reads_every_option() {
        let options = create("fieldManager=kubectl-create&fieldValidation=Strict&dryRun=All").unwrap();
        assert_eq!(
            options,
            CreateOptions {
                dry_run: true,
                field_manager: "kubectl-create".into(),
                field_validation: FieldValidation::Strict
            }
        );
        assert_eq!(create("").unwrap().field_validation, FieldValidation::Warn);
    }

    #[test]
    fn values_that_are_not_known_are_refused_with_those_that_are() {
        assert_eq!(
            create("dryRun=Some&dryRun=All").unwrap_err(),
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\",\"All\"]: supported values: \"All\""
        );
        assert_eq!(
            create("fieldValidation=x").unwrap_err(),
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"x\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
        );
        assert!(create("dryRun=").unwrap_err().contains("Unsupported value: [\"\"]"));
    }

    #[test]
    fn a_manager_is_short_and_printable() {
        let long = format!("fieldManager={}", "x".repeat(129));
        assert_eq!(
            create(&long).unwrap_err(),
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes"
        );
        assert_eq!(
            create("fieldManager=a%0Ab").unwrap_err(),
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)"
        );
    }

    #[test]
    fn apply_needs_a_manager_and_only_apply_may_force() {
        let status = PatchOptions::parse(&query(""), PatchType::Apply).unwrap_err();
        assert_eq!(
            status.message,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
        );
        assert_eq!(
            PatchOptions::parse(&query("force=true"), PatchType::Merge).unwrap_err().message,
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
        );
        let options = PatchOptions::parse(&query("force=true&fieldManager=m"), PatchType::Apply).unwrap();
        assert!(options.force);
    }

    #[test]
    fn the_clients_name_stands_in_for_a_manager() {
        assert_eq!(manager_name("m", Some("kubectl/1")), "m");
        assert_eq!(manager_name("", Some("kubectl/v1.32 (linux)")), "kubectl");
        assert_eq!(manager_name("", Some("a\u{1}b")), "ab");
        assert_eq!(manager_name("", Some(&"é".repeat(100))).len(), 128);
        assert_eq!(manager_name("", None), "");
    }
}
