//! The little DER this crate needs: reading subject, validity and key of a certificate, and writing a subject
//! with several organisations.
//!
//! Owns bounds-checked reading of definite-length values. Never verifies a signature: that is rustls' work.

/// A malformed certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed certificate: {0}")]
pub(crate) struct DerError(&'static str);

const TAG_SEQUENCE: u8 = 0x30;
const TAG_SET: u8 = 0x31;
const TAG_OID: u8 = 0x06;
const TAG_BIT_STRING: u8 = 0x03;
const TAG_UTF8: u8 = 0x0c;
const TAG_UTC_TIME: u8 = 0x17;
const TAG_GENERALIZED_TIME: u8 = 0x18;
const TAG_VERSION: u8 = 0xa0;

const OID_COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const OID_ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// The user id attribute Kubernetes defined for itself: 1.3.6.1.4.1.57683.2.
const OID_USER_ID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];

/// What the guard wants to know of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) common_name: String,
    pub(crate) organizations: Vec<String>,
    pub(crate) user_ids: Vec<String>,
    /// Seconds since the epoch before which it is not good yet.
    pub(crate) not_before_s: i64,
    /// Seconds since the epoch after which the certificate is no longer good.
    pub(crate) not_after_s: i64,
    /// The subject's public key, as the bit string carries it.
    pub(crate) public_key: Vec<u8>,
}

/// One value: its tag, its contents, and the bytes of tag, length and contents together.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Element<'a>, DerError> {
        let bytes = self.0;
        let (&tag, rest) = bytes.split_first().ok_or(DerError("it ends early"))?;
        let (&first, rest) = rest.split_first().ok_or(DerError("it ends early"))?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 || rest.len() < count {
                return Err(DerError("a length is out of range"));
            }
            let (digits, rest) = rest.split_at(count);
            (digits.iter().fold(0_usize, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
        };
        if rest.len() < length {
            return Err(DerError("a value is longer than its container"));
        }
        let (content, after) = rest.split_at(length);
        self.0 = after;
        Ok(Element { tag, content, whole: &bytes[..bytes.len() - after.len()] })
    }

    fn expect(&mut self, tag: u8) -> Result<Element<'a>, DerError> {
        let element = self.next()?;
        if element.tag == tag { Ok(element) } else { Err(DerError("a value is not of the kind expected")) }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The values of a to-be-signed certificate, in order, as whole elements.
struct Body<'a> {
    elements: Vec<Element<'a>>,
    /// Where the serial number stands: 1 after an explicit version, else 0.
    serial: usize,
}

impl<'a> Body<'a> {
    fn read(certificate: &'a [u8]) -> Result<Self, DerError> {
        let outer = Reader(certificate).expect(TAG_SEQUENCE)?;
        let body = Reader(outer.content).expect(TAG_SEQUENCE)?;
        let mut reader = Reader(body.content);
        let mut elements = Vec::new();
        while !reader.is_empty() {
            elements.push(reader.next()?);
        }
        let serial = usize::from(elements.first().is_some_and(|first| first.tag == TAG_VERSION));
        if elements.len() < serial + 6 {
            return Err(DerError("fields are missing"));
        }
        Ok(Self { elements, serial })
    }

    // Order: serial, signature algorithm, issuer, validity, subject, public key.
    fn validity(&self) -> &Element<'a> {
        &self.elements[self.serial + 3]
    }

    fn subject(&self) -> &Element<'a> {
        &self.elements[self.serial + 4]
    }

    fn public_key(&self) -> &Element<'a> {
        &self.elements[self.serial + 5]
    }
}

impl Facts {
    /// Reads a DER certificate.
    pub(crate) fn read(certificate: &[u8]) -> Result<Self, DerError> {
        let body = Body::read(certificate)?;
        let mut facts = Self::default();
        let mut validity = Reader(body.validity().content);
        facts.not_before_s = time_seconds(&validity.next()?)?;
        facts.not_after_s = time_seconds(&validity.next()?)?;
        let mut key = Reader(body.public_key().content);
        key.expect(TAG_SEQUENCE)?;
        // The first byte of a bit string counts unused bits, none for a key.
        facts.public_key = key.expect(TAG_BIT_STRING)?.content.get(1..).unwrap_or_default().to_vec();
        let mut names = Reader(body.subject().content);
        while !names.is_empty() {
            let mut attributes = Reader(names.expect(TAG_SET)?.content);
            while !attributes.is_empty() {
                facts.attribute(attributes.expect(TAG_SEQUENCE)?.content)?;
            }
        }
        Ok(facts)
    }

    fn attribute(&mut self, content: &[u8]) -> Result<(), DerError> {
        let mut reader = Reader(content);
        let oid = reader.expect(TAG_OID)?.content;
        let value = reader.next()?;
        let text = || {
            std::str::from_utf8(value.content)
                .map(str::to_owned)
                .map_err(|_| DerError("a name is not readable text"))
        };
        match oid {
            OID_COMMON_NAME => self.common_name = text()?,
            OID_ORGANIZATION => self.organizations.push(text()?),
            OID_USER_ID => self.user_ids.push(text()?),
            _ => {}
        }
        Ok(())
    }
}

fn time_seconds(element: &Element<'_>) -> Result<i64, DerError> {
    let wrong = DerError("a time is not readable");
    let text = std::str::from_utf8(element.content).map_err(|_| wrong)?;
    let digits = text.strip_suffix('Z').ok_or(wrong)?;
    let full = match element.tag {
        // Two-digit years mean 1950 to 2049.
        TAG_UTC_TIME => {
            let century = if digits.get(..2).ok_or(wrong)? < "50" { "20" } else { "19" };
            format!("{century}{digits}")
        }
        TAG_GENERALIZED_TIME => digits.to_owned(),
        _ => return Err(wrong),
    };
    if full.len() != 14 || !full.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong);
    }
    let part = |from: usize, to: usize| full[from..to].parse::<i16>().map_err(|_| wrong);
    let small = |from: usize| part(from, from + 2).and_then(|n| i8::try_from(n).map_err(|_| wrong));
    let date =
        jiff::civil::DateTime::new(part(0, 4)?, small(4)?, small(6)?, small(8)?, small(10)?, small(12)?, 0)
            .map_err(|_| wrong)?;
    date.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp().as_second()).map_err(|_| wrong)
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let digits: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|digit| *digit == 0).collect();
        out.push(0x80 | digits.len() as u8);
        out.extend(digits);
    }
    out.extend_from_slice(content);
    out
}

fn name_attribute(oid: &[u8], text: &str) -> Vec<u8> {
    let pair = [element(TAG_OID, oid), element(TAG_UTF8, text.as_bytes())].concat();
    element(TAG_SET, &element(TAG_SEQUENCE, &pair))
}

/// A subject with any number of organisations, which the certificate library cannot express itself.
fn subject(common_name: &str, organizations: &[String]) -> Vec<u8> {
    let mut names: Vec<u8> = organizations.iter().flat_map(|o| name_attribute(OID_ORGANIZATION, o)).collect();
    names.extend(name_attribute(OID_COMMON_NAME, common_name));
    element(TAG_SEQUENCE, &names)
}

/// `certificate` with another subject, signed again by `sign`.
pub(crate) fn with_subject<E>(
    certificate: &[u8],
    common_name: &str,
    organizations: &[String],
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<Result<Vec<u8>, E>, DerError> {
    let body = Body::read(certificate)?;
    let mut fields = Vec::new();
    for (index, field) in body.elements.iter().enumerate() {
        if index == body.serial + 4 {
            fields.extend(subject(common_name, organizations));
        } else {
            fields.extend_from_slice(field.whole);
        }
    }
    let to_be_signed = element(TAG_SEQUENCE, &fields);
    let mut outer = Reader(Reader(certificate).expect(TAG_SEQUENCE)?.content);
    outer.expect(TAG_SEQUENCE)?;
    let algorithm = outer.expect(TAG_SEQUENCE)?.whole;
    Ok(sign(&to_be_signed).map(|signature| {
        let bits = [&[0_u8][..], &signature].concat();
        let whole = [to_be_signed, algorithm.to_vec(), element(TAG_BIT_STRING, &bits)].concat();
        element(TAG_SEQUENCE, &whole)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_written_in_short_and_long_form() {
        assert_eq!(element(4, &[1, 2]), [4, 2, 1, 2]);
        assert_eq!(element(4, &[0; 200])[..3], [4, 0x81, 200]);
        assert_eq!(element(4, &[0; 300])[..4], [4, 0x82, 1, 44]);
    }

    #[test]
    fn both_time_forms_are_read() {
        let read = |tag, text: &str| {
            time_seconds(&Element { tag, content: text.as_bytes(), whole: text.as_bytes() })
        };
        assert_eq!(read(TAG_UTC_TIME, "700101000001Z"), Ok(1));
        assert_eq!(read(TAG_GENERALIZED_TIME, "20500101000000Z"), Ok(2_524_608_000));
        assert!(read(TAG_UTC_TIME, "7001010000Z").is_err());
        assert!(read(TAG_UTC_TIME, "991332000000Z").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Facts::read(&bytes);
        }
    }
}
