//! Tasks that are containers of an engine, for worlds whose node has one.

use drover_core::model::task::Task;
use drover_core::model::value::Value;
use drover_io_sim::script::Script;
use drover_io_sim::{Dice, Faults};

/// In some worlds the node has an engine, and some of the tasks are its containers.
pub(crate) fn on_an_engine(dice: &mut Dice, mut script: Script) -> Script {
    if dice.below(8, "engine", "") != 1 {
        return script;
    }
    script.engine = true;
    for job in &mut script.jobs {
        for task in job
            .task_groups
            .iter_mut()
            .flat_map(|group| &mut group.tasks)
        {
            if dice.below(3, "contained", &task.name) > 0 {
                *task = contained(task.clone());
            }
        }
    }
    script.faults = script.faults.and(&Faults::of_engine(script.seed));
    script
}

/// The same task as a container of the engine.
#[must_use]
pub fn contained(mut task: Task) -> Task {
    let option = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Some(format!("{key}={text}")),
        Value::Int(number) => Some(format!("{key}={number}")),
        Value::Bool(flag) => Some(format!("{key}={flag}")),
        _ => None,
    };
    let args: Option<Vec<String>> = task.config.iter().map(option).collect();
    if let Some(args) = args {
        let args = args.into_iter().map(Value::String).collect();
        let config = [("image", Value::from("app:1")), ("args", Value::List(args))];
        "docker".clone_into(&mut task.driver);
        task.config = config.map(|(key, value)| (key.to_owned(), value)).into();
    }
    task
}
