//! Tasks' output as lines.

use bytes::Bytes;
use tokio::sync::mpsc;

/// A line longer than this is shown in parts.
const LONGEST: usize = 16 * 1024;

/// A line that a task wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The task.
    pub(super) task: String,
    /// Whether it went to standard error.
    pub(super) is_error: bool,
    /// The line without its end.
    pub(super) text: String,
}

/// Cuts what comes in `chunks` into lines.
pub(super) async fn lines(
    mut chunks: mpsc::Receiver<Bytes>,
    task: String,
    is_error: bool,
    to: mpsc::Sender<Line>,
) {
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let chunk = chunks.recv().await;
        rest.extend_from_slice(chunk.as_deref().unwrap_or_default());
        while let Some(bytes) = cut(&mut rest, chunk.is_none()) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if to
                .send(Line {
                    task: task.clone(),
                    is_error,
                    text,
                })
                .await
                .is_err()
            {
                return;
            }
        }
        if chunk.is_none() {
            return;
        }
    }
}

/// The first line of `rest`, which loses it.
fn cut(rest: &mut Vec<u8>, at_end: bool) -> Option<Vec<u8>> {
    let end = rest.iter().position(|byte| *byte == b'\n');
    let (take, drop) = match end {
        Some(end) => (end, end + 1),
        None if rest.len() >= LONGEST || (at_end && !rest.is_empty()) => (rest.len(), rest.len()),
        None => return None,
    };
    let line = rest[..take].to_vec();
    rest.drain(..drop);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_joined_from_chunks() {
        let (chunks, taken) = mpsc::channel(8);
        for chunk in ["one\ntw", "o\n\nthr", "ee"] {
            chunks
                .send(Bytes::from_static(chunk.as_bytes()))
                .await
                .unwrap_or_default();
        }
        drop(chunks);
        let (to, mut shown) = mpsc::channel(8);
        lines(taken, "t".to_owned(), false, to).await;
        let mut texts = Vec::new();
        while let Some(line) = shown.recv().await {
            texts.push(line.text);
        }
        assert_eq!(texts, ["one", "two", "", "three"]);
    }
}
