//! Named string formats.
//!
//! Owns what a text has to look like to keep a `format`. Names that are not listed here are no rule at all, as in
//! Kubernetes, whose checks these are, oddities included.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{
    names::{DNS_LABEL_BYTES_MAX, DNS_SUBDOMAIN_BYTES_MAX, is_dns_label, is_dns_subdomain},
    pattern,
};

/// The formats of texts, hyphens left out.
const KNOWN: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// A format's name without its hyphens, if it is one that texts are checked against.
pub(crate) fn known(format: &str) -> Option<&'static str> {
    let normal = |byte: &u8| *byte != b'-';
    KNOWN.into_iter().find(|known| known.bytes().eq(format.bytes().filter(normal)))
}

/// Whether a text keeps a format, given by its name without hyphens.
pub(crate) fn holds(known: &str, text: &str) -> bool {
    let matches = |expression: &str| pattern::is_match(expression, text) == Ok(true);
    match known {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "byte" => is_base64(text),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_lenient_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && (is_ipv4(text) || text.parse::<Ipv6Addr>().is_ok()),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => text.len() <= DNS_SUBDOMAIN_BYTES_MAX && is_dns_subdomain(text),
        "k8sshortname" => text.len() <= DNS_LABEL_BYTES_MAX && is_dns_label(text),
        "mac" => is_mac(text),
        "rgbcolor" => {
            const PART: &str = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*";
            matches(&format!(r"^rgb\({PART},{PART},{PART}\)$"))
        }
        "ssn" => text.len() == 11 && matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
        "uri" => berth_cel::library::url::Url::is_valid(text),
        "uuid" => matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        "uuid3" => matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
        "uuid4" => matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        "uuid5" => matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
        _ => true,
    }
}

/// Kubernetes' own check of a time, which takes some texts for times that are none: any sign in front of the
/// fraction, any offset, and whatever follows a second `t`.
fn is_lenient_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date)
        && pattern::is_match(
            r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$",
            time,
        ) == Ok(true)
}

/// Whether a text is an RFC 3339 time: `YYYY-MM-DDThh:mm:ss[.digits](Z|±hh:mm)`.
pub fn is_date_time(text: &str) -> bool {
    DateTime::of(text).is_some()
}

/// An RFC 3339 time, taken apart without being converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateTime<'a> {
    /// `YYYY-MM-DD`.
    pub date: &'a str,
    /// `hh:mm:ss`.
    pub time: &'a str,
    /// The digits behind the point, possibly none.
    pub fraction: &'a str,
    /// `Z` or `±hh:mm`.
    pub offset: &'a str,
}

impl<'a> DateTime<'a> {
    /// Takes a text apart; none if it is no time.
    pub fn of(text: &'a str) -> Option<Self> {
        if !text.is_ascii() {
            return None;
        }
        let (date, rest) = text.split_once(['T', 't'])?;
        let (time, rest) = rest.split_at_checked(8)?;
        let (fraction, offset) = match rest.strip_prefix('.') {
            Some(rest) => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                if digits == 0 {
                    return None;
                }
                rest.split_at(digits)
            }
            None => ("", rest),
        };
        let sound = is_date(date) && is_clock(time) && is_offset(offset);
        sound.then_some(Self { date, time, fraction, offset })
    }
}

fn is_date(date: &str) -> bool {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    jiff::civil::Date::new(year, month as i8, day as i8).is_ok()
}

fn is_clock(time: &str) -> bool {
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    number(hour, 2).is_some_and(|hour| hour <= 23)
        && number(minute, 2).is_some_and(|minute| minute <= 59)
        && number(second, 2).is_some_and(|second| second <= 59)
}

fn is_offset(offset: &str) -> bool {
    if offset.eq_ignore_ascii_case("z") {
        return true;
    }
    let Some((hour, minute)) = offset.strip_prefix(['+', '-']).and_then(|rest| rest.split_once(':')) else {
        return false;
    };
    number(hour, 2).is_some_and(|hour| hour <= 23) && number(minute, 2).is_some_and(|minute| minute <= 59)
}

fn number(text: &str, digits: usize) -> Option<i16> {
    let exact = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit());
    exact.then(|| text.parse().ok()).flatten()
}

/// Whether a text is padded base64 of the standard alphabet; the empty text is not.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

/// Four numbers up to 255, leading zeros allowed.
fn is_ipv4(text: &str) -> bool {
    let part = |part: &str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.is_empty() || digits.parse::<u8>().is_ok())
    };
    text.split('.').count() == 4 && text.split('.').all(part)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = if is_ipv4(address) || address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.len() <= 8
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|bits| bits <= limit)
}

/// Hardware addresses of 6, 8 or 20 bytes, in pairs of digits or groups of four.
fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize, counts: [usize; 3]| {
        counts.contains(&text.split(separator).count())
            && text
                .split(separator)
                .all(|group| group.len() == digits && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

/// One label, or several of which the last is made of letters. Letters and symbols of all scripts count.
fn is_hostname(text: &str) -> bool {
    let wide = |c: char| pattern::is_match(r"^[\p{S}\p{L}]$", c.encode_utf8(&mut [0; 4])) == Ok(true);
    let member = |c: char| c.is_ascii_alphanumeric() || (!c.is_ascii() && wide(c)) || "$+<=>^`|~".contains(c);
    let letter = |c: char| c.is_ascii_alphabetic() || (!c.is_ascii() && c.is_alphabetic());
    if text.len() > 255 || text.split('.').any(|part| part.len() > 63) {
        return false;
    }
    match text.rsplit_once('.') {
        // A dash may only be the second character, for whatever reason.
        None => {
            let mut rest = text.chars();
            rest.next().is_some_and(member) && {
                let rest = rest.as_str();
                rest.strip_prefix('-').unwrap_or(rest).chars().all(member)
            }
        }
        Some((labels, last)) => {
            let inner = |label: &str| {
                label.starts_with(member)
                    && label.ends_with(member)
                    && label.chars().all(|c| member(c) || c == '-')
            };
            labels.split('.').all(inner) && last.chars().count() >= 2 && last.chars().all(letter)
        }
    }
}

/// An address as mail readers take it: `local@domain`, possibly in angle brackets behind a name.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match (text.find('<'), text.strip_suffix('>')) {
        (Some(open), Some(closed)) => &closed[open + 1..],
        (None, None) => text,
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c))
    };
    let quoted = local.len() >= 2
        && local.starts_with('"')
        && local.ends_with('"')
        && !local[1..local.len() - 1].contains('"');
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    (quoted || local.split('.').all(atom))
        && match literal {
            Some(literal) => {
                is_ipv4(literal)
                    || literal.strip_prefix("IPv6:").is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok())
            }
            None => domain.split('.').all(atom),
        }
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let shape = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$";
    if pattern::is_match(shape, &digits) != Ok(true) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(index, digit)| {
            let digit = u32::from(digit - b'0') * if index % 2 == 1 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let [body @ .., last] = digits.as_slice() else { return false };
    if body.len() != 9 || !body.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let last = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    let sum: u32 = body.iter().zip(1..).map(|(digit, place)| place * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 =
        digits.iter().zip(weights).take(12).map(|(digit, weight)| weight * u32::from(digit - b'0')).sum();
    u32::from(digits[12] - b'0') == (10 - sum % 10) % 10
}

/// A duration as Go writes it, or any text with a number and a unit of time in it.
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || has_long_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let digits = &rest[..number];
        if digits.matches('.').count() > 1 || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
            return false;
        }
        rest = &rest[number..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&&rest[..unit]) {
            return false;
        }
        rest = &rest[unit..];
    }
    true
}

/// Each unit of time: its short names and the beginning of its long name.
const TIME_UNITS: [(&[&str], &str); 8] = [
    (&["ns"], "nano"),
    (&["us", "µs"], "micro"),
    (&["ms"], "milli"),
    (&["s"], "sec"),
    (&["m"], "min"),
    (&["h", "hr"], "hour"),
    (&["d"], "day"),
    (&["w", "wk"], "week"),
];

fn has_long_duration(text: &str) -> bool {
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        rest = behind;
        if unit.is_empty() {
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_lowercase();
        found |=
            TIME_UNITS.iter().any(|(short, long)| short.contains(&unit.as_str()) || unit.starts_with(long));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_other_texts() {
        for good in [
            "2021-07-06T15:00:00+08:00",
            "2021-10-28T08:31:39Z",
            "2021-10-28t08:31:39.123456789012345z",
            "0001-01-01T00:00:00Z",
            "2024-02-29T23:59:59-23:59",
            "9999-12-31T23:59:59Z",
        ] {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "",
            "T",
            "2021-10-28",
            "2021-10-28 08:31:39Z",
            "2021-13-28T08:31:39Z",
            "2023-02-29T00:00:00Z",
            "2021-10-28T24:00:00Z",
            "2021-10-28T08:31:60Z",
            "2021-10-28T08:31:39",
            "2021-10-28T08:31:39.Z",
            "2021-10-28T08:31:39+8:00",
            "2021-10-28T08:31:39+99:99",
            "2021-10-28T08:31:39Zz",
            "+021-10-28T08:31:39Z",
            "２０２１-10-28T08:31:39Z",
            "2021-10-28T08:31:3",
            "2021-10-28Tééééééééé",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

    #[test]
    fn base64_is_told_from_other_texts() {
        for good in ["YQ==", "YWI=", "YWJj", "+/+/"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["", "Y", "YQ=", "Y===", "YQ==\n", "Y-_=", "é==="] {
            assert!(!is_base64(bad), "{bad}");
        }
    }

    #[test]
    fn each_format_takes_what_it_names_and_nothing_else() {
        let cases: [(&str, &[&str], &[&str]); 20] = [
            (
                "date-time",
                &["2021-10-28T08:31:39Z", "2021-10-28t08:31:39x1+99:99"],
                &["2021-10-28", "2021-10-28T24:00:00Z", "t"],
            ),
            ("date", &["2024-02-29"], &["2023-02-29", "2023-2-2", ""]),
            ("ipv4", &["1.2.3.4", "010.1.1.1", "::ffff:1.2.3.4"], &["1.2.3", "1.2.3.256", "::1", ""]),
            ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "fe80::1%eth0", ""]),
            ("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/"]),
            (
                "mac",
                &["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab-cd-ef"],
                &["01:23", "01:23:45:67:89:xx", ""],
            ),
            ("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("hostname", &["example.com", "a", "a-b"], &["a_b", "-a", &"x".repeat(0), "a..b"]),
            ("email", &["a@b.c", "Me <a.b+c@d.e>", "\"a b\"@c"], &["a", "@b", "a@", "a b@c", "<a@b"]),
            ("uri", &["http://a/b", "/path"], &["", "no scheme"]),
            (
                "duration",
                &["1h30m", "22 ns", "3 days", "0", "1.5s", "-2m"],
                &["", "h", "soon", "3 fortnights"],
            ),
            ("hexcolor", &["#fff", "00ff00"], &["#ff", "red"]),
            ("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2)", "rgb(1,2,256)"]),
            ("ssn", &["123-45-6789"], &["123456789"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044", "123"]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
            ("k8s-short-name", &["a-b"], &["a.b", "A"]),
            ("k8s-long-name", &["a-b.c"], &["a..b", "A"]),
        ];
        for (format, good, bad) in cases {
            let known = known(format).unwrap();
            for text in good {
                assert!(holds(known, text), "{format}: {text}");
            }
            for text in bad {
                assert!(!holds(known, text), "{format}: {text}");
            }
        }
        assert_eq!(known("int32"), None);
        assert_eq!(known("unheard-of"), None);
    }
}
