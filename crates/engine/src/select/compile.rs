//! From a Placement object to a [`Rule`], with every complaint there is.
//!
//! Owns what counts as misconfigured. Each complaint names the field and says what is allowed; the first one, in the
//! order upstream would meet them, becomes the message of the `PlacementMisconfigured` condition in upstream's form
//! (`<plugin>:<message>`). It never looks at a fleet: an object is misconfigured or not whatever the clusters are.

use std::sync::Arc;

use berth_api::{
    ClusterClaimSelector, ClusterPredicate, GroupStrategy, Placement, PrioritizerConfig, PrioritizerMode,
    ScoreCoordinateType, SortBy, SpreadConstraint, TaintEffect, TopologyKeyType, UnsatisfiableAction,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;

use super::mistake::Mistake;
use super::rule::{Details, GroupSize, Groups, Order, Prioritizer, Rule, SpreadTerm, Topology};
use crate::selector::{BadSelector, Expression, Facet, Requirement, Term, from_claims, from_label_selector};
use crate::taint::{ClusterEffect, Operator, Toleration};

/// The longest placement name that can work: decisions carry it as a label value.
pub const NAME_CHARS_MAX: usize = 63;
/// Asks for optional fields in decisions: a comma separated list out of `score` and `available`.
pub const DETAILS_ANNOTATION: &str = "berth.dev/decision-details";
/// How much a `PreferNoSelect` taint weighs unless the policy says otherwise: more than Steady, so that the wish to
/// leave a shunned cluster wins over the wish to stay; a built-in named in the policy overrides it.
const PREFER_NO_SELECT_WEIGHT: i64 = 2;
/// What spread constraints weigh in Additive mode unless the policy says otherwise.
const SPREAD_WEIGHT: i64 = 2;

/// Something in a Placement that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    /// The field, `spec.tolerations[0].value`.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
    /// The stage that upstream would name; empty for policies and groups.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub plugin: &'static str,
    /// What kind it is of; none for a hint, with which a placement works.
    #[serde(skip)]
    pub mistake: Option<Mistake>,
}

impl Complaint {
    /// The complaint in the form of upstream's condition message.
    pub fn condition_message(&self) -> String {
        format!("{}:{}", self.plugin, self.message)
    }
}

/// Reads a Placement; on failure all complaints, the weightiest first.
pub fn compile(placement: &Placement) -> Result<Rule, Vec<Complaint>> {
    let mut reader = Reader { complaints: Vec::new(), hints: Vec::new() };
    let spec = &placement.spec;
    // The order of these calls is the order in which upstream would stumble.
    let predicates = reader.predicates(spec.predicates.as_deref().unwrap_or_default());
    let tolerations = reader.tolerations(spec.tolerations.as_deref().unwrap_or_default());
    let spread = reader.spread(
        spec.spread_policy
            .as_ref()
            .and_then(|policy| policy.spread_constraints.as_deref())
            .unwrap_or_default(),
    );
    let weights = reader.weights(placement, !spread.is_empty());
    let anti_affinity = spec
        .anti_affinity
        .as_ref()
        .and_then(|anti| reader.topology("spec.antiAffinity", &anti.topology_key, &anti.topology_key_type));
    let groups =
        reader.groups(spec.decision_strategy.as_ref().and_then(|strategy| strategy.group_strategy.as_ref()));
    let count = reader.count(spec.number_of_clusters);
    let order = reader.order(spec.sort_by.as_ref());
    let details = reader.details(placement);
    reader.name(placement.metadata.name.as_deref().unwrap_or_default());
    if !reader.complaints.is_empty() {
        return Err(reader.complaints);
    }
    Ok(Rule {
        count,
        predicates,
        tolerations,
        weights,
        spread,
        anti_affinity,
        groups,
        order,
        details,
        hints: reader.hints.into(),
    })
}

struct Reader {
    complaints: Vec<Complaint>,
    hints: Vec<Complaint>,
}

impl Reader {
    fn complain(&mut self, mistake: Mistake, path: impl Into<String>, message: impl Into<String>) {
        self.complaints.push(Complaint {
            path: path.into(),
            message: message.into(),
            plugin: mistake.plugin(),
            mistake: Some(mistake),
        });
    }

    fn hint(&mut self, plugin: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.hints.push(Complaint { path: path.into(), message: message.into(), plugin, mistake: None });
    }

    fn requirements(
        &mut self,
        mistake: Mistake,
        path: &str,
        parsed: Result<Vec<Requirement>, Vec<BadSelector>>,
    ) -> Vec<Requirement> {
        parsed.unwrap_or_else(|bad| {
            for bad in bad {
                self.complain(mistake, format!("{path}.{}", bad.path), bad.message);
            }
            Vec::new()
        })
    }

    fn labels(&mut self, mistake: Mistake, path: &str, selector: Option<&LabelSelector>) -> Vec<Requirement> {
        selector.map_or_else(Vec::new, |selector| {
            self.requirements(mistake, &format!("{path}.labelSelector"), from_label_selector(selector))
        })
    }

    fn claims(
        &mut self,
        mistake: Mistake,
        path: &str,
        selector: Option<&ClusterClaimSelector>,
    ) -> Vec<Requirement> {
        selector.map_or_else(Vec::new, |selector| {
            let expressions = selector.match_expressions.as_deref().unwrap_or_default();
            self.requirements(
                mistake,
                &format!("{path}.claimSelector"),
                from_claims(selector.match_claims.as_ref(), expressions),
            )
        })
    }

    fn predicates(&mut self, predicates: &[ClusterPredicate]) -> Box<[Arc<Term>]> {
        use Mistake::{PredicateClaims, PredicateExpression, PredicateLabels};
        let mut terms = Vec::with_capacity(predicates.len());
        for (index, predicate) in predicates.iter().enumerate() {
            let flat = format!("spec.predicates[{index}]");
            let nested = format!("{flat}.requiredClusterSelector");
            let mut requirements = self.labels(PredicateLabels, &flat, predicate.label_selector.as_ref());
            requirements.extend(self.claims(PredicateClaims, &flat, predicate.claim_selector.as_ref()));
            let mut names = predicate
                .cluster_name
                .as_deref()
                .filter(|name| !name.is_empty())
                .map(|name| vec![Box::<str>::from(name)]);
            let mut expressions = Vec::new();
            if let Some(selector) = &predicate.required_cluster_selector {
                requirements.extend(self.labels(PredicateLabels, &nested, selector.label_selector.as_ref()));
                requirements.extend(self.claims(PredicateClaims, &nested, selector.claim_selector.as_ref()));
                if let Some(listed) = &selector.cluster_names {
                    let listed = listed.iter().map(|name| Box::<str>::from(name.as_str()));
                    names = Some(match names {
                        None => listed.collect(),
                        // Both forms are given: only what both name.
                        Some(flat) => listed.filter(|name| flat.contains(name)).collect(),
                    });
                }
                let sources =
                    selector.cel_selector.iter().flat_map(|cel| cel.cel_expressions.iter().flatten());
                for (place, source) in sources.enumerate() {
                    match Expression::compile(source) {
                        Ok(expression) => expressions.push(expression),
                        Err(error) => self.complain(
                            PredicateExpression,
                            format!("{nested}.celSelector.celExpressions[{place}]"),
                            error,
                        ),
                    }
                }
            }
            requirements.sort_unstable();
            requirements.dedup();
            let names = names.map(|mut names| {
                names.sort_unstable();
                names.dedup();
                names.into_boxed_slice()
            });
            terms.push(Arc::new(Term {
                requirements: requirements.into(),
                names,
                expressions: expressions.into(),
            }));
        }
        terms.into()
    }

    fn tolerations(&mut self, tolerations: &[berth_api::Toleration]) -> Arc<[Toleration<ClusterEffect>]> {
        const PLUGIN: &str = Mistake::TolerationValue.plugin();
        let mut read = Vec::with_capacity(tolerations.len());
        for (index, toleration) in tolerations.iter().enumerate() {
            let at = |field: &str| format!("spec.tolerations[{index}].{field}");
            let operator =
                Operator::parse(toleration.operator.as_ref().map_or("", |operator| operator.as_str()));
            if toleration.key().is_empty() && operator != Operator::Exists {
                self.complain(
                    Mistake::TolerationKey,
                    at("operator"),
                    "If the key is empty, operator must be Exists.",
                );
            }
            if operator == Operator::Exists && !toleration.value().is_empty() {
                self.complain(
                    Mistake::TolerationValue,
                    at("value"),
                    "If the operator is Exists, the value should be empty.",
                );
            }
            // For clusters the numeric operators of nodes do not exist; like any unknown one they match nothing.
            let operator = match operator {
                Operator::Equal | Operator::Exists => operator,
                unknown => {
                    let unknown = unknown.to_string();
                    self.hint(
                        PLUGIN,
                        at("operator"),
                        format!("unknown operator {unknown:?} tolerates nothing; allowed are \"Equal\" and \"Exists\""),
                    );
                    Operator::Other(unknown.into())
                }
            };
            let effect = toleration.effect().map(|effect| ClusterEffect::parse(effect.as_str()));
            if let Some(ClusterEffect::Other(text)) = &effect {
                let known = TaintEffect::KNOWN.join(", ");
                self.hint(
                    PLUGIN,
                    at("effect"),
                    format!("unknown effect {text:?} tolerates nothing; allowed are {known}"),
                );
            }
            read.push(Toleration {
                key: toleration.key().into(),
                operator,
                value: toleration.value().into(),
                effect,
                seconds: toleration.toleration_seconds,
            });
        }
        read.into()
    }

    fn weights(&mut self, placement: &Placement, spreads: bool) -> Box<[(Prioritizer, i64)]> {
        let path = "spec.prioritizerPolicy";
        let policy = placement.spec.prioritizer_policy.as_ref();
        let mode = policy.map_or(PrioritizerMode::Additive, berth_api::PrioritizerPolicy::mode);
        let mut weights = match mode {
            PrioritizerMode::Additive => {
                let mut weights = vec![(Prioritizer::Balance, 1), (Prioritizer::Steady, 1)];
                if spreads {
                    weights.push((Prioritizer::Spread, SPREAD_WEIGHT));
                }
                weights
            }
            PrioritizerMode::Exact => Vec::new(),
            PrioritizerMode::Other(other) => {
                self.complain(
                    Mistake::PolicyMode,
                    format!("{path}.mode"),
                    format!(
                        "incorrect prioritizer policy mode: {other}; allowed are \"Additive\" and \"Exact\""
                    ),
                );
                Vec::new()
            }
        };
        // The effect of a taint, not a preference of the policy: it holds in either mode until the policy names it.
        weights.push((Prioritizer::PreferNoSelect, PREFER_NO_SELECT_WEIGHT));
        for (index, configuration) in
            policy.iter().flat_map(|policy| policy.configurations.iter().flatten()).enumerate()
        {
            let at = format!("{path}.configurations[{index}]");
            let weight = configuration.weight();
            if !(berth_api::prioritizer::WEIGHT_MIN..=berth_api::prioritizer::WEIGHT_MAX).contains(&weight) {
                self.complain(
                    Mistake::Weight,
                    format!("{at}.weight"),
                    format!("weight {weight} must be from -10 to 10"),
                );
                continue;
            }
            match prioritizer(configuration) {
                Ok(prioritizer @ Prioritizer::AddOn { .. }) => weights.push((prioritizer, i64::from(weight))),
                Ok(prioritizer) => {
                    weights.retain(|(other, _)| *other != prioritizer);
                    weights.push((prioritizer, i64::from(weight)));
                }
                // Upstream drops what weighs nothing before it looks at the name.
                Err(_) if weight == 0 => {}
                Err((mistake, field, message)) => self.complain(mistake, format!("{at}{field}"), message),
            }
        }
        weights.retain(|(_, weight)| *weight != 0);
        // A fixed order makes equal policies equal. Entries for the same score stay separate: each counts.
        weights.sort_by(|one, other| one.0.cmp(&other.0));
        weights.into()
    }

    fn topology(&mut self, path: &str, key: &str, facet: &TopologyKeyType) -> Option<Topology> {
        let facet = match facet {
            TopologyKeyType::Label => Facet::Label,
            TopologyKeyType::Claim => Facet::Claim,
            TopologyKeyType::Other(other) => {
                self.complain(
                    Mistake::TopologyKeyType,
                    format!("{path}.topologyKeyType"),
                    format!("unknown topology key type {other:?}; allowed are \"Label\" and \"Claim\""),
                );
                return None;
            }
        };
        if key.is_empty() {
            self.complain(Mistake::TopologyKey, format!("{path}.topologyKey"), "a topology key is required");
            return None;
        }
        Some(Topology { facet, key: key.into() })
    }

    fn spread(&mut self, constraints: &[SpreadConstraint]) -> Box<[SpreadTerm]> {
        if constraints.len() > berth_api::topology::SPREAD_CONSTRAINTS_MAX as usize {
            self.complain(
                Mistake::SpreadConstraints,
                "spec.spreadPolicy.spreadConstraints",
                format!("at most {} constraints", berth_api::topology::SPREAD_CONSTRAINTS_MAX),
            );
        }
        let mut terms = Vec::with_capacity(constraints.len());
        for (index, constraint) in constraints.iter().enumerate() {
            let path = format!("spec.spreadPolicy.spreadConstraints[{index}]");
            let skew = usize::try_from(constraint.max_skew()).ok().filter(|skew| *skew > 0);
            if skew.is_none() {
                self.complain(
                    Mistake::SpreadSkew,
                    format!("{path}.maxSkew"),
                    format!("maxSkew {} must be at least 1", constraint.max_skew()),
                );
            }
            let hard = match constraint.when_unsatisfiable() {
                UnsatisfiableAction::DoNotSchedule => true,
                UnsatisfiableAction::ScheduleAnyway => false,
                UnsatisfiableAction::Other(other) => {
                    self.complain(
                        Mistake::SpreadAction,
                        format!("{path}.whenUnsatisfiable"),
                        format!(
                            "unknown action {other:?}; allowed are \"DoNotSchedule\" and \"ScheduleAnyway\""
                        ),
                    );
                    continue;
                }
            };
            let topology = self.topology(&path, &constraint.topology_key, &constraint.topology_key_type);
            if let (Some(topology), Some(max_skew)) = (topology, skew) {
                terms.push(SpreadTerm { topology, max_skew, hard });
            }
        }
        terms.into()
    }

    fn groups(&mut self, strategy: Option<&GroupStrategy>) -> Groups {
        let path = "spec.decisionStrategy.groupStrategy";
        let mut size = GroupSize::Percent(100);
        match strategy.and_then(|strategy| strategy.clusters_per_decision_group.as_ref()) {
            None => {}
            // Upstream reads a length that makes no sense as "all".
            Some(IntOrString::Int(count)) => {
                size = usize::try_from(*count).ok().filter(|count| *count > 0).map_or(size, GroupSize::Count);
            }
            Some(IntOrString::String(text)) => match parse_percent(text) {
                Some(percent) => size = GroupSize::Percent(percent),
                None => self.complain(
                    Mistake::GroupSize,
                    format!("{path}.clustersPerDecisionGroup"),
                    format!("group size {text:?}: invalid type: string is not a percentage; allowed are a number of clusters (without quotes) or \"1%\" to \"100%\""),
                ),
            },
        }
        let mut named = Vec::new();
        let groups = strategy.and_then(|strategy| strategy.decision_groups.as_deref()).unwrap_or_default();
        for (index, group) in groups.iter().enumerate() {
            let path = format!("{path}.decisionGroups[{index}].groupClusterSelector");
            let selector = &group.group_cluster_selector;
            let mut requirements = self.labels(Mistake::GroupLabels, &path, selector.label_selector.as_ref());
            requirements.extend(self.claims(Mistake::GroupClaims, &path, selector.claim_selector.as_ref()));
            let term = Term { requirements: requirements.into(), ..Term::default() };
            named.push((Arc::from(group.group_name.as_str()), term));
        }
        Groups { size, named: named.into() }
    }

    fn count(&mut self, count: Option<i32>) -> Option<usize> {
        let count = count?;
        let read = usize::try_from(count).ok();
        if read.is_none() {
            self.complain(
                Mistake::NumberOfClusters,
                "spec.numberOfClusters",
                format!("numberOfClusters {count} must not be negative; leave it out to select every cluster that fits"),
            );
        }
        read
    }

    fn order(&mut self, order: Option<&SortBy>) -> Order {
        match order {
            Some(SortBy::Score) => Order::Score,
            None | Some(SortBy::ClusterName) => Order::Name,
            Some(SortBy::Other(other)) if other.is_empty() => Order::Name,
            Some(SortBy::Other(other)) => {
                self.complain(
                    Mistake::SortBy,
                    "spec.sortBy",
                    format!("unknown order {other:?}; allowed are \"ClusterName\" and \"Score\""),
                );
                Order::Name
            }
        }
    }

    fn details(&mut self, placement: &Placement) -> Details {
        let mut details = Details::default();
        let asked = placement.metadata.annotations.as_ref().and_then(|all| all.get(DETAILS_ANNOTATION));
        for word in
            asked.iter().flat_map(|words| words.split(',')).map(str::trim).filter(|word| !word.is_empty())
        {
            match word {
                "score" => details.score = true,
                "available" => details.available = true,
                other => self.complain(
                    Mistake::Details,
                    format!("metadata.annotations[{DETAILS_ANNOTATION}]"),
                    format!("unknown detail {other:?}; allowed are \"score\" and \"available\""),
                ),
            }
        }
        details
    }

    fn name(&mut self, name: &str) {
        let chars = name.chars().count();
        if chars > NAME_CHARS_MAX {
            self.complain(
                Mistake::Name,
                "metadata.name",
                format!("the name has {chars} characters; at most {NAME_CHARS_MAX} can work, because decisions carry it as a label value"),
            );
        }
    }
}

fn prioritizer(configuration: &PrioritizerConfig) -> Result<Prioritizer, (Mistake, &'static str, String)> {
    let Some(kind) = configuration.score_coordinate.as_ref().map_or_else(
        || configuration.name.as_ref().map(|_| ScoreCoordinateType::BuiltIn),
        |_| Some(configuration.score_type()),
    ) else {
        return Err((
            Mistake::ScoreCoordinate,
            ".scoreCoordinate",
            "scoreCoordinate field is required".into(),
        ));
    };
    match kind {
        ScoreCoordinateType::BuiltIn | ScoreCoordinateType::BuildIn => {
            let name = configuration.built_in().unwrap_or_default();
            Prioritizer::built_in(name).ok_or_else(|| {
                let known = Prioritizer::BUILT_IN.join(", ");
                (
                    Mistake::BuiltIn,
                    ".scoreCoordinate.builtIn",
                    format!("incorrect builtin prioritizer: {name}; allowed are {known}"),
                )
            })
        }
        ScoreCoordinateType::AddOn => {
            let add_on =
                configuration.score_coordinate.as_ref().and_then(|coordinate| coordinate.add_on.as_ref());
            let add_on = add_on.ok_or((
                Mistake::AddOn,
                ".scoreCoordinate.addOn",
                "addOn should not be empty".to_owned(),
            ))?;
            Ok(Prioritizer::AddOn {
                resource: add_on.resource_name.as_str().into(),
                score: add_on.score_name.as_str().into(),
            })
        }
        ScoreCoordinateType::Other(other) => Err((
            Mistake::ScoreType,
            ".scoreCoordinate.type",
            format!("incorrect score coordinate type: {other}; allowed are \"BuiltIn\" and \"AddOn\""),
        )),
    }
}

/// `"25%"` as 25. Upstream takes any whole number before the sign; what is not a part of the whole is cut to it.
fn parse_percent(text: &str) -> Option<u8> {
    let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
    Some(u8::try_from(percent.clamp(0, 100)).expect("clamped to 0..=100"))
        .map(|percent| if percent == 0 { 100 } else { percent })
}
