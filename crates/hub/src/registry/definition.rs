//! One version of a custom resource, compiled from its definition.
//!
//! Owns the compiled schema, rules, columns and paths. Never decides whether a definition is valid: that is checked
//! when it is written, so a version that cannot be compiled here comes from a store that another program wrote.

use berth_hub_kinds::Builtins;
use berth_hub_merge::Versions;
use berth_hub_store::Revision;
use berth_hub_wire::{CustomColumns, MetadataTexts, PrinterColumn};
use berth_schema::{Arena, Node, NodeId, Rules, Schema, Shape};
use serde_json::Value;

/// A served version of a definition.
#[derive(Debug)]
pub struct CustomVersion {
    /// The nodes of the schema.
    pub(crate) arena: Arena,
    /// The root of the schema, as declared.
    pub(crate) root: NodeId,
    /// The root of the schema with the metadata every object has.
    pub(crate) typed_root: NodeId,
    /// The same of every other version of the definition, served or not, by `group/version`.
    pub(crate) others: Vec<(String, NodeId)>,
    /// The schema as written, for OpenAPI.
    pub(crate) schema: Value,
    /// The CEL rules, compiled.
    pub(crate) rules: Rules,
    /// Whether `/status` is served.
    pub(crate) status: bool,
    /// The paths behind `/scale`, when served.
    pub(crate) scale: Option<ScalePaths>,
    /// The path of the replicas in every version of the definition, by `group/version`; none where a version has no scale.
    pub(crate) replicas: Vec<(String, Option<Vec<String>>)>,
    /// The columns of a table.
    pub(crate) columns: CustomColumns,
    /// The paths of fields that may be selected on, each with its leading dot removed.
    pub(crate) selectable: Vec<String>,
    /// What a client is told when it uses this version, if it is deprecated.
    pub(crate) deprecation: Option<String>,
    /// The version objects are stored in, as `group/version`.
    pub(crate) storage_api_version: String,
    /// The root of that version's schema: what it does not know is not kept.
    pub(crate) storage_root: NodeId,
    /// The revision since which the schema is this one, as far as this process knows: objects written before it may lack its
    /// defaults and carry fields it lacks.
    pub(crate) since: Revision,
    /// The revision of the definition that this was compiled from.
    pub(crate) definition_revision: String,
    /// The definition's uid: objects stored under an earlier definition of the same name are not this one's.
    pub(crate) definition_uid: String,
}

/// The three paths of a definition's scale subresource, split at dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// `specReplicasPath`.
    pub spec_replicas: Vec<String>,
    /// `statusReplicasPath`.
    pub status_replicas: Vec<String>,
    /// `labelSelectorPath`.
    pub label_selector: Option<Vec<String>>,
}

impl CustomVersion {
    /// The schema with the metadata every object has, by which fields are owned and merged.
    pub fn typed_schema(&self) -> Schema<'_> {
        self.arena.schema(self.typed_root)
    }

    /// Compiles one entry of `spec.versions`.
    pub fn compile(definition: &Value, version: &Value) -> Result<Self, String> {
        let schema = declared(version);
        let mut arena = Arena::default();
        let root = berth_schema::compile(&mut arena, &schema).map_err(|problems| first(&problems))?;
        let typed_root = typed(&mut arena, root);
        let rules = Rules::compile(arena.schema(root)).map_err(|problems| first(&problems))?;
        let columns: Vec<PrinterColumn> = match version.get("additionalPrinterColumns") {
            Some(columns) => serde_json::from_value(columns.clone()).map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let group = text(definition.pointer("/spec/group"));
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let storage = versions
            .and_then(|versions| versions.iter().find(|version| version["storage"] == true))
            .unwrap_or(version);
        let storage_root = match storage
            .pointer("/schema/openAPIV3Schema")
            .filter(|stored| **stored != schema)
        {
            Some(stored) => berth_schema::compile(&mut arena, stored).map_err(|problems| first(&problems))?,
            None => root,
        };
        let api_version = |name: &Value| format!("{group}/{}", name.as_str().unwrap_or_default());
        let mut others = Vec::new();
        for other in versions.into_iter().flatten().filter(|other| other["name"] != version["name"]) {
            let declared = declared(other);
            let other_root = if declared == schema {
                typed_root
            } else {
                let root =
                    berth_schema::compile(&mut arena, &declared).map_err(|problems| first(&problems))?;
                typed(&mut arena, root)
            };
            others.push((api_version(&other["name"]), other_root));
        }
        let deprecation = (version["deprecated"] == true).then(|| {
            version.get("deprecationWarning").and_then(Value::as_str).map_or_else(
                || {
                    format!(
                        "{} {} is deprecated",
                        api_version(&version["name"]),
                        text(definition.pointer("/spec/names/kind"))
                    )
                },
                str::to_owned,
            )
        });
        Ok(Self {
            root,
            typed_root,
            others,
            rules,
            schema,
            status: version.pointer("/subresources/status").is_some(),
            scale: version.pointer("/subresources/scale").map(ScalePaths::read),
            replicas: versions
                .into_iter()
                .flatten()
                .map(|version| {
                    let scale = version.pointer("/subresources/scale").map(ScalePaths::read);
                    (api_version(&version["name"]), scale.map(|paths| paths.spec_replicas))
                })
                .collect(),
            columns: CustomColumns::compile(&columns, MetadataTexts::default())?,
            selectable: version
                .get("selectableFields")
                .and_then(Value::as_array)
                .map(|fields| {
                    fields
                        .iter()
                        .map(|field| text(field.get("jsonPath")).trim_start_matches('.').to_owned())
                        .collect()
                })
                .unwrap_or_default(),
            deprecation,
            storage_api_version: api_version(&storage["name"]),
            storage_root,
            since: Revision(
                text(definition.pointer("/metadata/resourceVersion")).parse().unwrap_or(u64::MAX),
            ),
            definition_revision: text(definition.pointer("/metadata/resourceVersion")),
            definition_uid: text(definition.pointer("/metadata/uid")),
            arena,
        })
    }
}

impl Versions for CustomVersion {
    fn schema(&self, version: &str) -> Option<Schema<'_>> {
        let (_, root) = self.others.iter().find(|(known, _)| known == version)?;
        Some(self.arena.schema(*root))
    }

    /// Unlike built-in kinds, a definition does not forget a version silently.
    fn refusal(&self, version: &str) -> Option<String> {
        Some(format!("request to convert CR to an invalid group/version: {version}"))
    }
}

impl ScalePaths {
    fn read(scale: &Value) -> Self {
        let path = |key: &str| {
            scale
                .get(key)
                .and_then(Value::as_str)
                .map(|path| path.trim_start_matches('.').split('.').map(str::to_owned).collect::<Vec<_>>())
        };
        Self {
            spec_replicas: path("specReplicasPath").unwrap_or_default(),
            status_replicas: path("statusReplicasPath").unwrap_or_default(),
            label_selector: path("labelSelectorPath"),
        }
    }
}

/// The schema that a version declares.
fn declared(version: &Value) -> Value {
    version
        .pointer("/schema/openAPIV3Schema")
        .cloned()
        .unwrap_or_else(|| serde_json::json!({"type": "object"}))
}

/// The root with `apiVersion`, `kind` and the fields of `metadata` that every object has.
fn typed(arena: &mut Arena, root: NodeId) -> NodeId {
    let builtins = Builtins::load();
    let object =
        builtins.types.find("meta.v1.ObjectMeta").expect("every kind has this metadata, so the table has it");
    let metadata = arena.graft(builtins.schema(object));
    let text = arena.add(Node { shape: Shape::String, ..Node::default() });
    let mut node = arena.schema(root).node().clone();
    node.properties.insert("metadata".into(), metadata);
    node.properties.insert("apiVersion".into(), text);
    node.properties.insert("kind".into(), text);
    arena.add(node)
}

fn first(problems: &[berth_schema::Problem]) -> String {
    problems.first().map_or_else(|| "the schema cannot be read".to_owned(), ToString::to_string)
}
