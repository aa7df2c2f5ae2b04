//! Services: whoever is registered runs, and a change of who is can be heard.

use std::collections::BTreeSet;

use drover_core::agent::{Agent, Input, Registration};
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{DriverEffect, Effect, request};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, Found, ShutdownMode};
use drover_core::model::alloc::TaskLife;
use drover_core::model::group::TaskGroup;
use drover_core::model::value::Value;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// What is known of services in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Services {
    /// Launches of which the agent was told that they are over, or which it asked to end.
    over: BTreeSet<LaunchId>,
    /// Who was registered after the last step, and the index that people could see.
    last: Option<(Vec<Name>, u64)>,
}

/// What people see of an instance that may change.
type Name = (String, String, u16, Vec<String>);

impl Services {
    pub(super) fn delivered(&mut self, input: &Input) {
        let Input::Driver(_, reported) = input else {
            return;
        };
        let over = match reported {
            DriverInput::Exited { .. }
            | DriverInput::StartFailed { .. }
            | DriverInput::StartLost { .. }
            | DriverInput::Destroyed { result: Ok(_), .. } => true,
            DriverInput::Recovered { found, .. } => *found != Found::Running,
            _ => false,
        };
        if over {
            self.over.insert(reported.launch());
        }
    }

    pub(super) fn asked(&mut self, effect: &Effect) {
        if let Effect::Driver(
            _,
            _,
            DriverEffect::Stop(request::Stop { launch, .. })
            | DriverEffect::Destroy(request::Destroy { launch, .. }),
        ) = effect
        {
            self.over.insert(*launch);
        }
    }

    pub(super) fn lives(&self, task: &TaskRunner) -> bool {
        let launch = task.record().launch.as_ref();
        launch.is_some_and(|launch| !self.over.contains(&launch.id))
    }
}

impl Checker {
    /// Looks at all registrations. An agent that leaves its tasks alone listens to nobody any more.
    pub(super) fn services(&mut self, world: &World, agent: &Agent) -> Verdict {
        if agent.view().shutdown() == Some(ShutdownMode::KeepTasks) {
            return Ok(());
        }
        let now = agent.view().services();
        for one in &now {
            self.no_service_registered_for_dead_task(agent, one)?;
        }
        self.service_change_raises_index(world, agent, &now)
    }

    /// Who is registered runs, as far as the agent can know, and nobody ends it; or it is a group's, and
    /// its task is to run again.
    fn no_service_registered_for_dead_task(
        &mut self,
        agent: &Agent,
        one: &Registration,
    ) -> Verdict {
        let alloc = agent.view().alloc(one.alloc);
        let so = alloc.is_some_and(|alloc| {
            let mut tasks = alloc.tasks().iter().filter(|task| match &one.task {
                Some(name) => task.spec().key.task == *name,
                None => true,
            });
            let of_group = one.task.is_none();
            let goes_on = |task: &TaskRunner| {
                self.services.lives(task) || (of_group && is_to_start_again(task))
            };
            !alloc.record().is_terminal() && tasks.any(goes_on)
        });
        self.holds(Property::NoServiceRegisteredForDeadTask, so, || {
            format!("{one:?}")
        })
    }

    /// An instance has the tags of its job file: those for canaries as long as it is one, if there are any.
    fn tags_are_those_of_job_file(&mut self, agent: &Agent, one: &Registration) -> Verdict {
        let Some(alloc) = agent.view().alloc(one.alloc) else {
            return Ok(());
        };
        let record = alloc.record();
        let file = self.files.of(alloc);
        let group = file.and_then(|file| policy::group(file, record.group.as_str()));
        let Some(block) = group.and_then(|group| block_of(group, one)) else {
            return Ok(());
        };
        let (plain, of_canaries) = (texts(block, "Tags"), texts(block, "CanaryTags"));
        let expected = match record.canary && !of_canaries.is_empty() {
            true => of_canaries,
            false => plain,
        };
        let holds = one.tags == expected || expected.iter().any(|tag| tag.contains("${"));
        self.holds(Property::ServiceTagsAreThoseOfJobFile, holds, || {
            format!("{one:?} has not the tags {expected:?}")
        })
    }

    /// An instance is found where its job file says: at the host and the port that it was given there, or at the address
    /// of its network and the port inside.
    fn address_is_that_of_job_file(
        &mut self,
        world: &World,
        agent: &Agent,
        one: &Registration,
    ) -> Verdict {
        let view = agent.view();
        let Some(alloc) = view.alloc(one.alloc) else {
            return Ok(());
        };
        let record = alloc.record();
        let file = self.files.of(alloc);
        let group = file.and_then(|file| policy::group(file, record.group.as_str()));
        let block = group.and_then(|group| block_of(group, one));
        let (Some(group), Some(block)) = (group, block) else {
            return Ok(());
        };
        let label = text(block, "PortLabel").unwrap_or_default();
        let mode = text(block, "AddressMode").unwrap_or_default();
        let expected = found_at(world, agent, alloc, group, (label, mode));
        let Some((host, port)) = expected else {
            return Ok(());
        };
        let holds = (&one.address, one.port) == (&host, port);
        self.holds(Property::ServiceAddressIsThatOfJobFile, holds, || {
            format!("{one:?} is not at {host}:{port}")
        })
    }

    /// Whoever waits for a change of services hears of it.
    fn service_change_raises_index(
        &mut self,
        world: &World,
        agent: &Agent,
        now: &[Registration],
    ) -> Verdict {
        let name = |one: &Registration| {
            let (id, address) = (one.id.clone(), one.address.clone());
            (id, address, one.port, one.tags.clone())
        };
        let names: Vec<Name> = now.iter().map(name).collect();
        let index = agent.view().index();
        let before = self.services.last.replace((names.clone(), index));
        let known = before.as_ref().map(|(before, _)| before.as_slice());
        let known = known.unwrap_or_default();
        for (one, name) in now.iter().zip(&names) {
            if !known.contains(name) {
                self.tags_are_those_of_job_file(agent, one)?;
                self.address_is_that_of_job_file(world, agent, one)?;
            }
        }
        let Some((before, reported)) = before.filter(|(before, _)| *before != names) else {
            return Ok(());
        };
        self.holds(Property::ServiceChangeRaisesIndex, reported < index, || {
            format!("at {index} it was {before:?} and is {names:?}")
        })
    }
}

/// Where a port of a group is found: at the host and the port that it was given there, or at the address of its network
/// and the port inside. What its driver says of it is known to nobody else.
pub(super) fn found_at(
    world: &World,
    agent: &Agent,
    alloc: &AllocRunner,
    group: &TaskGroup,
    (label, mode): (&str, &str),
) -> Option<(String, u16)> {
    let record = alloc.record();
    let networks = group.networks.first().into_iter();
    let mut ports = networks.flat_map(|it| it.reserved_ports.iter().chain(&it.dynamic_ports));
    let port = ports.find(|port| port.label == label);
    let given = record.ports.iter().find(|port| port.label == label);
    let number = label.parse::<u16>().ok();
    let own = world.networks.get(record.id).and_then(|it| it.address);
    match (mode, own) {
        ("alloc", Some(own)) => {
            let inside = port.zip(given).map(|(port, given)| match port.to {
                0 | -1 => given.value,
                to => u16::try_from(to).unwrap_or(0),
            });
            Some((own.to_string(), inside.or(number)?))
        }
        ("host", _) => {
            let address = &agent.view().node().address;
            let host = given.map_or(address, |given| &given.host_ip);
            Some((host.clone(), given.map(|given| given.value).or(number)?))
        }
        _ => None,
    }
}

/// What a job file says of an instance.
fn block_of<'a>(group: &'a TaskGroup, one: &Registration) -> Option<&'a Value> {
    let blocks = match &one.task {
        Some(name) => policy::task(group, name.as_str()).map_or(&[][..], |it| &it.services),
        None => &group.services[..],
    };
    let is_it = |block: &&Value| text(block, "Name") == Some(&one.name);
    blocks.iter().find(is_it)
}

fn text<'a>(block: &'a Value, name: &str) -> Option<&'a str> {
    block.as_map()?.get(name)?.as_str()
}

fn texts(block: &Value, name: &str) -> Vec<String> {
    let list = block
        .as_map()
        .and_then(|fields| fields.get(name)?.as_list());
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Whether a task ran, is not over, and nobody asked it to end.
fn is_to_start_again(task: &TaskRunner) -> bool {
    let state = task.state();
    state.started_at.is_some() && state.state != TaskLife::Dead && !task.is_ending()
}
