//! Notification when the wall clock is set, or the machine has slept, without polling it.
//!
//! The kernel cancels a timer of the wall clock that was made so (`TFD_TIMER_CANCEL_ON_SET`) when the clock is set
//! and when the machine resumes.

use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A time that does not come: in the year 2200.
const NEVER: i64 = 7_258_118_400;

/// Tells when the wall clock is set.
pub(crate) struct WallClock {
    /// None where the kernel offers no such timer: nobody is told then.
    timer: Option<AsyncFd<OwnedFd>>,
}

impl WallClock {
    /// Listens from now on. To be made within a runtime.
    pub(crate) fn new() -> WallClock {
        let timer = armed().map_err(std::io::Error::from);
        let timer = timer.and_then(|timer: OwnedFd| {
            // SAFETY: an owned descriptor stays open and the same as long as it is owned.
            Ok(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?)
        });
        if let Err(error) = &timer {
            tracing::warn!(%error, "cannot listen to the wall clock; when it is set is noticed later");
        }
        WallClock { timer: timer.ok() }
    }

    /// Waits until the wall clock is set.
    pub(crate) async fn set(&self) {
        let Some(timer) = &self.timer else {
            return std::future::pending().await;
        };
        loop {
            let Ok(mut ready) = timer.readable().await else {
                return std::future::pending().await;
            };
            let mut count = [0; 8];
            match rustix::io::read(timer.get_ref(), &mut count) {
                Err(rustix::io::Errno::CANCELED) => {
                    ready.clear_ready();
                    return;
                }
                Ok(_) | Err(_) => ready.clear_ready(),
            }
        }
    }
}

fn armed() -> rustix::io::Result<OwnedFd> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
    let none = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let never = Timespec {
        tv_sec: NEVER,
        tv_nsec: 0,
    };
    let when = Itimerspec {
        it_interval: none,
        it_value: never,
    };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(&timer, flags, &when)?;
    Ok(timer)
}
