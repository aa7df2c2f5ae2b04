//! Time stands still here unless everybody waits, so nothing takes long.

use futures::stream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::*;

/// Says what it hears.
struct Reporter(UnboundedSender<String>);

impl Listener<u32> for Reporter {
    fn take(&mut self, reported: u32) -> Result<(), String> {
        if reported == 13 {
            return Err("13".to_owned());
        }
        let _ = self.0.send(reported.to_string());
        Ok(())
    }

    fn over(&mut self, why: Option<&str>) {
        let _ = self.0.send(why.unwrap_or("nobody looks").to_owned());
    }
}

struct World {
    listening: Listening,
    reports: UnboundedSender<String>,
    received: UnboundedReceiver<String>,
}

fn world() -> World {
    let (reports, received) = unbounded_channel();
    World {
        listening: Listening::default(),
        reports,
        received,
    }
}

impl World {
    async fn subscribe(&self, open: Opening<u32>) {
        let reports = self.reports.clone();
        self.listening
            .subscribe(move || open, || Box::new(Reporter(reports)))
            .await;
    }

    fn received(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }
}

/// A stream of these, which then says no more.
fn reports(numbers: &[u32]) -> Opening<u32> {
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
async fn stats_stream_is_open_while_used() {
    let mut world = world();
    world.subscribe(reports(&[1])).await;
    assert_eq!(world.received(), ["1"]);
    // Nobody opens a second one.
    world.subscribe(fails()).await;
    assert!(world.received().is_empty() && !world.listening.is_idle());
    let mut other = self::world();
    other.subscribe(ticks()).await;
    sleep(Duration::from_secs(45)).await;
    other.subscribe(fails()).await;
    sleep(Duration::from_secs(59)).await;
    assert!(!other.listening.is_idle());
    sleep(Duration::from_secs(2)).await;
    assert!(other.listening.is_idle());
    assert_eq!(
        other.received().last().map(String::as_str),
        Some("nobody looks")
    );
}

#[tokio::test(start_paused = true)]
async fn failed_stats_stream_is_retried_with_backoff() {
    let mut world = world();
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
        world.subscribe(fails()).await;
        assert_eq!(world.received(), ["no"]);
        sleep(Duration::from_secs(pause) - Duration::from_millis(1)).await;
        world.subscribe(fails()).await;
        assert!(world.received().is_empty(), "asked within {pause} s");
        sleep(Duration::from_millis(2)).await;
    }
    // One that speaks and breaks off at once is no better.
    world.subscribe(reports(&[1, 13])).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(world.received(), ["1", "it cannot be believed: 13"]);
    sleep(Duration::from_secs(59)).await;
    world.subscribe(reports(&[2])).await;
    assert!(world.received().is_empty());
    // One that went on for a while is forgiven.
    sleep(Duration::from_secs(2)).await;
    world.subscribe(ticks_until(20)).await;
    sleep(Duration::from_secs(20)).await;
    let end = world.received().pop();
    assert_eq!(end.as_deref(), Some("it ended its stream"));
    sleep(Duration::from_millis(1001)).await;
    world.subscribe(reports(&[2])).await;
    assert_eq!(world.received(), ["2"]);
}

#[tokio::test(start_paused = true)]
async fn silent_stats_stream_fails() {
    let mut world = world();
    let began = Instant::now();
    world.subscribe(reports(&[])).await;
    assert_eq!(began.elapsed(), TIMEOUT);
    sleep(SILENCE).await;
    assert_eq!(world.received(), ["it sends nothing any more"]);
    sleep(Duration::from_secs(2)).await;
    world.subscribe(Box::pin(std::future::pending())).await;
    sleep(SILENCE).await;
    assert_eq!(world.received(), ["it does not answer"]);
}
