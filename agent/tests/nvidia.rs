//! GPUs of NVIDIA beside a real agent, told by a library that stands in for the driver's.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;

use serde_json::Value;
use support::{Program, World, command, exchange};

const JOB: &str = r#"
job "learn" {
  type = "service"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo gpus=$NVIDIA_VISIBLE_DEVICES; exec sleep 1000"]
      }
      resources {
        device "nvidia/gpu" {
          count = 2
          constraint {
            attribute = "${device.attr.memory}"
            operator  = ">="
            value     = "40 GiB"
          }
        }
      }
    }
  }
}
"#;

fn get(addr: &str, path: &str) -> Value {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let (status, body) = exchange(addr, request.as_bytes()).unwrap();
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// The groups with the ids of what was measured of each.
fn measured(stats: &Value) -> Vec<(&str, Vec<&str>)> {
    let groups = stats["DeviceStats"].as_array().unwrap().iter();
    let ids = |group: &'_ Value| group["InstanceStats"].as_object().unwrap().len();
    assert!(groups.clone().all(|group| ids(group) > 0));
    groups
        .map(|group| {
            let instances = group["InstanceStats"].as_object().unwrap();
            let ids = instances.keys().map(String::as_str).collect();
            (group["Name"].as_str().unwrap(), ids)
        })
        .collect()
}

#[test]
fn task_gets_gpus_measured_once() {
    let built = std::env::current_exe().unwrap();
    let built = built.parent().unwrap().parent().unwrap();
    let built = built.join("examples/libnvml_standin.so");
    if !built.exists() {
        eprintln!("skipped: {} is not built", built.display());
        return;
    }
    let world = World::new();
    let library = world.path("libnvidia-ml.so.1");
    fs::copy(built, &library).unwrap();
    // GPU 0 is divided into parts that are too small.
    world.file("libnvidia-ml.so.1.conf", "gpus 3\nmig 0 2");
    let config = format!(
        r#"
        plugin "nvidia-gpu" {{
          config {{
            library = "{}"
          }}
        }}
        "#,
        library.display()
    );
    let config = world.file("agent.hcl", &config);
    let job = world.file("learn.nomad.hcl", JOB);
    let mut args = world.up(&job);
    args.extend(["-config".to_owned(), config.to_string_lossy().into_owned()]);
    let up = Program::start(args);
    let addr = up.addr();
    up.line("gpus=GPU-1,GPU-2");

    let allocs = get(&addr, "/v1/allocations");
    let id = allocs[0]["ID"].as_str().unwrap();
    let stats = get(&addr, &format!("/v1/client/allocation/{id}/stats"));
    let once = [("NVIDIA H7", vec!["GPU-1", "GPU-2"])];
    assert_eq!(measured(&stats["ResourceUsage"]), once);
    assert_eq!(measured(&stats["Tasks"]["t"]["ResourceUsage"]), once);
    let gpu = &stats["ResourceUsage"]["DeviceStats"][0]["InstanceStats"]["GPU-1"];
    assert_eq!(gpu["Summary"]["IntNumeratorVal"], 1024);
    assert_eq!(gpu["Summary"]["IntDenominatorVal"], 81920);
    // Zero is there, and what the GPU does not know is not.
    let values = &gpu["Stats"]["Attributes"];
    assert_eq!(values["Memory utilization"]["IntNumeratorVal"], 0);
    assert!(values.get("ECC L1 errors").is_none(), "{values}");

    let shown = Program::of(
        command(["alloc", "status", "-stats", id]).env("DROVER_ADDR", format!("http://{addr}")),
    );
    let shown = shown.end().ok();
    assert!(shown.contains("nvidia/gpu/NVIDIA H7[GPU-1]"), "{shown}");
    assert_eq!(shown.matches("[GPU-2]").count(), 1, "{shown}");

    let host = get(&addr, "/v1/client/stats");
    let all = measured(&host);
    assert_eq!(all[0], once[0]);
    assert_eq!(all[1].1, ["MIG-0-0", "MIG-0-1"]);
    up.interrupt();
    up.end();
}
