//! Variables: who knows what is there may change it, and what was acknowledged stays.

use std::collections::BTreeMap;

use drover_core::agent::requests::{DeleteVariable, PutVariable, Request};
use drover_core::effect::{Refusal, Reply};
use drover_core::model::variable::{Items, VariableKey};
use drover_core::time::Span;
use drover_io_sim::{Fault, Faults, Sim};
use drover_sim_tests::inspect::{Inspect, answered};
use drover_sim_tests::{each_crash, for_seeds};

fn key(path: &str) -> VariableKey {
    VariableKey {
        namespace: "default".into(),
        path: path.into(),
    }
}

fn put(value: &str, expect: Option<u64>) -> Request {
    let items = BTreeMap::from([("key".to_owned(), value.to_owned())]);
    PutVariable {
        key: key("nomad/jobs/web"),
        items: Items::new(items).unwrap_or_default(),
        expect,
    }
    .into()
}

fn delete(expect: Option<u64>) -> Request {
    let key = key("nomad/jobs/web");
    DeleteVariable { key, expect }.into()
}

/// What the variable holds, and the index of its last change.
fn there(sim: &Sim) -> Option<(String, u64)> {
    let one = sim.view()?.variables().get(&key("nomad/jobs/web"))?;
    let value = one.items.get().get("key").cloned();
    Some((value.unwrap_or_default(), one.meta.modify_index))
}

fn is_conflict(reply: &Reply) -> bool {
    matches!(reply, Reply::Refused(Refusal::Conflict(_)))
}

#[test]
fn variable_change_requires_current_index() {
    for_seeds(50, |sim| {
        let Reply::Variable(first) = answered(sim, put("one", Some(0)))? else {
            return sim.expect_that(false, "what is not there can be put");
        };
        let again = answered(sim, put("two", Some(0)))?;
        sim.expect_that(is_conflict(&again), "it is there already")?;
        let Reply::Variable(second) = answered(sim, put("two", Some(first.modify_index)))? else {
            return sim.expect_that(false, "who knows it may change it");
        };
        let made = second.create_index == first.create_index;
        let grows = second.modify_index > first.modify_index;
        sim.expect_that(made && grows, "it was made once, and changed later")?;
        let late = answered(sim, put("three", Some(first.modify_index)))?;
        sim.expect_that(is_conflict(&late), "somebody else changed it")?;
        let late = answered(sim, delete(Some(first.modify_index)))?;
        sim.expect_that(is_conflict(&late), "nor does it go for who is late")?;
        let holds = there(sim) == Some(("two".to_owned(), second.modify_index));
        sim.expect_that(holds, "nothing of that changed it")?;
        answered(sim, put("four", None))?;
        answered(sim, delete(None))?;
        sim.expect_that(there(sim).is_none(), "it is gone")?;
        let gone = answered(sim, delete(Some(second.modify_index)))?;
        sim.expect_that(is_conflict(&gone), "what is gone was not expected to be")
    });
}

/// The agent dies wherever it can: what was acknowledged is there, and what was deleted is not.
#[test]
fn acknowledged_variable_survives_crash() {
    let steps = each_crash(1, |sim| {
        sim.ask(put("one", None));
        sim.ask(put("two", None));
        sim.until(Span::secs(600), |sim| {
            there(sim).is_some_and(|(value, _)| value == "two")
        })?;
        sim.converge()?;
        sim.restart()?;
        let value = there(sim).map(|(value, _)| value);
        sim.expect_that(value.as_deref() == Some("two"), "the last one is there")?;
        sim.ask(delete(None));
        sim.until(Span::secs(600), |sim| there(sim).is_none())?;
        sim.converge()?;
        sim.restart()?;
        sim.expect_that(there(sim).is_none(), "it is gone for good")
    });
    assert!(steps > 3, "{steps} moments to die at");
}

/// While the disk takes nothing, nobody is told that a variable is put.
#[test]
fn variable_is_acknowledged_after_save() {
    for_seeds(50, |sim| {
        sim.world.scene.faults = Faults::only(&[Fault::FailCommit], 1000).budget(3);
        let reply = answered(sim, put("one", None))?;
        sim.expect_that(matches!(reply, Reply::Variable(_)), "it is put in the end")?;
        sim.converge()
    });
}
