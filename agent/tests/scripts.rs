//! Scripts of templates, as a user sees them: run beside the task when something changes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use support::{Lone, shims};

/// A task that goes on, and one that fails with its script when it is told `bad`. The first script
/// says when it begins, and waits until it may end.
const JOB: &str = r#"
job "web" {
  group "g" {
    reschedule {
      attempts  = 0
      unlimited = false
    }
    restart {
      attempts = 0
      mode     = "fail"
    }
    task "main" {
      driver = "raw_exec"
      env { GATE = "@GATE@" }
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      template {
        data        = "{{ with nomadVar \"nomad/jobs/web\" }}{{ .key }}{{ end }}"
        destination = "local/out"
        change_mode = "script"
        splay       = "0s"
        change_script {
          command             = "/bin/sh"
          args                = ["-c", "echo $NOMAD_TASK_NAME $(cat local/out) >> local/told; cat $GATE; grep -qv bad local/out"]
          timeout             = "60s"
          fail_on_error       = true
          run_on_first_render = true
        }
      }
    }
  }
}
"#;

struct Setup {
    lone: Lone,
    gate: PathBuf,
    alloc: String,
}

impl Setup {
    fn new() -> Setup {
        let lone = Lone::new();
        let gate = lone.world.path("gate");
        rustix::fs::mkfifoat(rustix::fs::CWD, &gate, 0o600.into()).unwrap();
        let text = JOB.replace("@GATE@", gate.to_str().unwrap());
        let file = lone.world.file("web.hcl", &text);
        lone.run(&["var", "put", "nomad/jobs/web", "key=one"]).ok();
        lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
            .ok();
        let alloc = lone.agent.wait_for("/v1/job/web/allocations", |all| {
            Some(all.get(0)?["ID"].as_str()?.to_owned())
        });
        Setup { lone, gate, alloc }
    }

    fn shown(&self) -> String {
        let path = self.lone.world.data().join("alloc").join(&self.alloc);
        fs::read_to_string(path.join("main/local/told")).unwrap_or_default()
    }

    /// Lets the script that waits go on; comes back when one does.
    fn open_the_gate(&self) {
        fs::write(&self.gate, "").unwrap();
    }

    fn change(&self, to: &str) {
        let item = format!("key={to}");
        self.lone
            .run(&["var", "put", "-force", "nomad/jobs/web", &item])
            .ok();
    }

    /// Waits until the task says this.
    fn has_event(&self, kind: &str, words: &str) {
        let path = format!("/v1/allocation/{}", self.alloc);
        self.lone.agent.wait_for(&path, |alloc| {
            let events = alloc["TaskStates"]["main"]["Events"].as_array()?;
            let is = |event: &&Value| {
                let message = event["DisplayMessage"].as_str().unwrap_or_default();
                event["Type"] == kind && message.contains(words)
            };
            events.iter().find(is).map(drop)
        });
    }
}

#[test]
fn change_script_runs_for_each_change_until_it_fails() {
    let setup = Setup::new();
    setup.open_the_gate();
    setup.has_event("Task hook message", "successfully ran script /bin/sh");
    assert_eq!(setup.shown(), "main one\n");
    setup.change("two");
    setup.open_the_gate();
    assert_eq!(setup.shown(), "main one\nmain two\n");
    setup.change("bad");
    setup.open_the_gate();
    setup.has_event("Task hook failed", "exited with code: 1");
    setup.has_event("Killing", "Template script failed, task is being killed");
    let path = format!("/v1/allocation/{}", setup.alloc);
    setup.lone.agent.wait_for(&path, |alloc| {
        (alloc["ClientStatus"] == "failed").then_some(())
    });
    setup.lone.run(&["job", "stop", "-purge", "web"]).ok();
}

/// While it runs it is its task's, for whoever looks at the host; its agent's death ends it.
#[test]
fn change_script_runs_in_task_context() {
    let setup = Setup::new();
    let begun = |setup: &Setup, times| {
        while setup.shown().lines().count() < times {
            std::thread::yield_now();
        }
    };
    begun(&setup, 1);
    if rustix::process::geteuid().is_root() {
        let all = setup.lone.agent.get("/v1/agent/audit");
        // Others may run on this host, and may have ended without tidying up.
        let leaked = |thing: &&Value| thing["Owner"] == "leaked" && thing["DataDir"] == "";
        let leaked: Vec<&Value> = all.as_array().unwrap().iter().filter(leaked).collect();
        assert!(leaked.is_empty(), "{leaked:?}");
        let shims = |thing: &&Value| {
            let program = thing["Program"].as_str().unwrap_or_default();
            thing["AllocID"] == *setup.alloc && program.contains("shim")
        };
        assert_eq!(all.as_array().unwrap().iter().filter(shims).count(), 2);
        let launches = setup.lone.world.launches();
        assert_eq!(launches.len(), 1, "both are in one group: {launches:?}");
    }
    let data = setup.lone.world.data();
    assert_eq!(shims(&data).len(), 2, "the task's and its script's");
    let Setup { lone, gate, alloc } = setup;
    let lone = lone.next_agent();
    while shims(&data).len() > 1 {
        std::thread::yield_now();
    }
    let setup = Setup { lone, gate, alloc };
    setup.change("two");
    setup.open_the_gate();
    begun(&setup, 2);
    assert_eq!(setup.shown(), "main one\nmain two\n", "once each");
    setup.lone.run(&["job", "stop", "-purge", "web"]).ok();
}
