//! Named formats of texts: `format.dns1123Label().validate(name)`.
//!
//! Each format answers with what is wrong with a text, or with nothing. The words about names are Kubernetes'.

use berth_text::names::{self, NameRule};
use jiff::civil::Date;

use crate::error::EvalError;
use crate::eval::Context;
use crate::function::{Native, Outcome, Row};
use crate::library::time;
use crate::library::url::Url;
use crate::value::Value;

const TYPE: &str = "() -> kubernetes.NamedFormat";

pub(crate) const ROWS: &[Row] = &[
    ("format.named", "format-named", "(string) -> optional(kubernetes.NamedFormat)", named),
    ("validate", "format-validate", "kubernetes.NamedFormat.(string) -> optional(list(string))", validate),
    row::<0>("format.dns1123Label"),
    row::<1>("format.dns1123Subdomain"),
    row::<2>("format.dns1035Label"),
    row::<3>("format.qualifiedName"),
    row::<4>("format.dns1123LabelPrefix"),
    row::<5>("format.dns1123SubdomainPrefix"),
    row::<6>("format.dns1035LabelPrefix"),
    row::<7>("format.labelValue"),
    row::<8>("format.uri"),
    row::<9>("format.uuid"),
    row::<10>("format.byte"),
    row::<11>("format.date"),
    row::<12>("format.datetime"),
];

/// The function that gives the format at a place of [`FORMATS`].
const fn row<const INDEX: usize>(name: &'static str) -> Row {
    let native: Native = |_, _| Ok(Value::Format(&FORMATS[INDEX]));
    (name, name, TYPE, native)
}

/// A format that texts can be checked against.
#[derive(Debug)]
pub struct NamedFormat {
    /// The name Kubernetes gives it.
    pub name: &'static str,
    /// The name it is looked up by.
    key: &'static str,
    /// The length of the pattern that checking is charged for.
    pub(crate) pattern_size: u64,
    check: fn(&str) -> Vec<String>,
}

static FORMATS: [NamedFormat; 13] = [
    NamedFormat { name: "DNS1123Label", key: "dns1123Label", pattern_size: 30, check: names::dns_label },
    NamedFormat {
        name: "DNS1123Subdomain",
        key: "dns1123Subdomain",
        pattern_size: 60,
        check: names::dns_subdomain,
    },
    NamedFormat { name: "DNS1035Label", key: "dns1035Label", pattern_size: 30, check: names::dns_1035_label },
    NamedFormat { name: "QualifiedName", key: "qualifiedName", pattern_size: 60, check: names::label_key },
    NamedFormat {
        name: "DNS1123LabelPrefix",
        key: "dns1123LabelPrefix",
        pattern_size: 30,
        check: |text| NameRule::DnsLabel.check(text, true),
    },
    NamedFormat {
        name: "DNS1123SubdomainPrefix",
        key: "dns1123SubdomainPrefix",
        pattern_size: 60,
        check: |text| NameRule::DnsSubdomain.check(text, true),
    },
    NamedFormat {
        name: "DNS1035LabelPrefix",
        key: "dns1035LabelPrefix",
        pattern_size: 30,
        check: |text| NameRule::Dns1035Label.check(text, true),
    },
    NamedFormat { name: "LabelValue", key: "labelValue", pattern_size: 40, check: names::label_value },
    NamedFormat { name: "URI", key: "uri", pattern_size: 1103, check: uri },
    NamedFormat { name: "uuid", key: "uuid", pattern_size: 70, check: uuid },
    NamedFormat { name: "byte", key: "byte", pattern_size: 84, check: base64 },
    NamedFormat { name: "date", key: "date", pattern_size: 71, check: date },
    NamedFormat { name: "datetime", key: "datetime", pattern_size: 71, check: date_time },
];

fn named(_: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::String(name)] = args else { return Err(EvalError::NoSuchOverload) };
    let found = FORMATS.iter().find(|format| format.key == name.as_ref());
    Ok(found.map_or_else(Value::none, |format| Value::some(Value::Format(format))))
}

fn validate(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let [Value::Format(format), Value::String(text)] = args else { return Err(EvalError::NoSuchOverload) };
    context.budget.work(4 * text.len() as u64)?;
    let faults = (format.check)(text);
    if faults.is_empty() {
        return Ok(Value::none());
    }
    Ok(Value::some(Value::list(faults.into_iter().map(Value::string).collect())))
}

fn fault(broken: bool, message: &str) -> Option<String> {
    broken.then(|| message.to_owned())
}

fn uri(text: &str) -> Vec<String> {
    Url::check(text).err().into_iter().collect()
}

/// Hexadecimal digits in groups of 8, 4, 4, 4 and 12; the dashes between them may be missing.
fn uuid(text: &str) -> Vec<String> {
    let mut rest = text;
    let mut broken = false;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.get(..length) {
            Some(group) if group.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest = &rest[length..],
            _ => broken = true,
        }
    }
    fault(broken || !rest.is_empty(), "does not match the UUID format").into_iter().collect()
}

fn base64(text: &str) -> Vec<String> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let valid = !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/');
    fault(!valid, "invalid base64").into_iter().collect()
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to]
            .iter()
            .try_fold(0i16, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i16::from(digit - b'0')))
    };
    match (number(0, 4), number(5, 7), number(8, 10)) {
        (Some(year), Some(month), Some(day)) => Date::new(year, month as i8, day as i8).is_ok(),
        _ => false,
    }
}

fn date(text: &str) -> Vec<String> {
    fault(!is_date(text), "invalid date").into_iter().collect()
}

fn date_time(text: &str) -> Vec<String> {
    let valid = time::parse_timestamp(&text.to_ascii_uppercase()).is_some();
    fault(!valid, "invalid datetime").into_iter().collect()
}
