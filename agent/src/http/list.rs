//! Lists. The JSON of a long one is made in pieces, on threads where that delays nobody ([`aside`]): each while the one before it
//! is sent, so that a list of 10,000 is never in memory as a whole.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures::{StreamExt, stream};
use serde::Serialize;
use tokio::task::JoinHandle;

use super::answer::{self, Answer};
use super::aside;
use super::blocking::Indexed;
use super::errors::ApiError;
use super::filter::Row;
use super::params::Params;

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
async fn elsewhere<R: Send + 'static>(
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
struct Written<T, W> {
    items: Vec<T>,
    write: W,
}

/// A piece of a list, and with which element the next one begins; none if that was the last.
type Piece = (Vec<u8>, Option<usize>);

impl<T, W> Written<T, W>
where
    T: Send + Sync + 'static,
    W: Fn(&T, &mut Vec<u8>) -> serde_json::Result<()> + Send + Sync + 'static,
{
    /// The JSON from an element on.
    fn piece(&self, from: usize) -> serde_json::Result<Piece> {
        let mut text = Vec::new();
        text.push(if from == 0 { b'[' } else { b',' });
        for (at, item) in self.items.iter().enumerate().skip(from) {
            if text.len() >= PIECE {
                return Ok((text, Some(at)));
            }
            if at > from {
                text.push(b',');
            }
            (self.write)(item, &mut text)?;
        }
        text.push(b']');
        Ok((text, None))
    }

    fn begin(self: &Arc<Self>, from: usize) -> JoinHandle<serde_json::Result<Piece>> {
        let list = self.clone();
        aside::spawn(move || list.piece(from))
    }
}

/// A list of which the first piece is there, which may be all of it.
struct Begun<T, W> {
    list: Arc<Written<T, W>>,
    first: Piece,
}

impl<T, W> Begun<T, W>
where
    T: Send + Sync + 'static,
    W: Fn(&T, &mut Vec<u8>) -> serde_json::Result<()> + Send + Sync + 'static,
{
    fn new(items: Vec<T>, write: W) -> Result<Begun<T, W>, ApiError> {
        let list = Arc::new(Written { items, write });
        let first = list.piece(0).map_err(answer::not_encoded)?;
        Ok(Begun { list, first })
    }

    /// Its JSON: as a whole if that is one piece, otherwise each while the one before it is sent.
    fn body(self) -> Body {
        let Begun { list, first } = self;
        let (text, Some(next)) = first else {
            return first.0.into();
        };
        let second = list.begin(next);
        let rest = stream::try_unfold(Some(second), move |making| {
            let list = list.clone();
            async move {
                let Some(making) = making else {
                    return Ok(None);
                };
                let (text, next) = making.await??;
                Ok::<_, io::Error>(Some((text, next.map(|next| list.begin(next)))))
            }
        });
        let first = stream::once(async move { Ok(text) });
        Body::from_stream(first.chain(rest))
    }
}
