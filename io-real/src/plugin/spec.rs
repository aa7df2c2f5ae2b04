//! From the announcement of a configuration to the core's own types.

use drover_core::driver::spec::{MAX_DEPTH, Spec, Type, literal};

use super::error::PluginError;
use super::proto::hclspec as reported;

/// Reads an announcement.
///
/// # Errors
/// Something in it has no name, no content, an unknown type, or is nested too deep.
pub(super) fn read(spec: &reported::Spec) -> Result<Spec, PluginError> {
    convert(Some(spec), "", MAX_DEPTH)
}

/// `implied` is the name that a part has if it names itself with none.
fn convert(
    spec: Option<&reported::Spec>,
    implied: &str,
    depth: usize,
) -> Result<Spec, PluginError> {
    use reported::spec::Block as B;
    let depth = depth.checked_sub(1).ok_or_else(|| wrong("too deep"))?;
    let block = spec.and_then(|spec| spec.block.as_ref());
    let named = |name: &str| name_of(name, implied);
    let nested =
        |spec: &Option<Box<reported::Spec>>| convert(spec.as_deref(), "", depth).map(Box::new);
    Ok(
        match block.ok_or_else(|| wrong("a part without content"))? {
            B::Object(object) => {
                let parts = object.attributes.iter();
                let parts =
                    parts.map(|(key, spec)| Ok((key.clone(), convert(Some(spec), key, depth)?)));
                Spec::Object(parts.collect::<Result<_, PluginError>>()?)
            }
            B::Array(array) => {
                let parts = array.values.iter();
                let parts = parts.map(|spec| convert(Some(spec), "", depth));
                Spec::Tuple(parts.collect::<Result<_, _>>()?)
            }
            B::Attr(attr) => Spec::Attr {
                name: named(&attr.name)?,
                kind: kind(&attr.r#type)?,
                required: attr.required,
            },
            B::BlockValue(block) => Spec::Block {
                name: named(&block.name)?,
                required: block.required,
                nested: nested(&block.nested)?,
            },
            B::BlockAttrs(block) => Spec::BlockAttrs {
                name: named(&block.name)?,
                kind: kind(&block.r#type)?,
                required: block.required,
            },
            B::BlockList(block) => Spec::BlockList {
                name: named(&block.name)?,
                min: block.min_items,
                max: block.max_items,
                nested: nested(&block.nested)?,
            },
            B::BlockSet(block) => Spec::BlockList {
                name: named(&block.name)?,
                min: block.min_items,
                max: block.max_items,
                nested: nested(&block.nested)?,
            },
            B::BlockMap(block) if block.labels.is_empty() => {
                return Err(wrong("a labelled block without labels"));
            }
            B::BlockMap(block) => Spec::BlockMap {
                name: named(&block.name)?,
                labels: block.labels.clone(),
                nested: nested(&block.nested)?,
            },
            B::Default(default) => Spec::Default {
                primary: nested(&default.primary)?,
                default: nested(&default.default)?,
            },
            B::Literal(value) => Spec::Literal(
                literal(&value.value).map_err(|error| wrong(&format!("a literal: {error}")))?,
            ),
        },
    )
}

fn name_of(name: &str, implied: &str) -> Result<String, PluginError> {
    match (name, implied) {
        ("", "") => Err(wrong("a part without a name")),
        ("", implied) => Ok(implied.to_owned()),
        (name, _) => Ok(name.to_owned()),
    }
}

fn kind(text: &str) -> Result<Type, PluginError> {
    Type::parse(text).map_err(|error| wrong(&format!("a type: {error}")))
}

fn wrong(what: &str) -> PluginError {
    PluginError::Invalid(format!("its configuration's schema has {what}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn of(block: reported::spec::Block) -> reported::Spec {
        reported::Spec { block: Some(block) }
    }

    fn attr(name: &str, kind: &str) -> reported::Spec {
        of(reported::spec::Block::Attr(reported::Attr {
            name: name.to_owned(),
            r#type: kind.to_owned(),
            required: false,
        }))
    }

    fn object(key: &str, spec: reported::Spec) -> reported::Spec {
        of(reported::spec::Block::Object(reported::Object {
            attributes: [(key.to_owned(), spec)].into(),
        }))
    }

    fn default(primary: reported::Spec) -> reported::Spec {
        let value = "3".to_owned();
        let literal = of(reported::spec::Block::Literal(reported::Literal { value }));
        of(reported::spec::Block::Default(Box::new(
            reported::Default {
                primary: Some(Box::new(primary)),
                default: Some(Box::new(literal)),
            },
        )))
    }

    #[test]
    fn object_field_is_named_by_key() {
        let named = |name: &str| {
            let name = name.to_owned();
            let kind = Type::Number;
            let required = false;
            Spec::Attr {
                name,
                kind,
                required,
            }
        };
        let parts = |spec| Spec::Object([("tries".to_owned(), spec)].into());
        let short = object("tries", attr("", "number"));
        assert_eq!(read(&short).unwrap(), parts(named("tries")));
        let other = object("tries", attr("n", "number"));
        assert_eq!(read(&other).unwrap(), parts(named("n")));
    }

    #[test]
    fn invalid_schema_is_refused() {
        let mut deep = attr("a", "any");
        for _ in 0..MAX_DEPTH {
            deep = object("a", deep);
        }
        for bad in [
            reported::Spec { block: None },
            attr("", "any"),
            attr("a", "text"),
            object("a", default(attr("", "number"))),
            deep,
        ] {
            assert!(read(&bad).is_err(), "{bad:?}");
        }
        assert!(read(&object("a", default(attr("a", "number")))).is_ok());
    }
}
