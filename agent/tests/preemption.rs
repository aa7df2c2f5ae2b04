//! More important jobs preempt jobs of lower priority, as a user sees it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use serde_json::Value;
use support::Lone;

const CONFIG: &str = r"
server {
  default_scheduler_config {
    preemption_config {
      service_scheduler_enabled = true
    }
  }
}
";

/// Nobody binds the port: it is the promise that counts.
const JOB: &str = r#"
variable "name" {}

variable "priority" {
  type = number
}

job "web" {
  id       = var.name
  priority = var.priority

  group "g" {
    network {
      port "http" {
        static = 8080
      }
    }

    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
  }
}
"#;

struct Setup {
    lone: Lone,
    file: String,
}

impl Setup {
    fn new(lone: Lone) -> Setup {
        let file = lone.world.file("web.hcl", JOB).display().to_string();
        Setup { lone, file }
    }

    fn submit(&self, name: &str, priority: u8) {
        let name = format!("-var=name={name}");
        let priority = format!("-var=priority={priority}");
        self.lone
            .run(&["job", "run", "-detach", &name, &priority, &self.file])
            .ok();
    }

    /// The first allocation of a job that fits.
    fn alloc(&self, job: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/v1/job/{job}/allocations");
        self.lone.agent.wait_for(&path, |all| {
            let mut all = all.as_array()?.iter();
            all.find(|alloc| fits(alloc)).cloned()
        })
    }

    fn running(&self, job: &str) -> Value {
        self.alloc(job, |alloc| alloc["ClientStatus"] == "running")
    }
}

fn id(alloc: &Value) -> &str {
    alloc["ID"].as_str().unwrap()
}

#[test]
fn higher_priority_service_preempts_port_temporarily() {
    let setup = Setup::new(Lone::configured(CONFIG));
    let settings = setup.lone.agent.get("/v1/operator/scheduler/configuration");
    let preemption = &settings["SchedulerConfig"]["PreemptionConfig"];
    assert_eq!(preemption["ServiceSchedulerEnabled"], true);
    assert_eq!(preemption["BatchSchedulerEnabled"], false);

    setup.submit("low", 30);
    let low = setup.running("low");
    setup.submit("high", 60);
    let high = setup.running("high");
    let low = setup.alloc("low", |alloc| alloc["ID"] == low["ID"]);
    assert_eq!(low["DesiredStatus"], "evict");
    assert_eq!(low["ClientStatus"], "complete");
    assert_eq!(low["PreemptedByAllocation"], high["ID"]);
    assert_eq!(high["PreemptedAllocations"], serde_json::json!([low["ID"]]));

    let of_low = setup.lone.run(&["alloc", "status", id(&low)]).ok();
    assert!(of_low.contains("Preempted By"), "{of_low}");
    let why = format!("Preempted by alloc ID {}", id(&high));
    assert!(of_low.contains(&why), "{of_low}");
    let of_high = setup.lone.run(&["alloc", "status", id(&high)]).ok();
    assert!(of_high.contains("Preempted Allocs"), "{of_high}");
    let evals = setup.lone.agent.get("/v1/job/low/evaluations");
    let why = |eval: &Value| eval["TriggeredBy"] == "preemption";
    assert!(evals.as_array().unwrap().iter().any(why), "{evals}");

    setup.lone.run(&["job", "stop", "-detach", "high"]).ok();
    let again = setup.running("low");
    assert_ne!(again["ID"], low["ID"]);
    setup.lone.run(&["job", "stop", "low"]).ok();
}

/// As it is set without a configuration.
#[test]
fn service_without_preemption_waits() {
    let setup = Setup::new(Lone::new());
    setup.submit("low", 30);
    let low = setup.running("low");
    setup.submit("high", 100);
    let path = "/v1/job/high/evaluations";
    setup.lone.agent.wait_for(path, |evals| {
        let blocked = evals[0]["FailedTGAllocs"]["g"].is_object();
        blocked.then_some(())
    });
    assert_eq!(setup.running("low")["ID"], low["ID"]);
    setup.lone.run(&["job", "stop", "low"]).ok();
    setup.running("high");
    setup.lone.run(&["job", "stop", "high"]).ok();
}
