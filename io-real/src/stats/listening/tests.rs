//! Time stands still here unless everybody waits, so nothing takes long.

use futures::stream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::*;

/// Says what it hears.
struct Says(UnboundedSender<String>);

impl Listener<u32> for Says {
    fn take(&mut self, said: u32) -> Result<(), String> {
        if said == 13 {
            return Err("13".to_owned());
        }
        let _ = self.0.send(said.to_string());
        Ok(())
    }

    fn over(&mut self, why: Option<&str>) {
        let _ = self.0.send(why.unwrap_or("nobody looks").to_owned());
    }
}

struct World {
    listening: Listening,
    says: UnboundedSender<String>,
    heard: UnboundedReceiver<String>,
}

fn world() -> World {
    let (says, heard) = unbounded_channel();
    World {
        listening: Listening::default(),
        says,
        heard,
    }
}

impl World {
    async fn look(&self, open: Opening<u32>) {
        let says = self.says.clone();
        self.listening
            .look(move || open, || Box::new(Says(says)))
            .await;
    }

    fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

/// A stream of these, which then says no more.
fn says(numbers: &[u32]) -> Opening<u32> {
    let numbers: Vec<_> = numbers.iter().map(|number| Ok(*number)).collect();
    let stream = stream::iter(numbers).chain(stream::pending());
    Box::pin(async { Ok(stream.boxed()) })
}

/// A number each second.
fn ticks() -> Opening<u32> {
    ticks_until(1000)
}

fn ticks_until(last: u32) -> Opening<u32> {
    let stream = stream::unfold(100, move |count| async move {
        if count == 100 + last {
            return None;
        }
        sleep(INTERVAL).await;
        Some((Ok(count), count + 1))
    });
    Box::pin(async { Ok(stream.boxed()) })
}

fn fails() -> Opening<u32> {
    Box::pin(async { Err("no".to_owned()) })
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_open_for_as_long_as_somebody_looks() {
    let mut world = world();
    world.look(says(&[1])).await;
    assert_eq!(world.heard(), ["1"]);
    // Nobody opens a second one.
    world.look(fails()).await;
    assert!(world.heard().is_empty() && !world.listening.is_idle());
    let mut other = self::world();
    other.look(ticks()).await;
    sleep(Duration::from_secs(45)).await;
    other.look(fails()).await;
    sleep(Duration::from_secs(59)).await;
    assert!(!other.listening.is_idle());
    sleep(Duration::from_secs(2)).await;
    assert!(other.listening.is_idle());
    assert_eq!(
        other.heard().last().map(String::as_str),
        Some("nobody looks")
    );
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_asked_again_after_pauses_that_grow() {
    let mut world = world();
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        world.look(fails()).await;
        assert_eq!(world.heard(), ["no"]);
        sleep(Duration::from_secs(pause) - Duration::from_millis(1)).await;
        world.look(fails()).await;
        assert!(world.heard().is_empty(), "asked within {pause} s");
        sleep(Duration::from_millis(2)).await;
    }
    // One that speaks and breaks off at once is no better.
    world.look(says(&[1, 13])).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(world.heard(), ["1", "it cannot be believed: 13"]);
    sleep(Duration::from_secs(59)).await;
    world.look(says(&[2])).await;
    assert!(world.heard().is_empty());
    // One that went on for a while is forgiven.
    sleep(Duration::from_secs(2)).await;
    world.look(ticks_until(20)).await;
    sleep(Duration::from_secs(20)).await;
    let end = world.heard().pop();
    assert_eq!(end.as_deref(), Some("it ended its stream"));
    sleep(Duration::from_millis(1001)).await;
    world.look(says(&[2])).await;
    assert_eq!(world.heard(), ["2"]);
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_failure_and_keeps_nobody_waiting() {
    let mut world = world();
    let began = Instant::now();
    world.look(says(&[])).await;
    assert_eq!(began.elapsed(), PATIENCE);
    sleep(SILENCE).await;
    assert_eq!(world.heard(), ["it says nothing any more"]);
    sleep(Duration::from_secs(2)).await;
    world.look(Box::pin(std::future::pending())).await;
    sleep(SILENCE).await;
    assert_eq!(world.heard(), ["it does not answer"]);
}
