//! Request bodies: bounded in size and time, and lenient about `null`.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::errors::ApiError;
use crate::admission::strip_nulls;

/// The most bytes of a request's body.
pub(super) const MAX_BODY: usize = 10 * 1024 * 1024;
/// How long a client may take to send it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads the whole body.
///
/// # Errors
/// It is too large, too slow, or breaks off.
pub(super) async fn read(request: Request) -> Result<Bytes, ApiError> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    read_body(request.into_body()).await
}

async fn read_body(body: Body) -> Result<Bytes, ApiError> {
    let whole = tokio::time::timeout(PATIENCE, to_bytes(body, MAX_BODY)).await;
    let Ok(whole) = whole else {
        let words = "the request's body did not arrive in time";
        return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, words));
    };
    whole.map_err(|error| match core::error::Error::source(&error) {
        Some(cause) if cause.is::<http_body_util::LengthLimitError>() => too_large(),
        Some(_) | None => ApiError::bad("the request's body broke off"),
    })
}

fn too_large() -> ApiError {
    let megabytes = MAX_BODY / 1024 / 1024;
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request's body is larger than {megabytes} MiB"),
    )
}

/// Reads the body as JSON, without the fields that are `null`.
///
/// # Errors
/// It is empty or no JSON.
pub(super) async fn json(request: Request) -> Result<Value, ApiError> {
    let bytes = read(request).await?;
    if bytes.is_empty() {
        return Err(ApiError::bad("Request body is empty"));
    }
    let mut value =
        serde_json::from_slice(&bytes).map_err(|error| ApiError::bad(error.to_string()))?;
    strip_nulls(&mut value);
    Ok(value)
}

/// Reads the body as JSON of a known shape.
///
/// # Errors
/// It is empty, no JSON, or of another shape.
pub(super) async fn shape<T: DeserializeOwned>(request: Request) -> Result<T, ApiError> {
    let value = json(request).await?;
    serde_json::from_value(value).map_err(|error| ApiError::bad(error.to_string()))
}

/// As [`shape`], where an empty body stands for the default.
///
/// # Errors
/// It is no JSON, or of another shape.
pub(super) async fn shape_or_default<T: DeserializeOwned + Default>(
    request: Request,
) -> Result<T, ApiError> {
    let bytes = read(request).await?;
    if bytes.is_empty() {
        return Ok(T::default());
    }
    let mut value =
        serde_json::from_slice(&bytes).map_err(|error| ApiError::bad(error.to_string()))?;
    strip_nulls(&mut value);
    serde_json::from_value(value).map_err(|error| ApiError::bad(error.to_string()))
}
