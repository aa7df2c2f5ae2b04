//! Variables in files: as JSON, or in HCL with `path`, `namespace` and `items { … }`. What is said of
//! mistakes shows no value.

use std::collections::BTreeMap;

use drover_core::model::value::Value;

use super::exit_code::Failure;
use crate::config::literal;
use crate::http::dto::VariableDto;

/// The format of a variable that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Hcl,
}

impl Format {
    /// The format that was named, or that the name of the source says: `@FILE`, or `-`.
    ///
    /// # Errors
    /// It is unknown, or nothing says it.
    pub(super) fn of(named: Option<&str>, source: &str) -> Result<Format, Failure> {
        match named {
            Some("json") => Ok(Format::Json),
            Some("hcl") => Ok(Format::Hcl),
            None if source == "-" => Err(Failure::new(
                "name the format of the input: -in=json or -in=hcl",
            )),
            None if source.ends_with(".hcl") => Ok(Format::Hcl),
            None => Ok(Format::Json),
            Some(other) => Err(Failure::new(format!(
                "-in={other} is not supported; supported are json and hcl"
            ))),
        }
    }

    /// Reads a variable.
    ///
    /// # Errors
    /// The text is none; where, and what is wrong.
    pub(super) fn read(self, text: &str, source: &str) -> Result<VariableDto, Failure> {
        match self {
            Format::Json => serde_json::from_str(text).map_err(|error| {
                let at = format!("line {}, column {}", error.line(), error.column());
                Failure::new(format!("{source} is not a variable in JSON: {at}"))
            }),
            Format::Hcl => {
                let why = |why| Failure::new(format!("{source} is not a variable in HCL: {why}"));
                hcl(text).map_err(why)
            }
        }
    }
}

/// What is the agent's to say, and may stand in a file that it once wrote.
const OF_THE_AGENT: [&str; 4] = ["create_index", "create_time", "modify_index", "modify_time"];

fn hcl(text: &str) -> Result<VariableDto, String> {
    let body = hcl_edit::parser::parse_body(text).map_err(|error| {
        let at = error.location();
        format!("line {}, column {}", at.line(), at.column())
    })?;
    let mut variable = VariableDto::default();
    for (name, value) in literal::body(&body)? {
        match (name.as_str(), value) {
            ("path", Value::String(path)) => variable.stub.path = path,
            ("namespace", Value::String(name)) => variable.stub.namespace = name,
            ("items", Value::Map(items)) => variable.items = Some(texts(items)?),
            ("items", Value::List(blocks)) => match <[Value; 1]>::try_from(blocks) {
                Ok([Value::Map(items)]) => variable.items = Some(texts(items)?),
                _ => return Err("there is to be one block \"items\"".to_owned()),
            },
            (name, _) if OF_THE_AGENT.contains(&name) => {}
            (name @ ("path" | "namespace" | "items"), other) => {
                return Err(format!("{name} cannot be {}", other.kind()));
            }
            (name, _) => {
                return Err(crate::config::unknown(
                    "setting",
                    name,
                    &["path", "namespace", "items"],
                ));
            }
        }
    }
    Ok(variable)
}

fn texts(items: BTreeMap<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let text = |(key, value)| match value {
        Value::String(text) => Ok((key, text)),
        other => Err(format!(
            "items: {key} is to be a string, not {}",
            other.kind()
        )),
    };
    items.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<VariableDto, String> {
        let read = Format::Hcl.read(text, "x.hcl");
        read.map_err(|failure| failure.message)
    }

    #[test]
    fn examples_of_init_are_variables() {
        let hcl = read(include_str!("init/variable.hcl")).unwrap();
        let json = Format::Json
            .read(include_str!("init/variable.json"), "x")
            .unwrap();
        assert!(hcl == json);
        assert_eq!(hcl.stub.path, "nomad/jobs/example");
        assert_eq!(hcl.items.unwrap()["user"], "ada");
    }

    #[test]
    fn mistake_is_reported_without_values() {
        for (text, words) in [
            ("path = \"hush", "line 1"),
            ("path = 1", "path cannot be"),
            ("items { a = [\"hush\"] }", "items: a is to be a string"),
            ("items {\n a = \"hush\"\n}\nitems {\n}", "one block"),
            ("item { a = \"hush\" }", "did you mean items?"),
        ] {
            let why = read(text).err().unwrap();
            assert!(
                why.contains(words) && !why.contains("hush"),
                "{text}: {why}"
            );
        }
    }

    #[test]
    fn format_is_named_or_follows_from_file() {
        assert_eq!(Format::of(None, "@a.nsv.hcl").unwrap(), Format::Hcl);
        assert_eq!(Format::of(None, "@a.json").unwrap(), Format::Json);
        assert_eq!(Format::of(Some("hcl"), "-").unwrap(), Format::Hcl);
        assert!(Format::of(None, "-").is_err());
        assert!(Format::of(Some("yaml"), "@a.hcl").is_err());
    }
}
