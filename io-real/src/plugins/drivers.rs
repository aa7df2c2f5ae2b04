//! How a driver that is a plugin is doing, as the core's effects ask it.

use std::sync::Arc;

use super::one::{One, Running};
use crate::driver::DriverStream;

/// Tells how the driver is until nothing more comes.
pub(super) async fn tell(one: Arc<One>, news: DriverStream) {
    match one.running().await {
        Ok(running) => {
            let why = listen(&running, &news).await;
            one.give_up(&running).await;
            news.ended(why);
        }
        Err(failure) => news.ended(failure.message),
    }
}

async fn listen(running: &Running, news: &DriverStream) -> String {
    let mut health = match running.plugin.driver_health().await {
        Ok(health) => health,
        Err(error) => return error.to_string(),
    };
    loop {
        match health.next().await {
            Ok(Some(said)) => news.say(said),
            Ok(None) => return "it ended its stream of fingerprints".to_owned(),
            Err(error) => return running.broke(error).await,
        }
    }
}
