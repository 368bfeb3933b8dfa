//! Options of an answer in the shape of a table.

use crate::gotext::quote;
use crate::query::Query;
use crate::status::Status;

/// How much of each object goes with its row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// Options of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TableOptions {
    /// How much of each object goes with its row.
    pub include_object: IncludeObject,
}

impl TableOptions {
    /// Reads and checks the options of a query.
    pub fn parse(query: &Query) -> Result<Self, Status> {
        let include_object = match query.get("includeObject").unwrap_or_default() {
            "" | "Metadata" => IncludeObject::Metadata,
            "None" => IncludeObject::None,
            "Object" => IncludeObject::Object,
            other => {
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                     'Object', 'None', or empty",
                    quote(other)
                )));
            }
        };
        Ok(TableOptions { include_object })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_carry_metadata_unless_told_otherwise() {
        let parse = |text: &str| TableOptions::parse(&Query::parse(Some(text)));
        assert_eq!(parse("").unwrap().include_object, IncludeObject::Metadata);
        assert_eq!(parse("includeObject=None").unwrap().include_object, IncludeObject::None);
        assert_eq!(parse("includeObject=Object").unwrap().include_object, IncludeObject::Object);
        assert_eq!(
            parse("includeObject=x").unwrap_err().message,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty"
        );
    }
}
