//! How a driver that is a plugin is doing, as the core's effects ask it.

use std::sync::Arc;

use super::one::{One, Running};
use crate::driver::DriverStream;

/// Tells how the driver is until nothing more comes.
pub(super) async fn forward_fingerprints(one: Arc<One>, report: DriverStream) {
    match one.running().await {
        Ok(running) => {
            let why = listen(&running, &report).await;
            one.give_up(&running).await;
            report.ended(why);
        }
        Err(failure) => report.ended(failure.message),
    }
}

async fn listen(running: &Running, report: &DriverStream) -> String {
    let mut health = match running.plugin.driver_health().await {
        Ok(health) => health,
        Err(error) => return error.to_string(),
    };
    loop {
        match health.next().await {
            Ok(Some(reported)) => report.report(reported),
            Ok(None) => return "it ended its stream of fingerprints".to_owned(),
            Err(error) => return running.broke(error).await,
        }
    }
}
