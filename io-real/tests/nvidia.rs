//! GPUs of NVIDIA: loading the library, what it tells, and all that can be wrong with it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/nvidia.rs"]
mod nvidia;

use drover_core::device::reported::ReportedGroup;
use drover_core::input::DeviceReport;
use drover_io_real::device::nvidia::NvidiaSettings;
use nvidia::{Gpus, Standin, health, held, shown};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;

/// What takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

const MODEL: &str = "NVIDIA H7";
const PART: &str = "NVIDIA H7 MIG 1g.10gb";

/// GPUs that were told of once.
async fn gpus(standin: &Standin) -> Gpus {
    let mut gpus = Gpus::new(standin.settings());
    gpus.watch();
    gpus.devices().await;
    gpus
}

#[tokio::test]
async fn gpu_fingerprint_matches_nomad() {
    let standin = Standin::new("gpus 2\nmig 1 2");
    let mut gpus = Gpus::new(standin.settings());
    gpus.watch();
    let groups = gpus.devices().await;
    insta::assert_snapshot!("groups", serde_json::to_string_pretty(&groups).unwrap());
}

/// Listens until it tells of these, and says what it told. What there is may change in the middle
/// of a look.
async fn until(gpus: &mut Gpus, wanted: &[(&str, &str, bool)]) -> Vec<ReportedGroup> {
    let listen = async {
        loop {
            let groups = gpus.devices().await;
            if health(&groups) == wanted {
                return groups;
            }
        }
    };
    timeout(TIMEOUT, listen).await.expect("it tells of others")
}

#[tokio::test]
async fn gpu_change_is_reported() {
    let standin = Standin::new("gpus 2");
    let mut gpus = Gpus::new(standin.settings());
    gpus.watch();
    until(&mut gpus, &[(MODEL, "GPU-0", true), (MODEL, "GPU-1", true)]).await;
    standin.now("gpus 2\nlost 1");
    let lost = [(MODEL, "GPU-0", true), (MODEL, "GPU-1", false)];
    let groups = until(&mut gpus, &lost).await;
    let why = &groups[0].devices[1].description;
    assert!(why.contains("fell off the bus"), "{why}");
    standin.now("gpus 2\nuuid 1 GPU-new");
    until(
        &mut gpus,
        &[(MODEL, "GPU-0", true), (MODEL, "GPU-new", true)],
    )
    .await;
    // Divided, a GPU is nobody's as a whole; a part of a lost one is lost.
    standin.now("gpus 2\nmig 0 2");
    let parts = |healthy| {
        [
            (MODEL, "GPU-1", true),
            (PART, "MIG-0-0", healthy),
            (PART, "MIG-0-1", healthy),
        ]
    };
    until(&mut gpus, &parts(true)).await;
    standin.now("gpus 2\nmig 0 2\nlost 0");
    until(&mut gpus, &parts(false)).await;
    // One that is there no more is not told of.
    standin.now("gpus 1");
    until(&mut gpus, &[(MODEL, "GPU-0", true)]).await;
}

#[tokio::test]
async fn unavailable_gpu_values_are_left_out() {
    let unknown = [
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetPersistenceMode",
        "nvmlDeviceGetMaxPcieLinkWidth",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetEnforcedPowerLimit",
    ];
    let fails = unknown.map(|call| format!("fail {call} 3\n")).concat();
    let standin = Standin::new(&format!("gpus 1\n{fails}"));
    let mut gpus = Gpus::new(standin.settings());
    gpus.watch();
    let groups = gpus.devices().await;
    assert_eq!(health(&groups), [(MODEL, "GPU-0", true)]);
    let names: Vec<&String> = groups[0].attributes.keys().collect();
    assert_eq!(
        names,
        [
            "bar1",
            "cores_clock",
            "display_state",
            "driver_version",
            "memory_clock"
        ]
    );
    let held = [held(MODEL, &["GPU-0"])];
    let usage = gpus.measured(&held).await;
    let measured = &usage.groups()[0].instances["GPU-0"];
    assert_eq!(measured.summary, None);
    let values = &measured.stats.as_ref().unwrap().attributes;
    for unknown in ["GPU utilization", "Memory utilization", "Memory state"] {
        assert!(!values.contains_key(unknown), "{unknown}");
    }
    // Zero is not unset, and what is used is known although the limit is not.
    assert_eq!(values["Decoder utilization"].int_numerator, Some(0));
    assert_eq!(values["Power usage"].int_numerator, Some(70));
    assert_eq!(values["Power usage"].int_denominator, None);
}

#[tokio::test]
async fn assigned_gpu_is_measured() {
    let standin = Standin::new("gpus 3\nmig 2 1");
    let gpus = gpus(&standin).await;
    let held = [held(MODEL, &["GPU-1"]), held(PART, &["MIG-2-0"])];
    insta::assert_snapshot!("measured", shown(&gpus.measured(&held).await));
    // Nobody looked at the others.
    let all = gpus.sampler.board().devices.all();
    let ids = all.groups().iter().flat_map(|group| group.instances.keys());
    assert_eq!(
        ids.map(|id| &**id).collect::<BTreeSet<_>>(),
        BTreeSet::from(["GPU-1", "MIG-2-0"])
    );
    gpus.sampler.refresh_all_devices().await;
    let all = gpus.sampler.board().devices.all();
    assert_eq!(all.groups()[0].instances.len(), 2);
}

#[tokio::test]
async fn gpu_measurement_is_cached_for_a_second() {
    let standin = Standin::new("gpus 1");
    let gpus = gpus(&standin).await;
    let held = [held(MODEL, &["GPU-0"])];
    let time = |usage: &drover_core::stats::devices::DeviceUsage| {
        usage.groups()[0].instances["GPU-0"].time.unwrap()
    };
    let first = time(&gpus.measured(&held).await);
    let until = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        let next = time(&gpus.measured(&held).await);
        if next != first {
            assert!(next.0 - first.0 >= 900_000_000, "it was read too early");
            return;
        }
        assert!(std::time::Instant::now() < until);
    }
}

#[tokio::test]
async fn lost_gpu_does_not_stop_measurement() {
    let standin = Standin::new("gpus 2");
    let gpus = gpus(&standin).await;
    standin.now("gpus 2\nlost 1");
    let usage = gpus.measured(&[held(MODEL, &["GPU-0", "GPU-1"])]).await;
    let ids = usage.groups()[0].instances.keys();
    assert_eq!(ids.map(|id| &**id).collect::<Vec<_>>(), ["GPU-0"]);
}

#[tokio::test]
async fn task_gets_reserved_gpus_only() {
    let standin = Standin::new("gpus 2");
    let gpus = Gpus::new(standin.settings());
    // Before anybody looked, too.
    let given = gpus.reserve(MODEL, &["GPU-0", "GPU-1"]).await.unwrap();
    assert_eq!(given.env["NVIDIA_VISIBLE_DEVICES"], "GPU-0,GPU-1");
    assert!(given.mounts.is_empty() && given.nodes.is_empty());
    for (model, id) in [(MODEL, "GPU-9"), (PART, "GPU-0")] {
        let refused = gpus.reserve(model, &[id]).await.unwrap_err();
        assert_eq!(
            refused.message,
            format!("no GPU \"{id}\" of this model here")
        );
        assert!(refused.recoverable);
    }
}

#[tokio::test]
async fn ignored_gpu_is_hidden() {
    let standin = Standin::new("gpus 2");
    let mut gpus = Gpus::new(NvidiaSettings {
        ignored: ["GPU-0".to_owned()].into(),
        ..standin.settings()
    });
    gpus.watch();
    assert_eq!(health(&gpus.devices().await), [(MODEL, "GPU-1", true)]);
    assert!(gpus.reserve(MODEL, &["GPU-0"]).await.is_err());
    gpus.sampler.refresh_all_devices().await;
    let all = gpus.sampler.board().devices.all();
    assert_eq!(all.groups()[0].instances.len(), 1);
}

#[tokio::test]
async fn failing_nvml_reports_reason_and_recovers() {
    let standin = Standin::new("gpus 1\nfail nvmlInit_v2 9");
    let mut gpus = Gpus::new(standin.settings());
    for (has, why) in [
        ("gpus 1\nfail nvmlInit_v2 9", "NVIDIA driver is not loaded"),
        (
            "gpus 1\nfail nvmlDeviceGetCount_v2 999",
            "internal driver error",
        ),
    ] {
        standin.now(has);
        gpus.watch();
        let ended = gpus.ended().await;
        assert!(ended.contains(why), "{ended}");
    }
    standin.now("gpus 1");
    gpus.watch();
    assert_eq!(health(&gpus.devices().await), [(MODEL, "GPU-0", true)]);
    // One that was asked for by its path is to be there.
    let mut gpus = Gpus::new(NvidiaSettings {
        library: Some("/nowhere/libnvidia-ml.so.1".into()),
        ..standin.settings()
    });
    gpus.watch();
    let ended = gpus.ended().await;
    assert!(ended.contains("No such file"), "{ended}");
}

#[tokio::test(start_paused = true)]
async fn hanging_nvml_blocks_no_other_probe() {
    let standin = Standin::new("gpus 1\nhang nvmlDeviceGetCount_v2");
    let mut gpus = Gpus::new(standin.settings());
    gpus.watch();
    // Jobs that want no GPU need not wait.
    assert!(gpus.devices().await.is_empty());
    assert!(gpus.ended().await.contains("does not answer"));
    gpus.watch();
    assert!(gpus.ended().await.contains("an earlier question"));
    let refused = gpus.reserve(MODEL, &["GPU-0"]).await.unwrap_err();
    assert!(
        refused.message.contains("an earlier question"),
        "{refused:?}"
    );
    assert!(gpus.measured(&[held(MODEL, &["GPU-0"])]).await.is_empty());
    // It comes to itself.
    standin.now("gpus 1");
    tokio::time::resume();
    let groups = loop {
        gpus.watch();
        match gpus.receive().await {
            DeviceReport::Devices(groups) => break groups,
            DeviceReport::Ended(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(health(&groups), [(MODEL, "GPU-0", true)]);
}

#[tokio::test]
async fn hanging_gpu_measurement_times_out() {
    let standin = Standin::new("gpus 1");
    let gpus = gpus(&standin).await;
    standin.now("gpus 1\nhang nvmlDeviceGetTemperature");
    let held = [held(MODEL, &["GPU-0"])];
    assert!(gpus.measured(&held).await.is_empty());
    assert!(gpus.measured(&held).await.is_empty());
    standin.now("gpus 1");
    while gpus.measured(&held).await.is_empty() {}
}

/// On a machine with GPUs these are told of, measured and given away; on one without there is
/// nothing, and nothing wrong with that.
#[tokio::test]
async fn gpus_of_this_machine_are_fingerprinted() {
    let mut gpus = Gpus::new(NvidiaSettings::default());
    gpus.watch();
    let groups = match gpus.receive().await {
        DeviceReport::Devices(groups) => groups,
        // A library without a driver that it fits.
        DeviceReport::Ended(why) => {
            eprintln!("skipped: {why}");
            return;
        }
        other @ DeviceReport::Disabled(_) => panic!("{other:?}"),
    };
    let Some(first) = groups.first() else {
        eprintln!("skipped: this machine has no NVIDIA GPUs");
        return;
    };
    eprintln!("{}", serde_json::to_string_pretty(&groups).unwrap());
    assert!(first.attributes["memory"].int > Some(0));
    assert!(first.attributes.contains_key("driver_version"));
    let id = first.devices[0].id.as_str();
    let held = [held(&first.name, &[id])];
    let usage = gpus.measured(&held).await;
    eprintln!("{}", shown(&usage));
    let summary = usage.groups()[0].instances[id].summary.clone().unwrap();
    assert!(summary.int_denominator > Some(0));
    let given = gpus.reserve(&first.name, &[id]).await;
    assert_eq!(given.unwrap().env["NVIDIA_VISIBLE_DEVICES"], id);
}
