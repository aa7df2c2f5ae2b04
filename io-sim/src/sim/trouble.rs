//! Faults that befall the agent and its machine, between two steps or in the middle of one.

use std::sync::Arc;

use drover_core::time::Span;

use super::Sim;
use crate::faults::Fault;
use crate::point::Point;
use crate::world::Later;

impl Sim {
    /// Lets trouble come that can come after any step.
    pub(super) fn trouble(&mut self) {
        let planned = self.crash_at.is_some_and(|at| self.steps >= at);
        if planned {
            self.crash_at = None;
        }
        let in_step = core::mem::take(&mut self.died_in_step);
        let reboots = self.world.fires(Fault::Reboot, "machine");
        if planned || in_step || reboots || self.world.fires(Fault::Crash, "agent") {
            self.dies(reboots);
        } else if self.world.fires(Fault::WallJump, "clock") {
            let hour = Span::secs(3600);
            let grid = [Span::secs(-1), hour, Span(-hour.0), Span::secs(20_000)];
            let by = self.world.choices.one_of(&grid, Point::Wall, "clock");
            self.world.jump_wall(by.unwrap_or(Span::ZERO));
        } else if self.world.fires(Fault::FlapDriver, "driver") {
            self.flap_driver();
        } else if self.world.fires(Fault::LosePlugin, "driver") {
            self.lose_plugin();
        } else if self.world.has_templates() && self.world.fires(Fault::ChangeTemplate, "templates")
        {
            self.world.a_template_changes();
        } else if self.listens() {
            self.machine_trouble();
        }
    }

    /// What goes wrong with what the agent listens to.
    fn machine_trouble(&mut self) {
        if self.world.fires(Fault::EndNews, "machine") {
            self.world.a_stream_ends();
        } else if self.world.fires(Fault::OddNews, "machine") {
            self.world.malformed_report();
        } else if self.world.fires(Fault::FlapDevice, "machine") {
            self.world.device_changes();
        }
    }

    fn dies(&mut self, reboots: bool) {
        let grid = [Span::ZERO, Span::millis(1), Span::secs(1), Span::secs(60)];
        let pause = self.world.choices.one_of(&grid, Point::Restart, "agent");
        self.crash();
        self.restart_at = Some(self.world.at + pause.unwrap_or(Span::ZERO));
        if reboots {
            self.reboot();
        }
    }

    /// The agent dies, or its whole machine does; another agent begins after `pause`.
    pub fn goes_down(&mut self, reboots: bool, pause: Span) {
        self.crash();
        if reboots {
            self.reboot();
        }
        self.restart_at = Some(self.world.at + pause);
    }

    /// The driver is unhealthy, and healthy again after a while.
    fn flap_driver(&mut self) {
        self.driver(false);
        let grid = [Span::ZERO, Span::secs(1), Span::secs(600)];
        let pause = self.world.choices.one_of(&grid, Point::Flap, "driver");
        self.driver_after(true, pause.unwrap_or(Span::ZERO));
    }

    /// The driver's plugin dies: what it ran lives on, and nobody is told of its end.
    fn lose_plugin(&mut self) {
        let launches: Vec<_> = self.world.living.iter().copied().collect();
        let plugin = Arc::from("driver");
        for launch in launches {
            self.world
                .after(Span::ZERO, &plugin, Later::PluginGone { launch });
        }
    }
}
