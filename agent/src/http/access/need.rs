//! What a route needs of whoever asks.

use axum::http::{Method, Uri};
use drover_core::agent::View;
use drover_core::ids::{AllocId, DeploymentId, EvalId, VolumeId};

use super::principal::{Principal, require};
use crate::acl::{Capability, Level, PoolCapability};
use crate::http::Api;
use crate::http::errors::ApiError;
use crate::http::params::percent_decode;

/// What somebody needs. Of several capabilities one is enough.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// Nothing: what is told there is no secret, or the handler has a token of its own kind.
    Nothing,
    /// To be who they say; the handler asks for the rest, since it is in a body, or differs from part to part.
    InHandler,
    /// A token, whatever it allows; the handler shows what is its own.
    Token,
    /// A management token.
    Management,
    /// The node's level.
    Node(Level),
    /// The agent's level.
    Agent(Level),
    /// The operator's level.
    Operator(Level),
    /// The plugins' level.
    Plugin(Level),
    /// In some namespace. Which one it is, the body says, and the handler asks for that.
    Somewhere(&'static [Capability]),
    /// In the namespace of the query; for `*`, in any: the answer shows what may be seen.
    Namespace(&'static [Capability]),
    /// In the namespace of the allocation in the path.
    Alloc(&'static [Capability]),
    /// The same; or the token with which another node gets the disk of that allocation, for which it waits.
    AllocOrDisk(&'static [Capability]),
    /// In the namespace of the evaluation in the path.
    Eval(&'static [Capability]),
    /// In the namespace of the deployment in the path.
    Deployment(&'static [Capability]),
    /// In the namespace of the volume in the path.
    Volume(&'static [Capability]),
    /// With the node pool in the path.
    Pool(PoolCapability),
    /// All of these.
    Each(&'static [Need]),
    /// What the request itself leads to.
    Of(fn(&Asked<'_>) -> Need),
}

/// A request, as far as that says what it needs.
pub(crate) struct Asked<'a> {
    /// The path of the route, as it was made.
    pub(crate) pattern: &'static str,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
}

impl Asked<'_> {
    /// What stands in the path where the route has this name.
    pub(crate) fn part(&self, name: &str) -> Option<String> {
        let parts = self.pattern.split('/').zip(self.uri.path().split('/'));
        let mut named = parts.filter(|(pattern, _)| {
            let inner = pattern
                .strip_prefix('{')
                .and_then(|it| it.strip_suffix('}'));
            inner == Some(name)
        });
        named.next().and_then(|(_, text)| percent_decode(text))
    }

    /// The first value of a parameter of the query, unless it is empty.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(self.uri).ok()?;
        let mut values = query.0.into_iter().filter(|(key, _)| key == name);
        values
            .next()
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    }

    fn namespace(&self) -> String {
        self.query("namespace")
            .unwrap_or_else(|| "default".to_owned())
    }

    pub(super) fn id<T: core::str::FromStr>(&self) -> Option<T> {
        self.part("id")?.parse().ok()
    }
}

impl Need {
    /// Whether somebody has what a request needs.
    ///
    /// # Errors
    /// They have not, or the agent ends.
    pub(super) async fn check(
        self,
        api: &Api,
        principal: &Principal,
        asked: &Asked<'_>,
    ) -> Result<(), ApiError> {
        if principal.rights().is_management() {
            return Ok(());
        }
        let need = match self {
            Need::Of(need) => need(asked),
            need => need,
        };
        let needs = match &need {
            Need::Each(needs) => needs,
            need => core::slice::from_ref(need),
        };
        for need in needs {
            need.check_one(api, principal, asked).await?;
        }
        Ok(())
    }

    async fn check_one(
        self,
        api: &Api,
        principal: &Principal,
        asked: &Asked<'_>,
    ) -> Result<(), ApiError> {
        let rights = principal.rights();
        let of_namespace =
            |namespace: &str, capabilities| require(principal.may_one_of(namespace, capabilities));
        match self {
            Need::Nothing | Need::InHandler => Ok(()),
            Need::Token => require(principal.token().is_some()),
            // A need is never of a need of a need.
            Need::Management | Need::Each(_) | Need::Of(_) => require(rights.is_management()),
            Need::Node(level) => require(rights.node(level)),
            Need::Agent(level) => require(rights.agent(level)),
            Need::Operator(level) => require(rights.operator(level)),
            Need::Plugin(level) => require(rights.plugin(level)),
            Need::Somewhere(capabilities) => of_namespace("*", capabilities),
            Need::Namespace(capabilities) => of_namespace(&asked.namespace(), capabilities),
            Need::Alloc(capabilities) | Need::AllocOrDisk(capabilities) => {
                let id = asked.id::<AllocId>();
                of_namespace(&namespace_of(api, id, of_alloc).await?, capabilities)
            }
            Need::Eval(capabilities) => {
                let id = asked.id::<EvalId>();
                of_namespace(&namespace_of(api, id, of_eval).await?, capabilities)
            }
            Need::Deployment(capabilities) => {
                let id = asked.id::<DeploymentId>();
                of_namespace(&namespace_of(api, id, of_deployment).await?, capabilities)
            }
            Need::Volume(capabilities) => {
                let id = asked.id::<VolumeId>();
                of_namespace(&namespace_of(api, id, of_volume).await?, capabilities)
            }
            Need::Pool(capability) => {
                let name = asked.part("name").unwrap_or_default();
                require(rights.may_pool(&name, capability))
            }
        }
    }
}

/// The namespace of an object; `*` for one that is not there: whoever may do it somewhere is told that it is not.
async fn namespace_of<Id: Send + 'static>(
    api: &Api,
    id: Option<Id>,
    find: fn(View<'_>, Id) -> Option<String>,
) -> Result<String, ApiError> {
    let Some(id) = id else {
        return Ok("*".to_owned());
    };
    let found = api.agent_handle.ask(move |view| find(view, id)).await?;
    Ok(found.unwrap_or_else(|| "*".to_owned()))
}

/// The namespace of an allocation, be it here or collected.
pub(crate) fn of_alloc(view: View<'_>, id: AllocId) -> Option<String> {
    let alloc = view.shown_alloc(id)?;
    Some(alloc.record().job.namespace.to_string())
}

fn of_eval(view: View<'_>, id: EvalId) -> Option<String> {
    Some(view.eval(id)?.job.namespace.to_string())
}

fn of_deployment(view: View<'_>, id: DeploymentId) -> Option<String> {
    Some(view.deployment(id)?.job.namespace.to_string())
}

fn of_volume(view: View<'_>, id: VolumeId) -> Option<String> {
    let record = view.machine().volumes().record(id)?;
    Some(record.spec.namespace.clone())
}
