//! The properties by name: what each says, which classes it belongs to, and when it is checked. A table for each theme;
//! a new property is a row of one of them.

mod classes;
#[macro_use]
mod agent;
#[macro_use]
mod cluster;
#[macro_use]
mod disks;
#[macro_use]
mod jobs;
#[macro_use]
mod needs;
#[macro_use]
mod node;
#[macro_use]
mod services;
#[macro_use]
mod situations;
#[macro_use]
mod store;
#[macro_use]
mod tasks;

pub use classes::Class;

/// When a property is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// At each effect or after each step.
    Always,
    /// When the trouble is over and enough time has passed.
    AtRest,
    /// It is no promise but a situation that searching has to reach now and then.
    Sometimes,
}

macro_rules! properties {
    (=> $($(#[doc = $about:literal])+ $name:ident: $text:literal, [$($class:ident)*], $kind:ident;)*) => {
        /// A property of an agent in its world.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Property {
            $($(#[doc = $about])+ $name,)*
        }

        impl Property {
            /// Every property.
            pub const ALL: &[Property] = &[$(Property::$name,)*];

            /// The name that violations carry.
            pub const fn name(self) -> &'static str {
                match self { $(Property::$name => $text,)* }
            }

            /// What it says.
            pub const fn about(self) -> &'static str {
                match self { $(Property::$name => concat!($($about),+),)* }
            }

            /// Which classes it belongs to; none if it is about the scenario itself.
            pub const fn classes(self) -> &'static [Class] {
                match self { $(Property::$name => &[$(Class::$class,)*],)* }
            }

            /// When it is checked.
            pub const fn kind(self) -> Kind {
                match self { $(Property::$name => Kind::$kind,)* }
            }
        }
    };
}

impl From<Property> for &'static str {
    fn from(property: Property) -> &'static str {
        property.name()
    }
}

// Each table hands the rows of those before it on to the next, and the last all of them to the enumeration.
tasks! { needs disks services jobs node store cluster agent situations properties => }

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn property_names_are_unique_and_match_kind() {
        let names: BTreeSet<_> = Property::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), Property::ALL.len());
        for property in Property::ALL {
            let probe = property.name().starts_with("sometimes_");
            assert_eq!(probe, property.kind() == Kind::Sometimes, "{property:?}");
            let camel = property.name().replace('_', "");
            assert_eq!(camel, format!("{property:?}").to_lowercase());
        }
    }
}
