//! The JSON of allocations in long lists. It is the one of [`AllocStub`](crate::AllocStub), to the byte, but made of the
//! records themselves: without copying a name of them, and what is the same in most events is written in one piece.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use drover_core::model::alloc::{DriverNetwork, TaskState};
use drover_core::model::event::TaskEvent;
use drover_core::time::Timestamp;

use crate::alloc::{deployment_status, desired_transition, driver_network};
use crate::event::{OldEvent, TaskEventFields};
use crate::object::{Object, write_text};
use crate::records::AllocRecords;
use crate::times::civil;

impl AllocRecords {
    /// Its JSON as lists show it, at the end of a text, with this said of its status.
    pub fn write_stub(&self, description: &str, text: &mut Vec<u8>) {
        let record = self.alloc();
        let (desired, why) = self.desired();
        let mut stub = Object::begin(text);
        stub.shown("ID", Some(record.id));
        stub.shown("EvalID", Some(record.eval));
        stub.text("Name", &record.name);
        stub.text("Namespace", &record.job.namespace);
        stub.shown("NodeID", Some(self.node.id));
        stub.text("NodeName", &self.node.name);
        stub.text("JobID", &record.job.id);
        stub.text("JobType", self.job.job_type.as_str());
        stub.value("JobVersion", &record.job_version);
        stub.text("TaskGroup", record.group.as_str());
        stub.text("DesiredStatus", desired.as_str());
        stub.text("DesiredDescription", why);
        stub.value("DesiredTransition", &desired_transition(record));
        stub.text("ClientStatus", record.status.as_str());
        stub.text("ClientDescription", description);
        let mut states = Object::begin(stub.field("TaskStates"));
        for (task, state, network) in self.tasks() {
            write_state(state, network, states.entry(task.as_str()));
        }
        states.end();
        stub.value("DeploymentStatus", &deployment_status(record));
        stub.shown("DeploymentID", record.deployment);
        stub.shown("FollowupEvalID", self.follow_up);
        match &self.rescheduled {
            None => stub.null("RescheduleTracker"),
            Some(tracker) => stub.value("RescheduleTracker", tracker),
        }
        stub.shown("PreviousAllocation", record.previous);
        stub.shown("NextAllocation", record.next);
        match self.preempted.is_empty() {
            true => stub.null("PreemptedAllocations"),
            false => stub.value("PreemptedAllocations", &self.preempted),
        }
        stub.shown("PreemptedByAllocation", record.preempted_by);
        stub.value("CreateIndex", &record.create_index);
        stub.value("ModifyIndex", &record.modify_index);
        stub.value("CreateTime", &record.create_time.0);
        stub.value("ModifyTime", &record.modify_time.0);
        if let Some(is_local) = self.is_local {
            stub.flag("Local", is_local);
        }
        stub.end();
    }
}

fn write_state(state: &TaskState, network: Option<&DriverNetwork>, text: &mut Vec<u8>) {
    let mut shown = Object::begin(text);
    shown.text("State", state.state.as_str());
    shown.flag("Failed", state.failed);
    shown.value("Restarts", &state.restarts);
    write_time("LastRestart", state.last_restart, &mut shown);
    write_time("StartedAt", state.started_at, &mut shown);
    write_time("FinishedAt", state.finished_at, &mut shown);
    shown.text("Paused", "");
    let events = shown.field("Events");
    events.push(b'[');
    for (nth, event) in state.events.iter().enumerate() {
        if nth > 0 {
            events.push(b',');
        }
        write_event(event, events);
    }
    events.push(b']');
    if let Some(network) = network {
        shown.value("DriverNetwork", &driver_network(network));
    }
    shown.end();
}

fn write_time(name: &'static str, time: Option<Timestamp>, shown: &mut Object<'_>) {
    match time {
        Some(time) => shown.shown(name, Some(civil(time))),
        None => shown.null(name),
    }
}

fn write_event(event: &TaskEvent, text: &mut Vec<u8>) {
    let fields = TaskEventFields::of(event);
    let mut shown = Object::begin(text);
    shown.text("Type", &fields.kind);
    shown.value("Time", &fields.time);
    shown.text("DisplayMessage", &fields.display_message);
    write_details(&fields.details, shown.field("Details"));
    shown.text("Message", &fields.message);
    shown.flag("FailsTask", fields.fails_task);
    shown.value("ExitCode", &fields.exit_code);
    shown.value("Signal", &fields.signal);
    if fields.old == OldEvent::default() {
        shown.fields(&NOTHING_OLD);
    } else {
        shown.fields(&json_fields(&fields.old));
    }
    shown.end();
}

fn write_details(details: &BTreeMap<String, String>, text: &mut Vec<u8>) {
    let mut shown = Object::begin(text);
    for (name, value) in details {
        write_text(value, shown.entry(name));
    }
    shown.end();
}

/// What is told of most events to older programs.
static NOTHING_OLD: LazyLock<Vec<u8>> = LazyLock::new(|| json_fields(&OldEvent::default()));

/// The fields of an object, without its braces.
fn json_fields(old: &OldEvent<'_>) -> Vec<u8> {
    let mut json = serde_json::to_vec(old).unwrap_or_default();
    json.pop();
    json.drain(..json.len().min(1));
    json
}
