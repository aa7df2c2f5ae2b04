//! Answers: one JSON value, and the headers that clients read.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use drover_core::effect::Reply;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use super::errors::ApiError;
use super::params::Params;

/// What every handler gives back.
pub(super) type Answer = Result<Response, ApiError>;

/// A JSON answer that has nothing to do with the state.
pub(super) fn json(params: &Params, value: &impl Serialize) -> Answer {
    Ok(json_body(encode(params.pretty, value)?.into()))
}

fn json_body(body: Body) -> Response {
    let mut response = Response::new(body);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A JSON answer out of the state.
pub(super) fn read(params: &Params, index: u64, value: &impl Serialize) -> Answer {
    Ok(read_body(index, encode(params.pretty, value)?.into()))
}

/// The same, of JSON that is made already, or while it is sent.
pub(super) fn read_body(index: u64, body: Body) -> Response {
    let mut response = json_body(body);
    state_headers(response.headers_mut(), index);
    response
}

/// A JSON answer to a change.
pub(super) fn written(params: &Params, index: u64, value: &impl Serialize) -> Answer {
    let mut response = json(params, value)?;
    let headers = response.headers_mut();
    headers.insert("x-nomad-index", HeaderValue::from(index));
    Ok(response)
}

/// An answer without a body.
pub(super) fn empty() -> Answer {
    Ok(Response::new(Body::empty()))
}

/// An answer without a body to a change that has nothing to tell but its index.
pub(super) fn done(reply: Reply) -> Answer {
    let Reply::Done { index } = reply else {
        return Err(ApiError::unexpected(reply));
    };
    let mut response = empty()?;
    let headers = response.headers_mut();
    headers.insert("x-nomad-index", HeaderValue::from(index));
    Ok(response)
}

/// The headers of everything that is read from the state. An index of 0 would make clients ask
/// again at once, for ever.
pub(super) fn state_headers(headers: &mut HeaderMap, index: u64) {
    headers.insert("x-nomad-index", HeaderValue::from(index.max(1)));
    headers.insert("x-nomad-knownleader", HeaderValue::from_static("true"));
    headers.insert("x-nomad-lastcontact", HeaderValue::from_static("0"));
}

fn encode(pretty: bool, value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut text = Vec::new();
    let done = if pretty {
        let format = PrettyFormatter::with_indent(b"    ");
        let mut to = serde_json::Serializer::with_formatter(&mut text, format);
        let done = value.serialize(&mut to);
        text.push(b'\n');
        done
    } else {
        serde_json::to_writer(&mut text, value)
    };
    done.map_err(not_encoded)?;
    Ok(text)
}

/// An answer has no JSON.
pub(super) fn not_encoded(error: serde_json::Error) -> ApiError {
    ApiError::failed(format!("cannot encode the answer: {error}"))
}
