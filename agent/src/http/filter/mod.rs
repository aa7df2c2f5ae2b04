//! Filter expressions: which elements of a list are answered. The language is Nomad's:
//!
//! ```text
//! Type == "batch" and Name matches "^c" and not (Meta.owner is empty or "dc1" in Datacenters)
//! any TaskStates as name, state { state.Failed == true }
//! ```
//!
//! An expression is read once for a request ([`parser`]), and evaluated over the stored objects as the API
//! shows them whole, also where the list shows less of them ([`matching`]). Of an object only the field that
//! a selector names is read ([`select`]), so nothing is rendered in order to be left out.
//!
//! Fields that no such object has are an error; keys that a map does not have make no match. Expressions are
//! bounded in length and depth, and regular expressions in size, and take time that is linear in the text.

mod matching;
mod parser;
mod select;
mod syntax;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::Value;

use self::matching::Scope;
use self::syntax::Expr;
pub(super) use select::{Picked, Unpicked, pick_below};

use super::dto::{
    AclPolicyStub, AclTokenStub, DeploymentDto, NamespaceDto, PolicyDto, ServiceInstance,
    VariableStub, VolumeStub,
};
use super::errors::ApiError;

/// The most bytes of an expression.
const MAX_LENGTH: usize = 4096;

/// Whatever an expression can be evaluated over.
pub(super) trait Row {
    /// The value at a path of names.
    ///
    /// # Errors
    /// There is none.
    fn pick(&self, path: &[String]) -> Result<Picked, Unpicked>;
}

/// What is looked at by its JSON.
macro_rules! rows {
    ($($row:ty),*) => {
        $(impl Row for $row {
            fn pick(&self, path: &[String]) -> Result<Picked, Unpicked> {
                pick_below(self, path, 0)
            }
        })*
    };
}

rows!(
    Value,
    DeploymentDto,
    AclPolicyStub,
    AclTokenStub,
    NamespaceDto,
    PolicyDto,
    ServiceInstance,
    VolumeStub
);

/// Nomad's programs name what a list shows of a variable as it is kept there.
impl Row for VariableStub {
    fn pick(&self, path: &[String]) -> Result<Picked, Unpicked> {
        let kept = path.first().is_some_and(|name| name == "VariableMetadata");
        pick_below(self, path, usize::from(kept))
    }
}

#[cfg(test)]
rows!(&str, tests::Object);

/// An expression that was read.
#[derive(Clone, Debug)]
pub(super) struct Filter(Arc<Expr>);

impl Filter {
    /// Reads an expression.
    ///
    /// # Errors
    /// It makes no sense.
    pub(super) fn parse(text: &str) -> Result<Filter, ApiError> {
        let failed = |why: String| {
            let words = format!(
                "failed to create result paginator: failed to read filter expression: {why}"
            );
            ApiError::new(StatusCode::BAD_REQUEST, words)
        };
        if text.len() > MAX_LENGTH {
            let length = text.len();
            return Err(failed(format!(
                "it has {length} bytes, and {MAX_LENGTH} are allowed"
            )));
        }
        parser::parse(text)
            .map(|expr| Filter(Arc::new(expr)))
            .map_err(failed)
    }

    /// Whether an object is listed.
    ///
    /// # Errors
    /// It cannot be compared so.
    pub(super) fn takes(&self, row: &dyn Row) -> Result<bool, ApiError> {
        let taken = matching::evaluate(&self.0, &Scope::of(row));
        taken.map_err(|why| ApiError::bad(format!("failed to read result page: {why}")))
    }
}
