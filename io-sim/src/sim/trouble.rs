//! Faults that befall the agent and its machine, between two steps or in the middle of one.

use std::sync::Arc;

use drover_core::time::Span;

use super::Sim;
use crate::engine;
use crate::faults::Fault;
use crate::later::Later;
use crate::point::Point;
use crate::world::World;

impl Sim {
    /// Lets trouble come that can come after any step.
    pub(super) fn trouble(&mut self) {
        let planned = self.crash_at.is_some_and(|at| self.steps >= at);
        if planned {
            self.crash_at = None;
        }
        let in_step = core::mem::take(&mut self.died_in_step);
        let reboots = self.world.scene.fires(Fault::Reboot, "machine");
        if planned || in_step || reboots || self.world.scene.fires(Fault::Crash, "agent") {
            self.dies(reboots);
        } else if self.world.scene.fires(Fault::WallJump, "clock") {
            let hour = Span::secs(3600);
            let grid = [Span::secs(-1), hour, Span(-hour.0), Span::secs(20_000)];
            let by = self.world.scene.choices.one_of(&grid, Point::Wall, "clock");
            self.world.scene.jump_wall(by.unwrap_or(Span::ZERO));
        } else if self.world.scene.fires(Fault::FlapDriver, "driver") {
            self.flap_driver();
        } else if self.world.scene.fires(Fault::LosePlugin, "driver") {
            self.lose_plugin();
        } else if self.has_engine() && self.world.scene.fires(Fault::EngineDies, "engine") {
            self.engine_dies_for_a_while();
        } else if self.has_engine() && self.world.scene.fires(Fault::EngineSlows, "engine") {
            self.engine_slows();
        } else if self.world.templates.were_rendered()
            && self.world.scene.fires(Fault::ChangeTemplate, "templates")
        {
            self.world.a_template_changes();
        } else if self.listens() {
            self.machine_trouble();
        }
    }

    /// What goes wrong with what the agent listens to.
    fn machine_trouble(&mut self) {
        let World {
            scene,
            machine,
            engine,
            ..
        } = &mut self.world;
        if scene.fires(Fault::EndNews, "machine") {
            machine.a_stream_ends(scene);
        } else if scene.fires(Fault::OddNews, "machine") {
            machine.malformed_report(scene, engine);
        } else if scene.fires(Fault::FlapDevice, "machine") {
            machine.device_changes(scene, engine);
        }
    }

    fn dies(&mut self, reboots: bool) {
        let longest = self.longest_absence;
        let grid = [Span::ZERO, Span::millis(1), Span::secs(1), longest];
        let pause = self
            .world
            .scene
            .choices
            .one_of(&grid, Point::Restart, "agent");
        self.crash();
        self.restart_at = Some(self.world.scene.at + pause.unwrap_or(Span::ZERO));
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
        self.restart_at = Some(self.world.scene.at + pause);
    }

    /// The driver is unhealthy, and healthy again after a while.
    fn flap_driver(&mut self) {
        self.driver(false);
        let grid = [Span::ZERO, Span::secs(1), Span::secs(600)];
        let pause = self
            .world
            .scene
            .choices
            .one_of(&grid, Point::Flap, "driver");
        self.driver_after(true, pause.unwrap_or(Span::ZERO));
    }

    fn has_engine(&self) -> bool {
        (self.config.drivers.iter()).any(|driver| **driver == *engine::DRIVER)
    }

    /// The engine dies, with its containers or without, and is back after a while.
    fn engine_dies_for_a_while(&mut self) {
        let who = Arc::from("engine");
        let choices = &mut self.world.scene.choices;
        let containers_end = choices.either(Point::ContainersEnd, &who);
        let grid = [0, 1, 60, 3600].map(Span::secs);
        let pause = choices.one_of(&grid, Point::EngineAwayFor, &who);
        self.world.engine_dies(!containers_end);
        let pause = pause.unwrap_or(Span::ZERO);
        self.world.scene.after(pause, &who, Later::EngineReturns);
    }

    fn engine_slows(&mut self) {
        let grid = [1, 60, 600].map(Span::secs);
        let choices = &mut self.world.scene.choices;
        let span = choices.one_of(&grid, Point::EngineSlowFor, "engine");
        let span = span.unwrap_or(Span::ZERO);
        self.world.engine_is_slow_for(span);
    }

    /// The driver's plugin dies: what it ran lives on, and nobody is told of its end.
    fn lose_plugin(&mut self) {
        let launches: Vec<_> = self.world.processes.living.iter().copied().collect();
        let plugin = Arc::from("driver");
        for launch in launches {
            self.world
                .scene
                .after(Span::ZERO, &plugin, Later::PluginGone { launch });
        }
    }
}
