//! From a job's configuration to what a plugin is given, by the schema that the plugin announced.

use std::collections::BTreeMap;

use super::{Spec, Type};
use crate::driver::coerce::{blocks_of, bool_of, text_of};
use crate::driver::schema::{ConfigProblem, MAX_PROBLEMS};
use crate::interpolate::has_reference;
use crate::model::value::Value;
use crate::text::{nearest, quote};

type Body = BTreeMap<String, Value>;

/// Whether references such as `${...}` may still stand in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// A text with a reference may become anything, and passes for any type.
    Unresolved,
    /// Every reference is replaced already.
    Resolved,
}

/// Decodes a configuration by a spec: what is given in the types that are wanted, what is not
/// given as its default or as `null`.
///
/// # Errors
/// Everything that is wrong with it, up to [`MAX_PROBLEMS`].
pub fn decode(spec: &Spec, body: &Body, strict: Strictness) -> Result<Value, Vec<ConfigProblem>> {
    let mut decoder = Decoder {
        strict,
        problems: Vec::new(),
    };
    let value = decoder.body(spec, body, "");
    if decoder.problems.is_empty() {
        Ok(value)
    } else {
        Err(decoder.problems)
    }
}

struct Decoder {
    strict: Strictness,
    problems: Vec<ConfigProblem>,
}

impl Decoder {
    /// One body: what the spec finds in it, and that there is nothing else.
    fn body(&mut self, spec: &Spec, body: &Body, above: &str) -> Value {
        let mut names = Vec::new();
        spec.names(&mut names);
        for given in body.keys().filter(|given| !names.contains(&given.as_str())) {
            let message = format!("unknown option {}", quote(given));
            let near = nearest(given, names.iter().copied()).map(str::to_owned);
            self.push(format!("{above}{given}"), message, near);
        }
        self.part(spec, body, above)
    }

    fn part(&mut self, spec: &Spec, body: &Body, above: &str) -> Value {
        match spec {
            Spec::Object(parts) => {
                let parts = parts.iter();
                let values = parts.map(|(key, spec)| (key.clone(), self.part(spec, body, above)));
                Value::Map(values.collect())
            }
            Spec::Tuple(parts) => {
                let parts = parts.iter();
                Value::List(parts.map(|spec| self.part(spec, body, above)).collect())
            }
            Spec::Attr {
                name,
                kind,
                required,
            } => {
                let path = format!("{above}{name}");
                match given(body, name) {
                    Some(value) => self.typed(kind, value, path),
                    None => self.missing(*required, path),
                }
            }
            Spec::Block { .. } | Spec::BlockAttrs { .. } => self.block(spec, body, above),
            Spec::BlockList {
                name,
                min,
                max,
                nested,
            } => {
                let path = format!("{above}{name}");
                self.block_list((*min, *max), nested, given(body, name), path)
            }
            Spec::BlockMap {
                name,
                labels,
                nested,
            } => match given(body, name) {
                Some(value) => self.labelled(labels.len(), nested, value, format!("{above}{name}")),
                None => Value::Map(BTreeMap::new()),
            },
            Spec::Default { primary, default } => {
                let value = self.part(primary, body, above);
                if value == Value::Null {
                    return self.part(default, body, above);
                }
                value
            }
            Spec::Literal(value) => value.clone(),
        }
    }

    /// A block that stands once at most.
    fn block(&mut self, spec: &Spec, body: &Body, above: &str) -> Value {
        let (Spec::Block { name, required, .. } | Spec::BlockAttrs { name, required, .. }) = spec
        else {
            return Value::Null;
        };
        let path = format!("{above}{name}");
        let Some(value) = given(body, name) else {
            return self.missing(*required, path);
        };
        if self.may_become_anything(value) {
            return value.clone();
        }
        let Some(blocks) = blocks_of(value) else {
            return self.type_mismatch(path, "a block", value);
        };
        let [block] = blocks.as_slice() else {
            if blocks.is_empty() {
                return self.missing(*required, path);
            }
            return self.problem(path, "only one block may be given".to_owned());
        };
        match spec {
            Spec::Block { nested, .. } => self.body(nested, block, &format!("{path}.")),
            Spec::BlockAttrs { kind, .. } => self.entries(kind, block, &path),
            Spec::Object(_)
            | Spec::Tuple(_)
            | Spec::Attr { .. }
            | Spec::BlockList { .. }
            | Spec::BlockMap { .. }
            | Spec::Default { .. }
            | Spec::Literal(_) => Value::Null,
        }
    }

    fn block_list(
        &mut self,
        (min, max): (u64, u64),
        nested: &Spec,
        value: Option<&Value>,
        path: String,
    ) -> Value {
        let blocks = match value {
            None => Vec::new(),
            Some(value) if self.may_become_anything(value) => return value.clone(),
            Some(value) => match blocks_of(value) {
                Some(blocks) => blocks,
                None => return self.type_mismatch(path, "blocks", value),
            },
        };
        let count = u64::try_from(blocks.len()).unwrap_or(u64::MAX);
        if count < min {
            self.problem(path.clone(), format!("{min} or more blocks must be given"));
        }
        if max > 0 && count > max {
            self.problem(path.clone(), format!("only {max} blocks may be given"));
        }
        let blocks = blocks.into_iter().enumerate();
        Value::List(
            blocks
                .map(|(i, block)| self.body(nested, block, &format!("{path}[{i}].")))
                .collect(),
        )
    }

    /// Blocks below so many labels.
    fn labelled(&mut self, labels: usize, nested: &Spec, value: &Value, path: String) -> Value {
        if self.may_become_anything(value) {
            return value.clone();
        }
        let Some(blocks) = blocks_of(value) else {
            return self.type_mismatch(path, "labelled blocks", value);
        };
        let Some(left) = labels.checked_sub(1) else {
            return match blocks.as_slice() {
                [block] => self.body(nested, block, &format!("{path}.")),
                _ => self.problem(path, "each label may be given once".to_owned()),
            };
        };
        let mut found = BTreeMap::new();
        for (label, value) in blocks.into_iter().flatten() {
            let path = format!("{path}[{}]", quote(label));
            if found.contains_key(label) {
                self.problem(path, "each label may be given once".to_owned());
            } else {
                let value = self.labelled(left, nested, value, path);
                found.insert(label.clone(), value);
            }
        }
        Value::Map(found)
    }

    fn typed(&mut self, kind: &Type, value: &Value, path: String) -> Value {
        if self.may_become_anything(value) {
            return value.clone();
        }
        let fits = match kind {
            Type::Any => Some(plain(value)),
            _ if *value == Value::Null => Some(Value::Null),
            Type::String => text_of(value).map(|text| Value::String(text.into_owned())),
            Type::Bool => bool_of(value).map(Value::Bool),
            Type::Number => number_of(value),
            Type::List(item) => self.items(item, value, &path).map(Value::List),
            Type::Set(item) => self.items(item, value, &path).map(|items| {
                let mut once: Vec<Value> = Vec::new();
                for item in items {
                    if !once.contains(&item) {
                        once.push(item);
                    }
                }
                Value::List(once)
            }),
            Type::Map(item) => match value {
                Value::Map(entries) => Some(self.entries(item, entries, &path)),
                // Blocks of a map, as job files write them.
                Value::List(_) => blocks_of(value).map(|blocks| {
                    let all = blocks.into_iter().flatten();
                    let all: Body = all.map(|(k, v)| (k.clone(), v.clone())).collect();
                    self.entries(item, &all, &path)
                }),
                Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => None,
                Value::String(_) => None,
            },
            Type::Object(fields) => value
                .as_map()
                .map(|entries| self.object(fields, entries, &path)),
            Type::Tuple(kinds) => match value.as_list() {
                Some(items) if items.len() == kinds.len() => {
                    let items = kinds.iter().zip(items).enumerate();
                    let items =
                        items.map(|(i, (kind, v))| self.typed(kind, v, format!("{path}[{i}]")));
                    Some(Value::List(items.collect()))
                }
                Some(_) | None => None,
            },
        };
        match fits {
            Some(value) => value,
            None => self.type_mismatch(path, &kind.to_string(), value),
        }
    }

    fn items(&mut self, kind: &Type, value: &Value, path: &str) -> Option<Vec<Value>> {
        let one;
        let items = match (value, kind) {
            (Value::List(items), _) => items.as_slice(),
            // One block where a list of them may stand.
            (Value::Map(_), Type::Map(_) | Type::Object(_) | Type::Any) => {
                one = [value.clone()];
                &one
            }
            _ => return None,
        };
        let items = items.iter().enumerate();
        Some(
            items
                .map(|(i, item)| self.typed(kind, item, format!("{path}[{i}]")))
                .collect(),
        )
    }

    fn entries(&mut self, kind: &Type, entries: &Body, path: &str) -> Value {
        let entries = entries.iter();
        Value::Map(
            entries
                .map(|(key, value)| {
                    let path = format!("{path}[{}]", quote(key));
                    (key.clone(), self.typed(kind, value, path))
                })
                .collect(),
        )
    }

    fn object(&mut self, fields: &BTreeMap<String, Type>, given: &Body, path: &str) -> Value {
        for name in given.keys().filter(|name| !fields.contains_key(*name)) {
            let near = nearest(name, fields.keys().map(String::as_str)).map(str::to_owned);
            let message = format!("unknown option {}", quote(name));
            self.push(format!("{path}.{name}"), message, near);
        }
        let fields = fields.iter().map(|(name, kind)| {
            let path = format!("{path}.{name}");
            let value = match given.get(name) {
                Some(value) => self.typed(kind, value, path),
                None => self.problem(path, "must be given".to_owned()),
            };
            (name.clone(), value)
        });
        Value::Map(fields.collect())
    }

    fn may_become_anything(&self, value: &Value) -> bool {
        self.strict == Strictness::Unresolved && value.as_str().is_some_and(has_reference)
    }

    fn missing(&mut self, required: bool, path: String) -> Value {
        if required {
            return self.problem(path, "must be given".to_owned());
        }
        Value::Null
    }

    fn type_mismatch(&mut self, path: String, wanted: &str, found: &Value) -> Value {
        let found = match found {
            Value::String(text) if self.strict == Strictness::Unresolved => {
                format!("the string {}", quote(text))
            }
            // What a reference was replaced by may be a secret.
            Value::String(_) => "a string".to_owned(),
            Value::Null => "null".to_owned(),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => {
                format!("a {}", found.kind())
            }
        };
        self.problem(path, format!("expected {wanted}, found {found}"))
    }

    fn problem(&mut self, path: String, message: String) -> Value {
        self.push(path, message, None);
        Value::Null
    }

    fn push(&mut self, path: String, message: String, suggestion: Option<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(ConfigProblem {
                path,
                message,
                suggestion,
            });
        }
    }
}

/// What is given under a name; `null` is nothing.
fn given<'a>(body: &'a Body, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| **value != Value::Null)
}

/// A number, whole where it can be.
fn number_of(value: &Value) -> Option<Value> {
    match value {
        Value::Int(_) | Value::Float(_) => Some(plain(value)),
        Value::String(text) => {
            let whole = text.parse().ok().map(Value::Int);
            whole.or_else(|| {
                let number = text.parse::<f64>().ok().filter(|n| n.is_finite())?;
                Some(plain(&Value::Float(number.to_bits())))
            })
        }
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// The same value with numbers whole where they can be.
fn plain(value: &Value) -> Value {
    match value {
        // `8e0` is a whole number too; its text has no fraction then.
        Value::Float(bits) => match f64::from_bits(*bits).to_string().parse() {
            Ok(whole) => Value::Int(whole),
            Err(_) => value.clone(),
        },
        Value::List(items) => Value::List(items.iter().map(plain).collect()),
        Value::Map(entries) => {
            let entries = entries.iter();
            Value::Map(entries.map(|(k, v)| (k.clone(), plain(v))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::String(_) => value.clone(),
    }
}
