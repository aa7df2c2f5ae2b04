//! Lists. The JSON of a long one is made in pieces, on threads where that delays nobody ([`aside`]): while those before them
//! are sent, so that a list of 10,000 is never in memory as a whole.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures::{StreamExt, stream};
use serde::Serialize;

use super::answer::{self, Answer};
use super::aside;
use super::blocking::Indexed;
use super::errors::ApiError;
use super::filter::Row;
use super::params::Params;

/// How many pieces are made at a time.
const AHEAD: usize = 2;

/// The most elements of a list that is made where it is asked for.
const FEW: usize = 64;

/// How many bytes of a list are made at a time, or a little more. What is shorter is sent as a whole.
const PIECE: usize = 256 * 1024;

/// The page of a list that is asked for, of what the filter takes.
pub(super) async fn list<T: Row + Send + Sync + 'static, D: Serialize>(
    params: Params,
    seen: Indexed<Vec<T>>,
    token: impl Fn(&T) -> String + Send + 'static,
    shown: impl Fn(&T) -> D + Send + Sync + 'static,
) -> Answer {
    if params.pretty {
        return pretty(params, seen, token, shown).await;
    }
    let write = move |item: &T, text: &mut Vec<u8>| serde_json::to_writer(text, &shown(item));
    list_as(params, seen, token, |_| write).await
}

/// The same, in the form for people: of that nothing is long.
async fn pretty<T: Row + Send + 'static, D: Serialize>(
    params: Params,
    seen: Indexed<Vec<T>>,
    token: impl Fn(&T) -> String + Send + 'static,
    shown: impl Fn(&T) -> D + Send + 'static,
) -> Answer {
    let count = seen.value.len();
    elsewhere(count, move || {
        let page = params.page(seen.value, token)?;
        let mut response = answer::read(&params, seen.index, &Shown(&page.items, shown))?;
        name_next(&mut response, page.next);
        Ok(response)
    })
    .await
}

/// The page of a list, of which each element is written by what is told how many there are.
pub(super) async fn list_as<T, W>(
    params: Params,
    seen: Indexed<Vec<T>>,
    token: impl Fn(&T) -> String + Send + 'static,
    written: impl FnOnce(usize) -> W + Send + 'static,
) -> Answer
where
    T: Row + Send + Sync + 'static,
    W: Fn(&T, &mut Vec<u8>) -> serde_json::Result<()> + Send + Sync + 'static,
{
    let (index, count) = (seen.index, seen.value.len());
    let (list, next) = elsewhere(count, move || {
        let page = params.page(seen.value, token)?;
        let write = written(page.items.len());
        Ok((Begun::new(page.items, write)?, page.next))
    })
    .await?;
    let mut response = answer::read_body(index, list.body());
    name_next(&mut response, next);
    Ok(response)
}

/// A list of all of these.
pub(super) async fn whole<T, W>(index: u64, items: Vec<T>, write: W) -> Answer
where
    T: Send + Sync + 'static,
    W: Fn(&T, &mut Vec<u8>) -> serde_json::Result<()> + Send + Sync + 'static,
{
    let list = elsewhere(items.len(), move || Begun::new(items, write)).await?;
    Ok(answer::read_body(index, list.body()))
}

/// Does it where that delays nobody, if there is much to do.
pub(super) async fn elsewhere<R: Send + 'static>(
    count: usize,
    make: impl FnOnce() -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError> {
    if count <= FEW {
        return make();
    }
    let made = aside::spawn(make).await;
    made.map_err(|_| ApiError::failed("the answer could not be made"))?
}

/// Says where the next page begins.
fn name_next(response: &mut Response, next: Option<String>) {
    if let Some(next) = next.and_then(|token| token.parse().ok()) {
        response.headers_mut().insert("x-nomad-nexttoken", next);
    }
}

/// A list in the form for people, of which each element is made when it is written, so that there is never more than
/// one of them.
struct Shown<'a, T, F>(&'a [T], F);

impl<T, D: Serialize, F: Fn(&T) -> D> Serialize for Shown<'_, T, F> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(&self.1))
    }
}

/// A list, and how its elements are written.
struct Written<T: Send + 'static, W> {
    items: Vec<T>,
    write: W,
}

impl<T: Send + 'static, W> Drop for Written<T, W> {
    /// To free very many takes a while, too.
    fn drop(&mut self) {
        let items = core::mem::take(&mut self.items);
        if items.len() > FEW {
            aside::spawn(move || drop(items));
        }
    }
}

impl<T, W> Written<T, W>
where
    T: Send + Sync + 'static,
    W: Fn(&T, &mut Vec<u8>) -> serde_json::Result<()> + Send + Sync + 'static,
{
    /// The JSON of the first elements, and how many these are.
    fn first(&self) -> serde_json::Result<(Vec<u8>, usize)> {
        let mut text = vec![b'['];
        for at in 0..self.items.len() {
            if text.len() >= PIECE {
                return Ok((text, at));
            }
            self.add(at, &mut text)?;
        }
        text.push(b']');
        Ok((text, self.items.len()))
    }

    /// The JSON of these elements, in about so many bytes.
    fn piece(&self, range: Range<usize>, bytes: usize) -> serde_json::Result<Vec<u8>> {
        let mut text = Vec::with_capacity(bytes);
        let is_last = range.end == self.items.len();
        for at in range {
            self.add(at, &mut text)?;
        }
        if is_last {
            text.push(b']');
        }
        Ok(text)
    }

    fn add(&self, at: usize, text: &mut Vec<u8>) -> serde_json::Result<()> {
        if at > 0 {
            text.push(b',');
        }
        let item = self.items.get(at);
        item.map_or(Ok(()), |item| (self.write)(item, text))
    }
}

/// A list of which the first piece is there, which may be all of it.
struct Begun<T: Send + 'static, W> {
    list: Arc<Written<T, W>>,
    first: Vec<u8>,
    /// How many elements are in it.
    count: usize,
}

impl<T, W> Begun<T, W>
where
    T: Send + Sync + 'static,
    W: Fn(&T, &mut Vec<u8>) -> serde_json::Result<()> + Send + Sync + 'static,
{
    fn new(items: Vec<T>, write: W) -> Result<Begun<T, W>, ApiError> {
        let list = Arc::new(Written { items, write });
        let (first, count) = list.first().map_err(answer::not_encoded)?;
        Ok(Begun { list, first, count })
    }

    /// Its JSON: as a whole if that is one piece, otherwise in pieces of as many elements, two of them made while the
    /// one before is sent.
    fn body(self) -> Body {
        let Begun { list, first, count } = self;
        let all = list.items.len();
        if count == all {
            return first.into();
        }
        let bytes = first.len() + first.len() / 8;
        let begins = (count..all).step_by(count);
        let pieces = begins.map(move |from| {
            let (list, until) = (list.clone(), all.min(from + count));
            aside::spawn(move || list.piece(from..until, bytes))
        });
        let rest = stream::iter(pieces).buffered(AHEAD);
        let rest = rest.map(|made| Ok::<_, io::Error>(made??));
        let first = stream::once(async move { Ok(first) });
        Body::from_stream(first.chain(rest))
    }
}
