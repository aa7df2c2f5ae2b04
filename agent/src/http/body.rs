//! Request bodies: bounded in size and time, and lenient about `null`.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::errors::ApiError;
use super::serve::{Caller, Receiving};
use crate::json::{strip_nulls, typed};

/// The most bytes of a request's body.
pub(super) const MAX_BODY: usize = 10 * 1024 * 1024;
/// A body, counted as long as this is there.
#[derive(Debug)]
struct Received {
    bytes: BytesMut,
    receiving: Receiving,
    /// More is refused.
    most: usize,
}

impl Received {
    /// # Errors
    /// It is too large, or too much is being received at once.
    fn add(&mut self, more: &[u8]) -> Result<(), ApiError> {
        if self.bytes.len() + more.len() > self.most {
            return Err(too_large(self.most));
        }
        self.receiving.grow(more.len())?;
        self.bytes.extend_from_slice(more);
        Ok(())
    }
}

/// Reads the whole body.
///
/// # Errors
/// It is too large, too slow, or breaks off, or there are too many at once.
async fn read(request: Request) -> Result<Received, ApiError> {
    read_within(request, MAX_BODY).await
}

async fn read_within(request: Request, most: usize) -> Result<Received, ApiError> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > most as u64) {
        return Err(too_large(most));
    }
    let caller = request.extensions().get::<Caller>().cloned();
    let receiving = caller.unwrap_or_default().receive()?;
    read_body(request.into_body(), receiving, most).await
}

/// Reads a body of up to `most` bytes that is no JSON.
///
/// # Errors
/// It is too large, too slow, or breaks off, or there are too many at once.
pub(super) async fn bytes(request: Request, most: usize) -> Result<Bytes, ApiError> {
    Ok(read_within(request, most).await?.bytes.freeze())
}

async fn read_body(
    mut body: Body,
    receiving: Receiving,
    most: usize,
) -> Result<Received, ApiError> {
    let (silence, whole) = receiving.times();
    let until = Instant::now() + whole;
    let mut received = Received {
        bytes: BytesMut::new(),
        receiving,
        most,
    };
    loop {
        let due = until.min(Instant::now() + silence);
        let Ok(frame) = timeout_at(due, body.frame()).await else {
            let words = format!(
                "the request's body did not arrive in time: nothing of it came for {silence:?}, \
                 or the whole took longer than {whole:?}"
            );
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, words));
        };
        match frame {
            None => return Ok(received),
            Some(Err(_)) => return Err(ApiError::bad("the request's body broke off")),
            Some(Ok(frame)) => {
                // Trailers mean nothing here.
                if let Some(bytes) = frame.data_ref() {
                    received.add(bytes)?;
                }
            }
        }
    }
}

fn too_large(most: usize) -> ApiError {
    let megabytes = most / 1024 / 1024;
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
    let value = optional_json(request).await?;
    value.ok_or_else(|| ApiError::bad("Request body is empty"))
}

async fn optional_json(request: Request) -> Result<Option<Value>, ApiError> {
    let mut value = whole_json(request).await?;
    value.iter_mut().for_each(strip_nulls);
    Ok(value)
}

async fn whole_json(request: Request) -> Result<Option<Value>, ApiError> {
    let Received { bytes, .. } = &read(request).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_slice(bytes);
    value.map_err(|error| ApiError::bad(error.to_string()))
}

/// As [`decode`], where `null` means something.
///
/// # Errors
/// It is empty, no JSON, or of another shape.
pub(super) async fn decode_with_nulls<T: DeserializeOwned>(
    request: Request,
) -> Result<T, ApiError> {
    let value = whole_json(request).await?;
    let value = value.ok_or_else(|| ApiError::bad("Request body is empty"))?;
    typed(&value).map_err(ApiError::bad)
}

/// Reads the body as JSON of a known shape.
///
/// # Errors
/// It is empty, no JSON, or of another shape.
pub(super) async fn decode<T: DeserializeOwned>(request: Request) -> Result<T, ApiError> {
    let value = json(request).await?;
    typed(&value).map_err(ApiError::bad)
}

/// As [`decode`], where an empty body stands for the default.
///
/// # Errors
/// It is no JSON, or of another shape.
pub(super) async fn decode_or_default<T: DeserializeOwned + Default>(
    request: Request,
) -> Result<T, ApiError> {
    let Some(value) = optional_json(request).await? else {
        return Ok(T::default());
    };
    typed(&value).map_err(ApiError::bad)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures::stream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_steady_body_is_received() {
        let receiving = Caller::default().receive().unwrap();
        let (silence, whole) = receiving.times();
        let pause = silence - Duration::from_secs(1);
        let pieces = 20;
        assert!(pause * pieces > silence * 10 && pause * pieces < whole);
        let body = stream::unfold(0, move |sent| async move {
            tokio::time::sleep(pause).await;
            (sent < pieces).then_some((Ok::<_, Infallible>("piece"), sent + 1))
        });
        let received = read_body(Body::from_stream(body), receiving, MAX_BODY).await;
        assert_eq!(received.unwrap().bytes.len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn endless_body_is_refused() {
        let receiving = Caller::default().receive().unwrap();
        let body = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Some((Ok::<_, Infallible>("piece"), ()))
        });
        let received = read_body(Body::from_stream(body), receiving, MAX_BODY).await;
        assert_eq!(received.unwrap_err().status, StatusCode::REQUEST_TIMEOUT);
    }
}
