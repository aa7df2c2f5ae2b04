//! Answers: one JSON value, and the headers that clients read.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use super::blocking::Indexed;
use super::errors::ApiError;
use super::filter::Row;
use super::params::Params;

/// What every handler gives back.
pub(super) type Answer = Result<Response, ApiError>;

/// A JSON answer that has nothing to do with the state.
pub(super) fn json(params: &Params, value: &impl Serialize) -> Answer {
    Ok(json_text(encode(params.pretty, value, 0)?))
}

fn json_text(text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A JSON answer out of the state.
pub(super) fn read(params: &Params, index: u64, value: &impl Serialize) -> Answer {
    Ok(read_text(index, encode(params.pretty, value, 0)?))
}

/// The same, of JSON that is made already.
pub(super) fn read_text(index: u64, text: Vec<u8>) -> Response {
    let mut response = json_text(text);
    state_headers(response.headers_mut(), index);
    response
}

/// The page of a list that is asked for, of what the filter takes. It is made on a thread where that delays
/// nobody, if it may be long.
pub(super) async fn list<T: Row + Send + 'static, D: Serialize>(
    params: Params,
    seen: Indexed<Vec<T>>,
    token: impl Fn(&T) -> String + Send + 'static,
    shown: impl Fn(&T) -> D + Send + 'static,
) -> Answer {
    let pretty = params.pretty;
    let written = move |items: &[T]| encode(pretty, &Shown(items, shown), 0);
    list_as(params, seen, token, written).await
}

/// The same, of which the JSON is made all at once.
pub(super) async fn list_as<T: Row + Send + 'static>(
    params: Params,
    seen: Indexed<Vec<T>>,
    token: impl Fn(&T) -> String + Send + 'static,
    written: impl FnOnce(&[T]) -> Result<Vec<u8>, ApiError> + Send + 'static,
) -> Answer {
    let is_long = seen.value.len() > FEW;
    let make = move || {
        let page = params.page(seen.value, token)?;
        let mut response = read_text(seen.index, written(&page.items)?);
        if let Some(next) = page.next.and_then(|token| token.parse().ok()) {
            response.headers_mut().insert("x-nomad-nexttoken", next);
        }
        Ok(response)
    };
    if !is_long {
        return make();
    }
    let made = tokio::task::spawn_blocking(make);
    made.await
        .map_err(|_| ApiError::failed("the answer could not be made"))?
}

/// The most elements of a list that is made where it is asked for.
const FEW: usize = 64;

/// A list of which each element is made when it is written, so that there is never more than one of them.
struct Shown<'a, T, F>(&'a [T], F);

impl<T, D: Serialize, F: Fn(&T) -> D> Serialize for Shown<'_, T, F> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(&self.1))
    }
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

/// The headers of everything that is read from the state. An index of 0 would make clients ask
/// again at once, for ever.
pub(super) fn state_headers(headers: &mut HeaderMap, index: u64) {
    headers.insert("x-nomad-index", HeaderValue::from(index.max(1)));
    headers.insert("x-nomad-knownleader", HeaderValue::from_static("true"));
    headers.insert("x-nomad-lastcontact", HeaderValue::from_static("0"));
}

/// JSON of about so many bytes: it is not moved while it grows up to them.
pub(super) fn encode(
    pretty: bool,
    value: &impl Serialize,
    bytes: usize,
) -> Result<Vec<u8>, ApiError> {
    let mut text = Vec::with_capacity(bytes);
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
