//! `range`.

use super::{Flow, Render};
use crate::ast::{Loop, Sets};
use crate::error::Fault;
use crate::value::{IntType, UintType, Value};

/// How many things a loop goes over, and which.
enum Items {
    /// Numbers, of which a loop knows no place beside them.
    Numbers(i64, i64, fn(i64) -> Value),
    Values(Vec<(Value, Value)>),
}

impl<'a> Render<'a> {
    pub(super) fn range(&mut self, range: &'a Loop, dot: &Value) -> Result<Flow, Fault> {
        let value = self.pipe(&range.over, dot)?;
        let begin = self.variables.len();
        let items = self.items(&value, range);
        let items = items.map_err(|fault| fault.at(range.place))?;
        let mut any = false;
        match items {
            Items::Numbers(from, to, make) => {
                for int in from..to {
                    any = true;
                    self.variables.truncate(begin);
                    let place = make(int.wrapping_sub(from));
                    if self.turn(range, place, make(int))? == Flow::Break {
                        break;
                    }
                }
            }
            Items::Values(values) => {
                for (key, value) in values {
                    any = true;
                    self.variables.truncate(begin);
                    if self.turn(range, key, value)? == Flow::Break {
                        break;
                    }
                }
            }
        }
        self.variables.truncate(begin);
        match any {
            true => Ok(Flow::On),
            false => self.body(&range.otherwise, dot),
        }
    }

    fn items(&mut self, value: &Value, range: &Loop) -> Result<Items, Fault> {
        let two = match &range.over.sets {
            Sets::Nothing => false,
            Sets::New { count, .. } => *count == 2,
            Sets::Old(slots) => slots.len() == 2,
        };
        self.cx.spend(value.weight())?;
        let numbered = |items: &[Value]| {
            let numbers = items.iter().enumerate();
            numbers
                .map(|(at, item)| (Value::size(at), item.clone()))
                .collect()
        };
        match value {
            Value::Absent | Value::Nil => Ok(Items::Values(Vec::new())),
            Value::Int(..) | Value::Uint(..) if two => {
                Err(Fault::failed("a loop over a number sets one variable"))
            }
            Value::Int(end, IntType::Int) => Ok(Items::Numbers(0, *end, Value::int)),
            Value::Int(end, IntType::Int64) => Ok(Items::Numbers(0, *end, Value::int64)),
            Value::Uint(end, _) => {
                let end = i64::try_from(*end).unwrap_or(i64::MAX);
                Ok(Items::Numbers(0, end, uint))
            }
            Value::Count(from, to) => Ok(Items::Numbers(*from, *to, Value::int64)),
            Value::List(list) => {
                self.cx.grow(list.items.len().saturating_mul(64))?;
                Ok(Items::Values(numbered(&list.items)))
            }
            Value::Map(map) => {
                self.cx.grow(map.len().saturating_mul(64))?;
                let entries = map.entries().into_iter();
                Ok(Items::Values(
                    entries
                        .map(|(key, value)| (Value::Text(key), value))
                        .collect(),
                ))
            }
            _ => {
                let message = format!("a loop cannot go over {}", value.type_name());
                Err(Fault::failed(message))
            }
        }
    }

    fn turn(&mut self, range: &'a Loop, key: Value, value: Value) -> Result<Flow, Fault> {
        self.cx.spend(1).map_err(|fault| fault.at(range.place))?;
        match &range.over.sets {
            Sets::Nothing => {}
            Sets::New { first, count } => {
                self.variables.truncate(*first);
                if *count == 2 {
                    self.variables.push(key);
                }
                self.variables.push(value.clone());
            }
            Sets::Old(slots) => match slots.as_slice() {
                [one] => self.set(*one, value.clone()),
                [one, two] => {
                    self.set(*one, key);
                    self.set(*two, value.clone());
                }
                _ => {}
            },
        }
        self.body(&range.body, &value)
    }
}

fn uint(int: i64) -> Value {
    Value::Uint(u64::try_from(int).unwrap_or_default(), UintType::Uint64)
}
