//! The public key of tasks' identities.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::json;

use super::Api;

/// How long who checks tokens may keep the keys.
const KEPT: &str = "max-age=300";

pub(super) async fn keys(State(api): State<Api>) -> impl IntoResponse {
    let none = || json!({ "keys": [] });
    let keys = api
        .settings
        .issuer
        .as_ref()
        .map_or_else(none, |issuer| issuer.keys());
    ([(header::CACHE_CONTROL, KEPT)], Json(keys))
}
