//! Errors, as Nomad returns them: a status and the message itself as plain text.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use drover_core::agent::View;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::AllocId;

use super::serve::{Busy, RETRY_AFTER};
use crate::agent_handle::AgentStopped;

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// The status.
    pub(crate) status: StatusCode,
    /// The whole body.
    pub(crate) message: String,
    /// The state's index, where the question went to the state.
    pub(super) index: Option<u64>,
}

impl ApiError {
    /// Any error.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError {
            status,
            message: message.into(),
            index: None,
        }
    }

    /// The request makes no sense.
    pub(crate) fn bad(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    /// Whoever asks may not do that.
    pub(crate) fn denied() -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "Permission denied")
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, message)
    }

    /// There is no such allocation, or nothing of it but a record.
    pub(super) fn no_alloc(view: View<'_>, id: AllocId) -> ApiError {
        ApiError::not_found(match view.collected_alloc(id) {
            Some(_) => format!(
                "the directory of allocation \"{id}\" was garbage-collected: its logs and files are gone"
            ),
            None => format!("Unknown allocation \"{id}\""),
        })
    }

    /// Everything else that fails.
    pub(crate) fn failed(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// The path has another method.
    pub(super) fn method() -> ApiError {
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Invalid method")
    }

    /// The same error with the index of the state that was looked at.
    #[must_use]
    pub(super) fn at(mut self, index: u64) -> ApiError {
        self.index = Some(index);
        self
    }

    /// What the core refuses.
    pub(super) fn refused(refusal: Refusal) -> ApiError {
        match refusal {
            Refusal::NotFound(message) => ApiError::not_found(message),
            Refusal::Conflict(message) => ApiError::failed(message),
            Refusal::Invalid(message) => ApiError::bad(message),
            Refusal::Forbidden(message) => ApiError::new(StatusCode::FORBIDDEN, message),
        }
    }

    /// A reply that does not belong to what was asked.
    pub(crate) fn unexpected(reply: Reply) -> ApiError {
        match reply {
            Reply::Refused(refusal) => ApiError::refused(refusal),
            Reply::Registered { .. }
            | Reply::Dispatched { .. }
            | Reply::Stopping { .. }
            | Reply::Deployment { .. }
            | Reply::Variable(_)
            | Reply::AclToken(_)
            | Reply::Volume(_)
            | Reply::HandedOver(_)
            | Reply::NodeChanged { .. }
            | Reply::Done { .. } => ApiError::failed("the agent sent an unexpected answer"),
        }
    }
}

impl From<AgentStopped> for ApiError {
    fn from(gone: AgentStopped) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, gone.to_string())
    }
}

impl From<Busy> for ApiError {
    fn from(busy: Busy) -> ApiError {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, busy.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        let mut response = (self.status, kind, self.message).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            let seconds = HeaderValue::from_static(RETRY_AFTER);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if let Some(index) = self.index {
            super::answer::state_headers(response.headers_mut(), index);
        }
        response
    }
}
