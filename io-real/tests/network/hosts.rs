//! A network of hosts by name, with trouble at stated moments.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use turmoil::{Builder, Sim};

/// More than any scenario needs. While a thread of the agent works, simulated time goes on.
const DURATION: Duration = Duration::from_secs(3 * 60 * 60);

/// What happens to the network.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// Two hosts hear nothing of each other.
    Part(&'static str, &'static str),
    /// They do again.
    Heal(&'static str, &'static str),
    /// The second hears nothing of the first any more, and nobody is told.
    PartOneWay(&'static str, &'static str),
    /// It does again.
    HealOneWay(&'static str, &'static str),
    /// What two hosts send each other is kept back, and nobody is told.
    Hold(&'static str, &'static str),
    /// What was kept back arrives.
    Release(&'static str, &'static str),
    /// A host dies with all that it holds.
    Crash(&'static str),
    /// A host starts again.
    Bounce(&'static str),
}

/// Trouble, and when it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Duration,
    trouble: Trouble,
}

impl Moment {
    /// So many seconds after the beginning.
    pub(crate) fn at_second(second: u64, trouble: Trouble) -> Moment {
        Moment {
            at: Duration::from_secs(second),
            trouble,
        }
    }
}

/// The hosts, and the network between them.
pub(crate) struct Network(Sim<'static>);

impl Network {
    /// A network without hosts whose delays follow from `seed`.
    pub(crate) fn new(seed: u64) -> Network {
        let mut builder = Builder::new();
        builder
            .simulation_duration(DURATION)
            .tick_duration(Duration::from_millis(5))
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(Duration::from_millis(200))
            .rng_seed(seed);
        Network(builder.build())
    }

    /// The same with a host of this name, that does `what` whenever it starts.
    pub(crate) fn host<F, Fut>(mut self, name: &'static str, what: F) -> Network
    where
        F: Fn() -> Fut + 'static,
        Fut: Future<Output = turmoil::Result> + 'static,
    {
        self.0.host(name, what);
        self
    }

    /// Runs `what` on the host `client` to its end, and gives what it gives.
    pub(crate) fn run<F, Fut, T>(mut self, trouble: &[Moment], what: F) -> T
    where
        F: FnOnce() -> Fut + 'static,
        Fut: Future<Output = T> + 'static,
        T: 'static,
    {
        let given = Rc::new(RefCell::new(None));
        let gives = Rc::clone(&given);
        self.0.client("client", async move {
            *gives.borrow_mut() = Some(what().await);
            Ok(())
        });
        let mut left = trouble.iter().peekable();
        loop {
            while let Some(moment) = left.next_if(|moment| moment.at <= self.0.elapsed()) {
                self.strike(moment.trouble);
            }
            match self.0.step() {
                Ok(true) => break,
                Ok(false) => {}
                Err(why) => panic!("the simulated network: {why}"),
            }
        }
        let given = given.borrow_mut().take();
        given.unwrap_or_else(|| panic!("the client ended without a result"))
    }

    fn strike(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Part(one, other) => self.0.partition(one, other),
            Trouble::Heal(one, other) => self.0.repair(one, other),
            Trouble::PartOneWay(from, to) => self.0.partition_oneway(from, to),
            Trouble::HealOneWay(from, to) => self.0.repair_oneway(from, to),
            Trouble::Hold(one, other) => self.0.hold(one, other),
            Trouble::Release(one, other) => self.0.release(one, other),
            Trouble::Crash(host) => self.0.crash(host),
            Trouble::Bounce(host) => self.0.bounce(host),
        }
    }
}
