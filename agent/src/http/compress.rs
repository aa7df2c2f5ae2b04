//! Answers in gzip, for clients that take it. A stream is flushed after each of its frames, so that whoever
//! follows a log reads a line when it was written. The event stream is never compressed, as in Nomad.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Frame;

/// How much is compressed before others have their turn.
const PIECE: usize = 64 * 1024;
/// Shorter answers would not be smaller.
const SHORTEST: u64 = 256;

/// Whether the answer to a request is to be compressed.
pub(super) fn is_wanted(request: &Request) -> bool {
    takes_gzip(request.headers()) && request.uri().path() != "/v1/event/stream"
}

/// Compresses the answer, if that is wanted, and says that it depends on what is wanted.
pub(super) fn compress(mut response: Response, is_wanted: bool) -> Response {
    let vary = HeaderValue::from_static("Accept-Encoding");
    response.headers_mut().append(header::VARY, vary);
    let size = response.body().size_hint();
    let fits = size.exact().is_none_or(|size| size >= SHORTEST);
    let plain = !response.headers().contains_key(header::CONTENT_ENCODING);
    let has_body = !matches!(
        response.status(),
        StatusCode::SWITCHING_PROTOCOLS | StatusCode::NO_CONTENT
    );
    if !(is_wanted && fits && plain && has_body) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let gzip = HeaderValue::from_static("gzip");
    parts.headers.insert(header::CONTENT_ENCODING, gzip);
    let gzipped = Gzipped {
        body,
        encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())),
        rest: Bytes::new(),
    };
    Response::from_parts(parts, Body::new(gzipped))
}

/// Whether a client says that it takes gzip, and not that it does not.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','));
    codings.any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let quality: String = quality.split_whitespace().collect();
        let is_refused = quality
            .strip_prefix("q=")
            .is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// A body on its way through the encoder.
struct Gzipped {
    body: Body,
    /// None when everything was said.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// What of the last frame is not compressed yet.
    rest: Bytes,
}

impl Gzipped {
    /// Compresses the next piece of the rest. What came of it may be nothing.
    fn piece(&mut self) -> std::io::Result<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        let Some(encoder) = &mut self.encoder else {
            return Ok(Bytes::new());
        };
        encoder.write_all(&piece)?;
        if self.rest.is_empty() {
            encoder.flush()?;
        }
        Ok(std::mem::take(encoder.get_mut()).into())
    }
}

impl HttpBody for Gzipped {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            if !self.rest.is_empty() {
                let piece = self.piece().map_err(axum::Error::new);
                match piece {
                    Ok(bytes) if bytes.is_empty() => continue,
                    Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            if self.encoder.is_none() {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers mean nothing here.
                    self.rest = frame.into_data().unwrap_or_default();
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let end = self.encoder.take().map(GzEncoder::finish);
                    let end = end.transpose().map_err(axum::Error::new);
                    return Poll::Ready(match end {
                        Ok(end) => end.map(|end| Ok(Frame::data(end.into()))),
                        Err(error) => Some(Err(error)),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use futures::stream;
    use http_body_util::BodyExt;

    use super::*;

    fn gzipped(body: Body) -> Gzipped {
        Gzipped {
            body,
            encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())),
            rest: Bytes::new(),
        }
    }

    #[tokio::test]
    async fn compressed_body_is_the_same_body() {
        for text in [
            String::new(),
            "x".repeat(10),
            "line of a log\n".repeat(50_000),
        ] {
            let body = gzipped(Body::from(text.clone()));
            let packed = body.collect().await.unwrap().to_bytes();
            let mut plain = String::new();
            let read = MultiGzDecoder::new(&packed[..]).read_to_string(&mut plain);
            assert_eq!(read.unwrap(), text.len());
            assert_eq!(plain, text);
        }
    }

    #[tokio::test]
    async fn each_frame_of_a_stream_can_be_read_at_once() {
        let frames = stream::iter(["one\n", "two\n"].map(Ok::<_, Infallible>));
        let endless = futures::StreamExt::chain(frames, stream::pending());
        let mut body = gzipped(Body::from_stream(endless));
        let mut packed = Vec::new();
        for expected in ["one\n", "one\ntwo\n"] {
            let frame = body.frame().await.unwrap().unwrap();
            packed.extend_from_slice(frame.data_ref().unwrap());
            let mut plain = vec![0; 64];
            let mut decoder = flate2::write::GzDecoder::new(&mut plain[..]);
            decoder.write_all(&packed).unwrap();
            let _ = decoder.flush();
            drop(decoder);
            assert!(plain.starts_with(expected.as_bytes()), "{plain:?}");
        }
    }

    #[test]
    fn gzip_is_used_only_where_it_is_taken() {
        let takes = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            takes_gzip(&headers)
        };
        assert!(takes("gzip") && takes("gzip, deflate") && takes("br;q=1, GZIP;q=0.5"));
        assert!(!takes("identity") && !takes("gzip;q=0") && !takes("") && !takes("br"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
