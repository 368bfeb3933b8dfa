//! Room on nodes: what pods ask for, and what a node has left.
//!
//! Owns how amounts are counted, which is how Kubernetes' scheduler counts them: processors by the thousandth, everything else by
//! the piece, both rounded up. What cannot be read is not known, and nothing is assumed for it.

use std::collections::BTreeMap;

use berth_text::quantity::{Number, Suffix};
use serde_json::Value;

/// The resource that every pod takes one of.
const PODS: &str = "pods";
/// The resource that is counted by the thousandth.
const CPU: &str = "cpu";
/// The most digits of a number that are read: amounts are 64 bits wide, which is 19 digits.
const DIGITS_MAX: usize = 19;

/// Amounts of resources by their names, in order: thousandths of processors, and whole units of all else.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amounts(Vec<(Box<str>, i64)>);

impl Amounts {
    /// Reads amounts as they are written; `None` where one of them is no amount.
    pub fn read<'a>(written: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut read = Self::default();
        for (name, amount) in written {
            *read.of_mut(name) = amount_of(name, amount)?;
        }
        Some(read)
    }

    /// How much there is of a resource.
    pub fn of(&self, name: &str) -> i64 {
        self.place(name).map_or(0, |place| self.0[place].1)
    }

    /// Whether nothing is said of any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    fn of_mut(&mut self, name: &str) -> &mut i64 {
        let place = self.place(name).unwrap_or_else(|place| {
            self.0.insert(place, (name.into(), 0));
            place
        });
        &mut self.0[place].1
    }

    fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.of_mut(name);
            *sum = sum.saturating_add(*amount);
        }
    }

    fn take(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.of_mut(name);
            *sum = sum.saturating_sub(*amount);
        }
    }

    fn at_least(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.of_mut(name);
            *most = (*most).max(*amount);
        }
    }

    fn put(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.of_mut(name) = *amount;
        }
    }
}

/// A container, as far as room goes.
#[derive(Clone, Debug, Default)]
pub struct Container {
    /// What it asks for.
    pub requests: Amounts,
    /// Whether it is one that comes before the others and stays beside them.
    pub stays: bool,
}

/// What a pod asks for: its containers together, or what its beginning takes where that is more, and what running it takes.
/// `whole` is what the pod asks for as one, which counts in place of what its containers do.
pub fn requests(
    first: &[Container],
    containers: &[Container],
    overhead: &Amounts,
    whole: &Amounts,
) -> Amounts {
    let mut together = Amounts::default();
    for container in containers {
        together.add(&container.requests);
    }
    let (mut beside, mut most) = (Amounts::default(), Amounts::default());
    for container in first {
        if container.stays {
            beside.add(&container.requests);
            most.at_least(&beside);
        } else {
            let mut at_once = beside.clone();
            at_once.add(&container.requests);
            most.at_least(&at_once);
        }
    }
    together.add(&beside);
    together.at_least(&most);
    together.put(whole);
    together.add(overhead);
    together
}

/// What a pod that was read whole asks for; `None` where that cannot be understood.
pub(super) fn requests_of(spec: &Value) -> Option<Amounts> {
    let amounts = |value: &Value| -> Option<Amounts> {
        let mut written = Vec::new();
        for (name, amount) in value.as_object().into_iter().flatten() {
            let text = amount.as_str().map(str::to_owned);
            written.push((name.as_str(), text.or_else(|| Some(amount.as_number()?.to_string()))?));
        }
        Amounts::read(written.iter().map(|(name, amount)| (*name, amount.as_str())))
    };
    let containers = |field: &str| -> Option<Vec<Container>> {
        let list = spec[field].as_array().into_iter().flatten();
        let read = |container: &Value| {
            let requests = amounts(&container["resources"]["requests"])?;
            Some(Container { requests, stays: container["restartPolicy"] == "Always" })
        };
        list.map(read).collect()
    };
    Some(requests(
        &containers("initContainers")?,
        &containers("containers")?,
        &amounts(&spec["overhead"])?,
        &amounts(&spec["resources"]["requests"])?,
    ))
}

/// What is taken of a node by the pods that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pods: i64,
    amounts: Amounts,
    /// Pods of which nobody knows what they ask for.
    unknown: usize,
}

impl Used {
    /// A pod is there that asks for so much; `None` where nobody knows.
    pub fn come(&mut self, requests: Option<&Amounts>) {
        self.pods += 1;
        match requests {
            Some(requests) => self.amounts.add(requests),
            None => self.unknown += 1,
        }
    }

    /// A pod that was there is no more.
    pub fn go(&mut self, requests: Option<&Amounts>) {
        self.pods -= 1;
        match requests {
            Some(requests) => self.amounts.take(requests),
            None => self.unknown -= 1,
        }
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.pods == 0
    }
}

/// What speaks against there being room.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lack<'r> {
    /// There is too little of this.
    Of(&'r str),
    /// What the node has is not known.
    Allocatable,
    /// What is taken of it is not known.
    Requests,
}

/// Whether a node that has so much, of which so much is taken, has room for a pod that asks for so much.
pub(super) fn lack<'r>(
    allocatable: &BTreeMap<String, String>,
    used: &Used,
    wanted: &'r Amounts,
) -> Option<Lack<'r>> {
    let has = Amounts::read(allocatable.iter().map(|(name, amount)| (name.as_str(), amount.as_str())));
    let Some(has) = has.filter(|has| !has.is_empty()) else { return Some(Lack::Allocatable) };
    if used.pods >= has.of(PODS) {
        return Some(Lack::Of(PODS));
    }
    let is_short = |(name, amount): &&(Box<str>, i64)| {
        *amount > 0 && has.of(name).saturating_sub(used.amounts.of(name)) < *amount
    };
    let short = wanted.0.iter().find(is_short).map(|(name, _)| Lack::Of(name));
    let is_known = used.unknown == 0 || wanted.0.iter().all(|(_, amount)| *amount <= 0);
    short.or_else(|| (!is_known).then_some(Lack::Requests))
}

/// An amount as the scheduler counts it; `None` where it is none.
fn amount_of(name: &str, text: &str) -> Option<i64> {
    let (number, suffix) = Number::split(text);
    let digits = format!("{}{}", number.whole, number.fraction);
    let digits = digits.trim_start_matches('0');
    if number.whole.is_empty() && number.fraction.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    // What is left of a whole number by a fraction, as a power of ten.
    let behind = i32::try_from(number.fraction.len()).ok()?;
    let value: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let unit = if name == CPU { 3 } else { 0 };
    let (value, ten) = match Suffix::read(suffix).ok()? {
        Suffix::Decimal(power) | Suffix::Exponent(power) => (value, power),
        Suffix::Binary(power) => (value.checked_mul(1_i128.checked_shl(power)?)?, 0),
    };
    let ten = ten.checked_add(unit)?.checked_sub(behind)?;
    let power = 10_i128.checked_pow(ten.unsigned_abs());
    let whole = match (power, ten < 0) {
        (Some(power), false) => value.checked_mul(power)?,
        (Some(power), true) => value / power + i128::from(value % power != 0),
        (None, true) => i128::from(value != 0),
        (None, false) => return (value == 0).then_some(0),
    };
    i64::try_from(if number.negative { -whole } else { whole }).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_counted_as_the_scheduler_counts_them() {
        for (name, text, amount) in [
            ("cpu", "2", Some(2_000)),
            ("cpu", "250m", Some(250)),
            ("cpu", "0.1", Some(100)),
            ("cpu", "1n", Some(1)),
            ("memory", "1Ki", Some(1_024)),
            ("memory", "1.5Gi", Some(1_610_612_736)),
            ("memory", "128974848", Some(128_974_848)),
            ("memory", "129e6", Some(129_000_000)),
            ("memory", "1500m", Some(2)),
            ("memory", "0", Some(0)),
            ("memory", "0.0", Some(0)),
            ("memory", "1e-40", Some(1)),
            ("memory", "8Ei", None),
            ("memory", "1e40", None),
            ("memory", "much", None),
            ("memory", "", None),
            ("memory", "99999999999999999999", None),
        ] {
            assert_eq!(amount_of(name, text), amount, "{name} {text}");
        }
    }

    #[test]
    fn a_pod_asks_for_the_most_that_it_takes_at_any_time() {
        let with = |cpu: &str, stays: bool| {
            let mut container = json!({"resources": {"requests": {"cpu": cpu}}});
            if stays {
                container["restartPolicy"] = json!("Always");
            }
            container
        };
        let cpu = |spec: Value| requests_of(&spec).map(|requests| requests.of(CPU));
        let two = json!([with("1", false), with("500m", false)]);
        assert_eq!(cpu(json!({"containers": two})), Some(1_500));
        assert_eq!(cpu(json!({"containers": two, "initContainers": [with("2", false)]})), Some(2_000));
        assert_eq!(cpu(json!({"containers": two, "initContainers": [with("1", true)]})), Some(2_500));
        let both = json!([with("1", true), with("2", false)]);
        assert_eq!(cpu(json!({"containers": two, "initContainers": both})), Some(3_000));
        assert_eq!(cpu(json!({"containers": two, "overhead": {"cpu": "100m"}})), Some(1_600));
        assert_eq!(cpu(json!({"containers": two, "resources": {"requests": {"cpu": 1}}})), Some(1_000));
        assert_eq!(cpu(json!({"containers": [with("some", false)]})), None, "nobody knows how much that is");
        assert_eq!(cpu(json!({})), Some(0));
    }

    #[test]
    fn room_is_what_a_node_has_without_what_its_pods_ask_for() {
        let amounts = |cpu: &str| Amounts::read([("cpu", cpu)]).unwrap();
        let has = |cpu: &str, pods: &str| {
            BTreeMap::from([("cpu".to_owned(), cpu.to_owned()), ("pods".to_owned(), pods.to_owned())])
        };
        let mut used = Used::default();
        used.come(Some(&amounts("3")));
        assert_eq!(lack(&has("4", "10"), &used, &amounts("1")), None);
        assert_eq!(lack(&has("4", "10"), &used, &amounts("1001m")), Some(Lack::Of("cpu")));
        assert_eq!(lack(&has("4", "1"), &used, &amounts("0")), Some(Lack::Of("pods")));
        assert_eq!(lack(&BTreeMap::new(), &used, &amounts("1")), Some(Lack::Allocatable));
        assert_eq!(lack(&has("lots", "10"), &used, &amounts("1")), Some(Lack::Allocatable));
        let gpu = Amounts::read([("example.org/gpu", "1")]).unwrap();
        assert_eq!(lack(&has("4", "10"), &used, &gpu), Some(Lack::Of("example.org/gpu")));
        used.come(None);
        assert_eq!(lack(&has("4", "10"), &used, &amounts("1")), Some(Lack::Requests));
        assert_eq!(
            lack(&has("4", "10"), &used, &amounts("2")),
            Some(Lack::Of("cpu")),
            "whatever it asks for"
        );
        assert_eq!(lack(&has("4", "10"), &used, &amounts("0")), None, "who asks for nothing takes nothing");
        used.go(None);
        used.go(Some(&amounts("3")));
        assert_eq!((used.is_empty(), lack(&has("4", "10"), &used, &amounts("4"))), (true, None));
    }
}
