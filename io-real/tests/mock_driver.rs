//! The driver `mock_driver`: what its configuration makes its pretended tasks do.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::{DriverEffect, Program, TaskConfig, request};
use drover_core::ids::{AllocId, LaunchId, Run, TaskKey};
use drover_core::input::DriverInput;
use drover_core::model::alloc::ExitResult;
use drover_core::model::value::Value;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::driver::mock::Mock;
use drover_io_real::driver::{Driver, Inbox};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const LAUNCH: LaunchId = LaunchId(7);

fn task_config(config: BTreeMap<String, Value>) -> TaskConfig {
    TaskConfig {
        run: Run(1),
        job: "job".to_owned(),
        group: "group".to_owned(),
        config,
        cpu_shares: 100,
        ..TaskConfig::default()
    }
}

struct World {
    driver: Mock,
    received: UnboundedReceiver<Input>,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (inbox, received) = unbounded_channel();
        let opened = std::fs::File::open(dir.path()).unwrap();
        let driver = Mock::new(
            "mock_driver",
            AllocDirs::new(Arc::new(opened.into())),
            Inbox::new(inbox),
        );
        World {
            driver,
            received,
            _dir: dir,
        }
    }

    fn ask(&self, effect: DriverEffect) {
        let task = TaskKey {
            alloc: AllocId(1),
            task: "main".into(),
        };
        self.driver.carry_out(task, effect);
    }

    async fn receive(&mut self) -> DriverInput {
        match self.received.recv().await {
            Some(Input::Driver(_, reported)) => reported,
            other => panic!("{other:?}"),
        }
    }

    /// Starts a task with this configuration.
    async fn start(&mut self, config: &[(&str, Value)]) -> DriverInput {
        let config = config
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        let config = task_config(config.collect());
        let config = Arc::new(config);
        self.ask(DriverEffect::Start(request::Start {
            op: Op(1),
            launch: LAUNCH,
            config,
        }));
        self.receive().await
    }

    /// Runs a command in the task.
    async fn exec(&mut self) -> Result<i32, Failure> {
        let program = Arc::new(Program {
            command: "anything".to_owned(),
            args: Vec::new(),
            timeout: Span::secs(60),
            task: task_config(BTreeMap::new()),
        });
        self.ask(DriverEffect::Exec(request::Exec {
            op: Op(2),
            launch: LAUNCH,
            program,
            output: false,
        }));
        match self.receive().await {
            DriverInput::Executed {
                op: Op(2), result, ..
            } => result,
            other => panic!("{other:?}"),
        }
    }
}

fn block(fields: &[(&str, Value)]) -> Value {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    Value::Map(fields.collect::<BTreeMap<_, _>>())
}

#[tokio::test]
async fn mock_exec_command_exits_as_configured() {
    for (command, expected) in [
        (block(&[("exit_code", Value::Int(3))]), Ok(3)),
        (
            block(&[
                ("exit_signal", Value::Int(9)),
                ("run_for", Value::from("1ms")),
            ]),
            Ok(137),
        ),
        (
            block(&[("exit_err_msg", Value::from("no shell"))]),
            Err(Failure::fatal("no shell")),
        ),
    ] {
        let mut world = World::new();
        let config = [
            ("run_for", Value::from("1h")),
            ("exec_command", command.clone()),
        ];
        assert!(matches!(
            world.start(&config).await,
            DriverInput::Started { .. }
        ));
        assert_eq!(world.exec().await, expected, "{command:?}");
    }
}

#[tokio::test]
async fn exec_in_stopped_task_fails() {
    let mut world = World::new();
    let failure = world.exec().await.unwrap_err();
    assert_eq!(failure.message, "task not running");
}

#[tokio::test]
async fn plugin_exit_leaves_task_with_unknown_exit() {
    let mut world = World::new();
    let config = [
        ("run_for", Value::from("1h")),
        ("plugin_exit_after", Value::from("1ms")),
    ];
    assert!(matches!(
        world.start(&config).await,
        DriverInput::Started { .. }
    ));
    let end = world.receive().await;
    let unknown = ExitResult::unknown("plugin is shut down");
    assert_eq!(
        end,
        DriverInput::Exited {
            launch: LAUNCH,
            result: unknown
        }
    );
    assert_eq!(world.exec().await, Ok(0), "the task is still there");
    world.ask(DriverEffect::Destroy(request::Destroy {
        op: Op(3),
        launch: LAUNCH,
    }));
    let destroyed = world.receive().await;
    let killed = matches!(&destroyed, DriverInput::Destroyed { result: Ok(Some(exit)), .. } if exit.signal == 2);
    assert!(killed, "{destroyed:?}");
}

/// The address and port of the driver's network, told when the task runs.
#[tokio::test]
async fn driver_network_is_reported_at_start() {
    let mut world = World::new();
    let config = [
        ("run_for", Value::from("1h")),
        ("driver_ip", Value::from("10.1.2.3")),
        ("driver_advertise", Value::Bool(true)),
        ("driver_port_map", Value::from("http:8080")),
    ];
    let DriverInput::Started {
        network: Some(network),
        ..
    } = world.start(&config).await
    else {
        panic!("no network is told");
    };
    assert_eq!(
        (network.ip.as_str(), network.auto_advertise),
        ("10.1.2.3", true)
    );
    assert_eq!(
        network.port_map,
        BTreeMap::from([("http".to_owned(), 8080)])
    );
}
