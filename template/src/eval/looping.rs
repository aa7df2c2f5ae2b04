//! `range`.

use std::rc::Rc;

use super::{Flow, Render};
use crate::ast::{Loop, Sets};
use crate::error::Fault;
use crate::value::{IntType, List, Text, UintType, Value};

/// What a loop goes over.
enum Items {
    /// Numbers from one up to another, and how each becomes a value.
    Numbers(i64, i64, fn(i64) -> Value),
    List(Rc<List>),
    /// A map as it was when the loop began.
    Entries(Vec<(Text, Value)>),
}

impl<'a> Render<'a> {
    pub(super) fn range(&mut self, range: &'a Loop, dot: &Value) -> Result<Flow, Fault> {
        let value = self.pipe(&range.over, dot)?;
        let begin = self.variables.len();
        let items = self.items(&value, range);
        let any = match items.map_err(|fault| fault.at(range.position))? {
            Items::Numbers(from, to, make) => {
                let numbers = (from..to).map(|int| (make(int.wrapping_sub(from)), make(int)));
                self.turns(range, numbers)?
            }
            Items::List(list) => {
                let items = list.items.iter().enumerate();
                self.turns(
                    range,
                    items.map(|(at, item)| (Value::size(at), item.clone())),
                )?
            }
            Items::Entries(entries) => {
                let entries = entries.into_iter();
                self.turns(range, entries.map(|(key, value)| (Value::Text(key), value)))?
            }
        };
        self.variables.truncate(begin);
        match any {
            true => Ok(Flow::On),
            false => self.body(&range.otherwise, dot),
        }
    }

    /// All turns of a loop; says whether there were any.
    fn turns(
        &mut self,
        range: &'a Loop,
        items: impl Iterator<Item = (Value, Value)>,
    ) -> Result<bool, Fault> {
        let begin = self.variables.len();
        let mut any = false;
        for (key, value) in items {
            any = true;
            self.variables.truncate(begin);
            if self.turn(range, key, value)? == Flow::Break {
                break;
            }
        }
        Ok(any)
    }

    fn items(&mut self, value: &Value, range: &Loop) -> Result<Items, Fault> {
        let two = match &range.over.sets {
            Sets::Nothing => false,
            Sets::New { count, .. } => *count == 2,
            Sets::Old(slots) => slots.len() == 2,
        };
        match value {
            Value::Absent | Value::Nil => Ok(Items::Entries(Vec::new())),
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
            Value::List(list) => Ok(Items::List(list.clone())),
            Value::Map(map) => {
                self.cx.spend(value.weight())?;
                Ok(Items::Entries(map.entries()))
            }
            _ => {
                let message = format!("a loop cannot go over {}", value.type_name());
                Err(Fault::failed(message))
            }
        }
    }

    fn turn(&mut self, range: &'a Loop, key: Value, value: Value) -> Result<Flow, Fault> {
        self.cx.spend(1).map_err(|fault| fault.at(range.position))?;
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
