//! From a driver's messages to the core's types. Nothing is evaluated here: what is missing is
//! missing.

use drover_core::driver::reported::{
    ReportedCpu, ReportedMemory, ReportedProcess, ReportedTaskEvent, ReportedUsage,
};
use drover_core::input::{DriverFingerprint, DriverHealth};
use drover_core::model::alloc::{DriverNetwork, ExitResult};
use drover_core::model::float::Float;

use super::proto::driver as proto;
use super::reported;

pub(super) fn driver(message: proto::FingerprintResponse) -> DriverFingerprint {
    use proto::fingerprint_response::Health as H;
    DriverFingerprint {
        health: match message.health() {
            H::Undetected => DriverHealth::Undetected,
            H::Unhealthy => DriverHealth::Unhealthy,
            H::Healthy => DriverHealth::Healthy,
        },
        description: message.health_description,
        attributes: message
            .attributes
            .into_iter()
            .map(|(name, value)| (name, reported::attribute(value)))
            .collect(),
    }
}

pub(super) fn event(event: proto::DriverTaskEvent) -> ReportedTaskEvent {
    ReportedTaskEvent {
        task_id: event.task_id,
        alloc_id: event.alloc_id,
        task_name: event.task_name,
        time: event.timestamp.as_ref().map(reported::timestamp),
        message: event.message,
        annotations: event.annotations,
    }
}

/// A network; ports that are none are left out.
pub(super) fn network(reported: proto::NetworkOverride) -> DriverNetwork {
    let ports = reported.port_map.into_iter();
    DriverNetwork {
        ip: reported.addr,
        auto_advertise: reported.auto_advertise,
        port_map: ports
            .filter_map(|(label, port)| Some((label, u16::try_from(port).ok()?)))
            .collect(),
    }
}

/// An exit as the core knows it: a signal's code is 128 and its number.
pub(super) fn exit(result: proto::ExitResult, error: &str) -> ExitResult {
    let code = match result.exit_code {
        0 if result.signal != 0 => 128_i32.saturating_add(result.signal),
        code => code,
    };
    ExitResult {
        code: Some(code),
        signal: result.signal,
        oom_killed: result.oom_killed,
        message: Some(error.to_owned()).filter(|error| !error.is_empty()),
    }
}

pub(super) fn usage(stats: proto::TaskStats) -> ReportedUsage {
    let by_pid = stats.resource_usage_by_pid.into_iter();
    ReportedUsage {
        time: stats.timestamp.as_ref().map(reported::timestamp),
        total: stats.agg_resource_usage.map(process).unwrap_or_default(),
        by_pid: by_pid.map(|(pid, usage)| (pid, process(usage))).collect(),
    }
}

fn process(usage: proto::TaskResourceUsage) -> ReportedProcess {
    ReportedProcess {
        cpu: usage.cpu.as_ref().map(cpu),
        memory: usage.memory.as_ref().map(memory),
    }
}

fn cpu(usage: &proto::CpuUsage) -> ReportedCpu {
    use proto::cpu_usage::Fields as F;
    let has = |field: F| usage.measured_fields.contains(&field.into());
    let float = |field, value| has(field).then(|| Float::new(value));
    ReportedCpu {
        system: float(F::SystemMode, usage.system_mode),
        user: float(F::UserMode, usage.user_mode),
        ticks: float(F::TotalTicks, usage.total_ticks),
        percent: float(F::Percent, usage.percent),
        throttled_periods: has(F::ThrottledPeriods).then_some(usage.throttled_periods),
        throttled_time: has(F::ThrottledTime).then_some(usage.throttled_time),
    }
}

fn memory(usage: &proto::MemoryUsage) -> ReportedMemory {
    use proto::memory_usage::Fields as F;
    let if_measured = |field: F, value| {
        let measured = usage.measured_fields.contains(&field.into());
        measured.then_some(value)
    };
    ReportedMemory {
        rss: if_measured(F::Rss, usage.rss),
        cache: if_measured(F::Cache, usage.cache),
        swap: if_measured(F::Swap, usage.swap),
        usage: if_measured(F::Usage, usage.usage),
        max_usage: if_measured(F::MaxUsage, usage.max_usage),
        kernel: if_measured(F::KernelUsage, usage.kernel_usage),
        kernel_max: if_measured(F::KernelMaxUsage, usage.kernel_max_usage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmeasured_driver_stats_are_absent() {
        let usage = proto::TaskResourceUsage {
            cpu: None,
            memory: Some(proto::MemoryUsage {
                rss: 0,
                cache: 7,
                measured_fields: vec![0, 99],
                ..Default::default()
            }),
        };
        let reported = process(usage);
        let wanted = ReportedMemory {
            rss: Some(0),
            ..ReportedMemory::default()
        };
        assert_eq!((reported.cpu, reported.memory), (None, Some(wanted)));
    }

    #[test]
    fn signal_exit_sets_exit_code() {
        let result = proto::ExitResult {
            exit_code: 0,
            signal: 9,
            oom_killed: true,
        };
        assert_eq!(exit(result, "").code, Some(137));
        let plain = proto::ExitResult {
            exit_code: 3,
            ..Default::default()
        };
        assert_eq!(exit(plain, "no").message.as_deref(), Some("no"));
    }
}
