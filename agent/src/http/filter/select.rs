//! Takes one field out of anything that can be serialized, and passes over all others: nothing is rendered
//! in order to be left out.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::Serialize;
use serde::ser::{
    self, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple,
    SerializeTupleStruct,
};

/// A value that was picked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Picked {
    /// Not set.
    Nil,
    /// Left out of answers because it is the zero of its type, whatever that is.
    Zero,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Picked>),
    /// Keys are data.
    Map(BTreeMap<String, Picked>),
    /// Keys are known: one that is not there is a mistake.
    Object(BTreeMap<String, Picked>),
}

impl Picked {
    /// What kind of value it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Picked::Nil => "nil",
            Picked::Zero => "zero",
            Picked::Bool(_) => "bool",
            Picked::Int(_) => "int",
            Picked::Float(_) => "float",
            Picked::Text(_) => "string",
            Picked::List(_) => "slice",
            Picked::Map(_) => "map",
            Picked::Object(_) => "struct",
        }
    }
}

/// Why nothing was picked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unpicked {
    /// A map has no such key, a list no such position, or what it would lie in is not set.
    Missing,
    /// What lies at this part of the path can have nothing of this name.
    Impossible { part: usize, why: String },
}

impl Unpicked {
    /// An object has no such field.
    pub(crate) fn no_field(part: usize, name: &str) -> Unpicked {
        let why = format!("couldn't find key: struct field with name {name:?}");
        Unpicked::Impossible { part, why }
    }
}

impl Display for Unpicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unpicked::Missing => f.write_str("there is no such key"),
            Unpicked::Impossible { part, why } => write!(f, "at part {part}: {why}"),
        }
    }
}

impl std::error::Error for Unpicked {}

impl ser::Error for Unpicked {
    fn custom<T: Display>(why: T) -> Unpicked {
        Unpicked::Impossible {
            part: 0,
            why: why.to_string(),
        }
    }
}

/// The value at a path, from this part of it on.
///
/// # Errors
/// There is none.
pub(crate) fn pick_below<T: Serialize + ?Sized>(
    from: &T,
    path: &[String],
    at: usize,
) -> Result<Picked, Unpicked> {
    from.serialize(Picker { path, at })
}

/// Serializes what lies at the rest of a path.
#[derive(Clone, Copy)]
struct Picker<'p> {
    path: &'p [String],
    at: usize,
}

impl<'p> Picker<'p> {
    /// The next name of the path, and what picks the rest of it.
    fn step(self) -> Option<(&'p str, Picker<'p>)> {
        let name = self.path.get(self.at)?;
        let below = Picker {
            at: self.at + 1,
            ..self
        };
        Some((name, below))
    }

    fn leaf(self, value: Picked) -> Result<Picked, Unpicked> {
        match (self.step(), value) {
            (None, value) => Ok(value),
            (Some(_), Picked::Nil | Picked::Zero) => Err(Unpicked::Missing),
            (Some(_), value) => {
                let why = format!("invalid value kind: {}", value.kind());
                Err(self.impossible(why))
            }
        }
    }

    fn impossible(self, why: String) -> Unpicked {
        Unpicked::Impossible { part: self.at, why }
    }

    fn list(self) -> Result<Elements<'p>, Unpicked> {
        let wanted = match self.step() {
            None => None,
            Some((name, below)) => match name.parse() {
                Ok(position) => Some((position, below)),
                Err(_) => {
                    let why = format!("couldn't convert {name:?} to a position in a list");
                    return Err(self.impossible(why));
                }
            },
        };
        Ok(Elements {
            wanted,
            all: Picker { path: &[], at: 0 },
            position: 0,
            list: Vec::new(),
            found: None,
        })
    }

    fn fields(self, known: bool) -> Fields<'p> {
        Fields {
            picker: self,
            known,
            all: BTreeMap::new(),
            key: None,
            found: None,
        }
    }
}

/// A list, of which an element or all of them are picked.
struct Elements<'p> {
    wanted: Option<(usize, Picker<'p>)>,
    all: Picker<'p>,
    position: usize,
    list: Vec<Picked>,
    found: Option<Picked>,
}

impl Elements<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unpicked> {
        match self.wanted {
            None => self.list.push(value.serialize(self.all)?),
            Some((wanted, below)) if wanted == self.position => {
                self.found = Some(value.serialize(below)?);
            }
            Some(_) => {}
        }
        self.position += 1;
        Ok(())
    }

    fn done(self) -> Result<Picked, Unpicked> {
        match self.wanted {
            None => Ok(Picked::List(self.list)),
            Some(_) => self.found.ok_or(Unpicked::Missing),
        }
    }
}

/// A struct or a map, of which a field or all of them are picked.
struct Fields<'p> {
    picker: Picker<'p>,
    known: bool,
    all: BTreeMap<String, Picked>,
    key: Option<String>,
    found: Option<Picked>,
}

impl Fields<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Unpicked> {
        match self.picker.step() {
            None => {
                let all = Picker { path: &[], at: 0 };
                self.all.insert(name.to_owned(), value.serialize(all)?);
            }
            Some((wanted, below)) if wanted == name => self.found = Some(value.serialize(below)?),
            Some(_) => {}
        }
        Ok(())
    }

    fn done(self) -> Result<Picked, Unpicked> {
        match (self.picker.step(), self.found) {
            (None, _) if self.known => Ok(Picked::Object(self.all)),
            (None, _) => Ok(Picked::Map(self.all)),
            (Some(_), Some(found)) => Ok(found),
            (Some((name, _)), None) if self.known => Err(Unpicked::no_field(self.picker.at, name)),
            (Some(_), None) => Err(Unpicked::Missing),
        }
    }
}

impl SerializeStruct for Fields<'_> {
    type Ok = Picked;
    type Error = Unpicked;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unpicked> {
        self.field(name, value)
    }

    fn skip_field(&mut self, name: &'static str) -> Result<(), Unpicked> {
        self.field(name, &Picked::Zero)
    }

    fn end(self) -> Result<Picked, Unpicked> {
        self.done()
    }
}

impl SerializeMap for Fields<'_> {
    type Ok = Picked;
    type Error = Unpicked;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unpicked> {
        let all = Picker { path: &[], at: 0 };
        self.key = Some(match key.serialize(all)? {
            Picked::Text(text) => text,
            Picked::Int(number) => number.to_string(),
            Picked::Bool(is) => is.to_string(),
            other => {
                return Err(ser::Error::custom(format!("a key is a {}", other.kind())));
            }
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unpicked> {
        let key = self.key.take().unwrap_or_default();
        self.field(&key, value)
    }

    fn end(self) -> Result<Picked, Unpicked> {
        self.done()
    }
}

macro_rules! elements {
    ($($of:ident $call:ident),*) => {$(
        impl $of for Elements<'_> {
            type Ok = Picked;
            type Error = Unpicked;

            fn $call<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unpicked> {
                self.element(value)
            }

            fn end(self) -> Result<Picked, Unpicked> {
                self.done()
            }
        }
    )*};
}

elements!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field
);

macro_rules! leaves {
    ($($call:ident $kind:ty, $value:ident => $picked:expr;)*) => {$(
        fn $call(self, $value: $kind) -> Result<Picked, Unpicked> {
            self.leaf($picked)
        }
    )*};
}

impl<'p> ser::Serializer for Picker<'p> {
    type Ok = Picked;
    type Error = Unpicked;
    type SerializeSeq = Elements<'p>;
    type SerializeTuple = Elements<'p>;
    type SerializeTupleStruct = Elements<'p>;
    type SerializeTupleVariant = Impossible<Picked, Unpicked>;
    type SerializeMap = Fields<'p>;
    type SerializeStruct = Fields<'p>;
    type SerializeStructVariant = Impossible<Picked, Unpicked>;

    leaves! {
        serialize_bool bool, value => Picked::Bool(value);
        serialize_i8 i8, value => Picked::Int(value.into());
        serialize_i16 i16, value => Picked::Int(value.into());
        serialize_i32 i32, value => Picked::Int(value.into());
        serialize_i64 i64, value => Picked::Int(value.into());
        serialize_i128 i128, value => Picked::Int(value);
        serialize_u8 u8, value => Picked::Int(value.into());
        serialize_u16 u16, value => Picked::Int(value.into());
        serialize_u32 u32, value => Picked::Int(value.into());
        serialize_u64 u64, value => Picked::Int(value.into());
        serialize_f32 f32, value => Picked::Float(value.into());
        serialize_f64 f64, value => Picked::Float(value);
        serialize_char char, value => Picked::Text(value.into());
        serialize_str &str, value => Picked::Text(value.to_owned());
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Picked, Unpicked> {
        self.leaf(Picked::Text(String::from_utf8_lossy(bytes).into_owned()))
    }

    fn serialize_none(self) -> Result<Picked, Unpicked> {
        self.leaf(Picked::Nil)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Picked, Unpicked> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Picked, Unpicked> {
        self.leaf(Picked::Nil)
    }

    /// Stands for [`Picked::Zero`] too, which no other kind of value does.
    fn serialize_unit_struct(self, _: &'static str) -> Result<Picked, Unpicked> {
        self.leaf(Picked::Zero)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<Picked, Unpicked> {
        self.leaf(Picked::Text(name.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Picked, Unpicked> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<Picked, Unpicked> {
        let mut fields = self.fields(true);
        fields.field(name, value)?;
        fields.done()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'p>, Unpicked> {
        self.list()
    }

    fn serialize_tuple(self, _: usize) -> Result<Elements<'p>, Unpicked> {
        self.list()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Elements<'p>, Unpicked> {
        self.list()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unpicked> {
        Err(self.impossible(format!("{name} has no fields that can be compared")))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'p>, Unpicked> {
        Ok(self.fields(false))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'p>, Unpicked> {
        Ok(self.fields(true))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unpicked> {
        Err(self.impossible(format!("{name} has no fields that can be compared")))
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<Picked, Unpicked> {
        self.leaf(Picked::Text(value.to_string()))
    }
}

/// So that elements of lists and maps can be looked into as whole objects can.
impl Serialize for Picked {
    fn serialize<S: ser::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Picked::Nil => to.serialize_unit(),
            Picked::Zero => to.serialize_unit_struct("Zero"),
            Picked::Bool(value) => to.serialize_bool(*value),
            Picked::Int(value) => to.serialize_i128(*value),
            Picked::Float(value) => to.serialize_f64(*value),
            Picked::Text(text) => to.serialize_str(text),
            Picked::List(list) => to.collect_seq(list),
            Picked::Map(map) | Picked::Object(map) => to.collect_map(map),
        }
    }
}
