//! `drover job logs`: what all copies of a job write, line by line, each with the name of its copy in front.

use std::collections::{BTreeMap, BTreeSet};

use hyper::Method;
use tokio::sync::mpsc;

use super::args::JobLogsArgs;
use super::client::{Answer, Client};
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::frames::{Frames, Piece};
use super::lookup::{self, job_path};
use super::table::short;
use crate::http::dto::{AllocStub, JobStub};

/// How many lines wait to be shown before streams wait.
const AHEAD: usize = 256;
/// How long a line grows before it is shown without its end.
const LONGEST: usize = 64 << 10;
/// The colours of copies, one after the other.
const COLOURS: [&str; 6] = ["36", "33", "32", "35", "34", "31"];

/// What a copy wrote, or why no more is shown of it.
struct Line {
    label: String,
    colour: &'static str,
    stream: &'static str,
    text: Result<Vec<u8>, String>,
}

/// One stream of one task of one copy.
#[derive(Clone)]
struct Stream {
    client: Client,
    alloc: String,
    task: String,
    stream: &'static str,
    label: String,
    colour: &'static str,
    args: JobLogsArgs,
}

/// Runs the command.
///
/// # Errors
/// The job cannot be found, or the agent does not answer.
pub(super) async fn run(cx: &mut Context, args: JobLogsArgs) -> Outcome {
    let job = lookup::job(cx, &args.id).await?;
    if job.periodic || job.parameterized_job {
        let id = &job.id;
        let words = format!(
            "job {id} runs nothing itself, so it has no logs: ask for those of a job that it made"
        );
        let hint = format!("`drover job status {id}` names them.");
        return Err(Failure::new(words).or_try(Some(hint)));
    }
    let (lines, mut shown) = mpsc::channel(AHEAD);
    let mut copies = Copies {
        args,
        known: BTreeSet::new(),
        firsts: BTreeMap::new(),
        lines,
    };
    let mut index = copies.begin(cx, &job, 0).await?;
    // What starts later is shown from its first line.
    copies.args.now = false;
    if !copies.args.follow {
        // The last stream that ends takes the last sender along.
        drop(copies);
        while let Some(line) = shown.recv().await {
            show(cx, line)?;
        }
        return Ok(0);
    }
    loop {
        let client = cx.client.clone();
        let more = list(&client, &job, index);
        let mut more = std::pin::pin!(more);
        let list = loop {
            tokio::select! {
                Some(line) = shown.recv() => show(cx, line)?,
                list = &mut more => break list?,
            }
        };
        index = copies.add(cx, list);
    }
}

/// The copies of a job that are shown.
struct Copies {
    args: JobLogsArgs,
    known: BTreeSet<(String, String)>,
    /// The first allocation of each copy; those that follow it are labelled with their ids, too.
    firsts: BTreeMap<String, String>,
    lines: mpsc::Sender<Line>,
}

impl Copies {
    async fn begin(&mut self, cx: &Context, job: &JobStub, index: u64) -> Result<u64, Failure> {
        let list = list(&cx.client, job, index).await?;
        Ok(self.add(cx, list))
    }

    /// Begins to show what is new. Returns the index of the list.
    fn add(&mut self, cx: &Context, list: Answer<Vec<AllocStub>>) -> u64 {
        let live = |alloc: &&AllocStub| alloc.client_status != "lost";
        for alloc in list.value.iter().filter(live) {
            let wanted = self.args.task.as_ref();
            let started = alloc.task_states.iter().filter(|(name, state)| {
                let begun = state.started_at.is_some();
                begun && wanted.is_none_or(|wanted| wanted == *name)
            });
            for (task, _) in started {
                if self.known.insert((alloc.id.clone(), task.clone())) {
                    let first = self.firsts.entry(alloc.name.clone());
                    let is_first = *first.or_insert_with(|| alloc.id.clone()) == alloc.id;
                    self.follow(cx, alloc, task, is_first);
                }
            }
        }
        list.index
    }

    fn follow(&self, cx: &Context, alloc: &AllocStub, task: &str, is_first: bool) {
        let both = self.args.stdout == self.args.stderr;
        let streams = [
            ("stdout", both || self.args.stdout),
            ("stderr", both || self.args.stderr),
        ];
        // The job's name is known; what tells copies apart is the rest.
        let copy = alloc
            .name
            .split_once('.')
            .map_or(&*alloc.name, |(_, it)| it);
        let label = match is_first {
            true => format!("{copy}/{task}"),
            false => format!("{copy} {}/{task}", short(&alloc.id, false)),
        };
        let nth = self.known.len().saturating_sub(1);
        for (stream, _) in streams.into_iter().filter(|(_, wanted)| *wanted) {
            let one = Stream {
                client: cx.client.clone(),
                alloc: alloc.id.clone(),
                task: task.to_owned(),
                stream,
                label: label.clone(),
                colour: COLOURS.get(nth % COLOURS.len()).copied().unwrap_or("36"),
                args: self.args.clone(),
            };
            tokio::spawn(one.read(self.lines.clone()));
        }
    }
}

/// The job's allocations, once they are newer than this.
async fn list(
    client: &Client,
    job: &JobStub,
    index: u64,
) -> Result<Answer<Vec<AllocStub>>, Failure> {
    let index = index.to_string();
    let query = [("namespace", &*job.namespace), ("index", &index)];
    client.read(&job_path(job, "/allocations"), &query).await
}

impl Stream {
    async fn read(self, to: mpsc::Sender<Line>) {
        if let Err(failure) = self.pass_on(&to).await {
            // Its directory was garbage-collected, and the logs with it.
            if failure.status == Some(404) {
                return;
            }
            let why = Err(format!("{}: {}", self.stream, failure.message));
            let _ = to.send(self.line(why)).await;
        }
    }

    fn line(&self, text: Result<Vec<u8>, String>) -> Line {
        Line {
            label: self.label.clone(),
            colour: self.colour,
            stream: self.stream,
            text,
        }
    }

    async fn pass_on(&self, to: &mpsc::Sender<Line>) -> Result<(), Failure> {
        let follow = if self.args.follow { "true" } else { "false" };
        let origin = if self.args.now { "now" } else { "start" };
        let query = [
            ("task", self.task.as_str()),
            ("type", self.stream),
            ("origin", origin),
            ("follow", follow),
            ("until_end", follow),
        ];
        let path = format!("/v1/client/fs/logs/{}", self.alloc);
        let sent = self.client.send(Method::GET, &path, &query, None).await?;
        let mut frames = Frames::new(sent.into_body());
        let mut rest = Vec::new();
        while let Some(piece) = frames.next().await? {
            match piece {
                Piece::Bytes(bytes) => rest.extend(bytes),
                Piece::Gap => {
                    let words = "lines are missing here, their file was rotated away";
                    let _ = to.send(self.line(Err(words.to_owned()))).await;
                }
            }
            while let Some(line) = cut(&mut rest) {
                if to.send(self.line(Ok(line))).await.is_err() {
                    return Ok(());
                }
            }
        }
        if !rest.is_empty() {
            let _ = to.send(self.line(Ok(rest))).await;
        }
        Ok(())
    }
}

/// Takes a whole line, or as much as is too long for one.
fn cut(rest: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = rest.iter().position(|byte| *byte == b'\n');
    let too_long = (rest.len() > LONGEST).then_some(LONGEST);
    let (length, skipped) = match end {
        Some(end) => (end, 1),
        None => (too_long?, 0),
    };
    let mut line: Vec<u8> = rest.drain(..length + skipped).collect();
    line.truncate(length);
    Some(line)
}

fn show(cx: &mut Context, line: Line) -> Result<(), Failure> {
    let label = cx.screen.painted(&format!("{} |", line.label), line.colour);
    match line.text {
        Ok(text) => {
            let mut whole = label.into_bytes();
            whole.push(b' ');
            whole.extend(text);
            whole.push(b'\n');
            match line.stream {
                "stderr" => cx.screen.error_bytes(&whole),
                _ => cx.screen.bytes(&whole),
            }
        }
        Err(why) => {
            cx.screen.complain(&format!("==> {} {why} <==", line.label));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_their_ends_or_when_too_long() {
        let mut rest = b"one\n\ntwo".to_vec();
        assert_eq!(cut(&mut rest).as_deref(), Some(b"one".as_slice()));
        assert_eq!(cut(&mut rest).as_deref(), Some(b"".as_slice()));
        assert_eq!(cut(&mut rest), None);
        assert_eq!(rest, b"two");
        rest.resize(LONGEST + 5, b'x');
        assert_eq!(cut(&mut rest).map(|line| line.len()), Some(LONGEST));
        assert_eq!(rest.len(), 5);
    }
}
