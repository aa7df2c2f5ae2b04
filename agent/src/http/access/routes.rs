//! Routes, each with what whoever asks needs: there is no other way to make one.

use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;

use super::check;
use super::need::Need;
use crate::http::Api;

/// What a route needs of whoever reads, and of whoever changes something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    read: Need,
    write: Need,
    /// Whether reading acts.
    acts: bool,
}

impl Needs {
    pub(crate) const fn new(read: Need, write: Need) -> Needs {
        let acts = false;
        Needs { read, write, acts }
    }

    /// The same for all methods.
    pub(crate) const fn all(need: Need) -> Needs {
        Needs::new(need, need)
    }

    /// The same, where reading acts.
    const fn acting(need: Need) -> Needs {
        let acts = true;
        Needs {
            acts,
            ..Needs::all(need)
        }
    }

    /// Whether a GET does more than to read.
    pub(super) fn acts_by_get(&self) -> bool {
        self.acts
    }

    pub(super) fn of(&self, method: &Method) -> Need {
        match *method == Method::GET {
            true => self.read,
            false => self.write,
        }
    }
}

/// A route with what it needs.
pub(super) struct Guarded {
    pub(super) api: Api,
    pub(super) path: &'static str,
    pub(super) needs: Needs,
}

/// All routes.
pub(crate) struct Routes {
    api: Api,
    router: Router<Api>,
    /// Each path, for those who want to know which there are.
    paths: Vec<(&'static str, Needs)>,
}

impl Routes {
    /// None yet.
    pub(crate) fn new(api: Api) -> Routes {
        Routes {
            api,
            router: Router::new(),
            paths: Vec::new(),
        }
    }

    /// One more: who reads needs the first, who changes something the second.
    pub(crate) fn route(
        self,
        path: &'static str,
        read: Need,
        write: Need,
        handlers: MethodRouter<Api>,
    ) -> Routes {
        self.add(path, Needs::new(read, write), handlers)
    }

    /// One more, of which every method needs the same.
    pub(crate) fn plain(
        self,
        path: &'static str,
        need: Need,
        handlers: MethodRouter<Api>,
    ) -> Routes {
        self.add(path, Needs::all(need), handlers)
    }

    /// The same of a route whose GET does more than to read. Each of these has to be made so: a test asks all routes.
    pub(crate) fn acting(
        self,
        path: &'static str,
        need: Need,
        handlers: MethodRouter<Api>,
    ) -> Routes {
        self.add(path, Needs::acting(need), handlers)
    }

    fn add(mut self, path: &'static str, needs: Needs, handlers: MethodRouter<Api>) -> Routes {
        let guarded = Arc::new(Guarded {
            api: self.api.clone(),
            path,
            needs,
        });
        let handlers = handlers.layer(from_fn_with_state(guarded, check));
        self.router = self.router.route(path, handlers);
        self.paths.push((path, needs));
        self
    }

    /// What there is, with what it needs.
    #[cfg(test)]
    pub(crate) fn paths(&self) -> &[(&'static str, Needs)] {
        &self.paths
    }

    /// As a router.
    pub(crate) fn into_router(self) -> Router<Api> {
        self.router
    }
}
