//! A host that speaks to whoever connects as it was told to, which need not be HTTP: it sends nothing,
//! stops in the middle, is slow without an end, or says other lengths than it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;
use turmoil::net::{TcpListener, TcpStream};

use super::giver::PORT;

/// How many bytes are written at once.
const PIECE: usize = 64 << 10;

/// What it does on a connection, after it has read something.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// It sends these bytes.
    Send(Vec<u8>),
    /// It sends these bytes again and again, after this pause each time.
    Repeat(&'static [u8], Duration),
    /// It keeps the connection and says no more.
    Silence,
}

/// The host. It closes a connection after its last step.
#[derive(Clone, Debug)]
pub(crate) struct Rogue {
    steps: Arc<[Step]>,
    open: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
}

impl Rogue {
    pub(crate) fn new(steps: &[Step]) -> Rogue {
        Rogue {
            steps: steps.into(),
            open: Arc::default(),
            accepted: Arc::default(),
        }
    }

    /// How many connections it has, and how many it ever had.
    pub(crate) fn connections(&self) -> (usize, usize) {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (count(&self.open), count(&self.accepted))
    }

    /// Serves for as long as its host lives.
    pub(crate) async fn serve(self) -> turmoil::Result {
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            let rogue = self.clone();
            rogue.open.fetch_add(1, Ordering::Relaxed);
            rogue.accepted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                // Whoever asks may go away.
                let _ = speak(stream, &rogue.steps).await;
                rogue.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

/// Does its steps until the other side closes the connection.
async fn speak(stream: TcpStream, steps: &[Step]) -> std::io::Result<()> {
    let (mut from, mut to) = stream.into_split();
    let _ = from.read(&mut [0; 4096]).await?;
    let closed = async {
        while from.read(&mut [0; 64]).await? > 0 {}
        Ok(())
    };
    let reported = async {
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    for piece in bytes.chunks(PIECE) {
                        to.write_all(piece).await?;
                    }
                }
                Step::Repeat(bytes, pause) => loop {
                    to.write_all(bytes).await?;
                    sleep(*pause).await;
                },
                Step::Silence => std::future::pending().await,
            }
        }
        to.shutdown().await
    };
    tokio::select! {
        closed = closed => closed,
        reported = reported => reported,
    }
}
