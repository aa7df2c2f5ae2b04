//! How commands show usage: bytes, percentages, tables of measurements, devices.

use drover_core::time::Span;

use super::table::{block, columns};
use crate::http::dto::{
    CpuStats, DeviceGroupStats, DeviceStats, HostMemoryStats, MemoryStats, ResourceUsage,
    StatObject, StatValue,
};

/// Bytes as people read them: `18 MiB`, `4.7 MiB`, `0 B`.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let exponent = count.ilog2() / 10;
    let unit = usize::try_from(exponent).map_or(0, |exponent| exponent - 1);
    let unit = UNITS.get(unit).copied().unwrap_or("EiB");
    let value = count as f64 / (1_u64 << (10 * exponent)) as f64;
    let value = (value * 10.0).round() / 10.0;
    if value < 10.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// What is not known.
pub(super) fn unset() -> String {
    "-".to_owned()
}

/// MHz of MHz.
pub(super) fn mhz(used: Option<f64>, all: Option<f64>) -> String {
    let number = |it: Option<f64>| it.map_or_else(unset, |it| it.floor().to_string());
    format!("{}/{} MHz", number(used), number(all))
}

/// Bytes of bytes.
pub(super) fn bytes_of(used: Option<u64>, all: Option<u64>) -> String {
    let number = |it: Option<u64>| it.map_or_else(unset, bytes);
    format!("{}/{}", number(used), number(all))
}

/// Memory that counts: what is charged now, or what is resident where nothing is charged; none if neither
/// was measured.
pub(super) fn memory_used(stats: &MemoryStats) -> Option<u64> {
    match has(&stats.measured, "Usage") {
        true => Some(stats.usage),
        false => has(&stats.measured, "RSS").then_some(stats.rss),
    }
}

/// Whether it was measured how much a task works.
pub(super) fn is_busy_known(stats: &CpuStats) -> bool {
    has(&stats.measured, "Percent")
}

/// The machine's memory, in the order in which it is shown; `-` for what was not measured.
pub(super) fn host_memory(memory: &HostMemoryStats) -> [(&'static str, String); 4] {
    [
        ("Total", memory.total),
        ("Available", memory.available),
        ("Used", memory.used),
        ("Free", memory.free),
    ]
    .map(|(name, count)| {
        // Nomad's own agents do not report what they measured.
        let known = count > 0 || has(&memory.measured, name);
        (name, if known { bytes(count) } else { unset() })
    })
}

fn has(measured: &Option<Vec<String>>, name: &str) -> bool {
    measured.iter().flatten().any(|it| it == name)
}

/// Sections of what was measured, one below the other.
pub(super) fn sections(usage: &ResourceUsage) -> String {
    let mut text = String::new();
    for (title, rows) in [
        ("Memory Stats", memory(&usage.memory_stats)),
        ("CPU Stats", cpu(&usage.cpu_stats)),
    ] {
        if !rows[0].is_empty() {
            text.push_str(&format!("{title}\n{}\n\n", columns(rows)));
        }
    }
    let groups = usage.device_stats.iter().flatten();
    let devices: Vec<String> = groups.flat_map(devices).collect();
    if !devices.is_empty() {
        text.push_str(&format!("Device Stats\n{}\n\n", devices.join("\n\n")));
    }
    text
}

/// Names of what was measured, and the values below.
fn memory(stats: &MemoryStats) -> [Vec<String>; 2] {
    rows(&stats.measured, |name| match name {
        "RSS" => Some(bytes(stats.rss)),
        "Cache" => Some(bytes(stats.cache)),
        "Swap" => Some(bytes(stats.swap)),
        "Mapped File" => Some(bytes(stats.mapped_file)),
        "Usage" => Some(bytes(stats.usage)),
        "Max Usage" => Some(bytes(stats.max_usage)),
        "Kernel Usage" => Some(bytes(stats.kernel_usage)),
        "Kernel Max Usage" => Some(bytes(stats.kernel_max_usage)),
        _ => None,
    })
}

fn cpu(stats: &CpuStats) -> [Vec<String>; 2] {
    let percent = |value: f64| Some(format!("{value:.2}%"));
    rows(&stats.measured, |name| match name {
        "Percent" => percent(stats.percent),
        "System Mode" => percent(stats.system_mode),
        "User Mode" => percent(stats.user_mode),
        "Throttled Periods" => Some(stats.throttled_periods.to_string()),
        "Throttled Time" => Some(time(stats.throttled_time)),
        _ => None,
    })
}

/// Nanoseconds as people read them.
fn time(nanos: u64) -> String {
    Span(i64::try_from(nanos).unwrap_or(i64::MAX)).to_string()
}

fn rows(
    measured: &Option<Vec<String>>,
    value: impl Fn(&str) -> Option<String>,
) -> [Vec<String>; 2] {
    let names = measured.iter().flatten();
    let mut pairs: Vec<(String, String)> = names
        .filter_map(|name| Some((name.clone(), value(name)?)))
        .collect();
    pairs.sort();
    let (names, values) = pairs.into_iter().unzip();
    [names, values]
}

/// A block for each device of a group.
pub(super) fn devices(group: &DeviceGroupStats) -> Vec<String> {
    let name = format!("{}/{}/{}", group.vendor, group.kind, group.name);
    let one = |(id, device): (&String, &DeviceStats)| {
        let mut lines = vec![("Device".to_owned(), format!("{name}[{id}]"))];
        if let Some(summary) = &device.summary {
            lines.push(("Summary".to_owned(), value(summary)));
        }
        if let Some(stats) = &device.stats {
            flatten("", stats, &mut lines);
        }
        block(lines.iter().map(|(key, it)| (key.as_str(), it.clone())))
    };
    group.instance_stats.iter().map(one).collect()
}

fn flatten(above: &str, stats: &StatObject, lines: &mut Vec<(String, String)>) {
    for (name, it) in &stats.attributes {
        lines.push((format!("{above}{name}"), value(it)));
    }
    for (name, inner) in &stats.nested {
        flatten(&format!("{above}{name}."), inner, lines);
    }
}

/// A value with its unit; so much of so much where it is a part.
fn value(value: &StatValue) -> String {
    let of = |part: Option<String>, all: Option<String>| {
        let part = part?;
        Some(all.map_or(part.clone(), |all| format!("{part} / {all}")))
    };
    let text = |number: f64| number.to_string();
    let float = of(
        value.float_numerator_val.map(text),
        value.float_denominator_val.map(text),
    );
    let int = of(
        value.int_numerator_val.map(|it| it.to_string()),
        value.int_denominator_val.map(|it| it.to_string()),
    );
    let number = float.or(int).map(|number| match value.unit.as_str() {
        "" => number,
        unit => format!("{number} {unit}"),
    });
    let plain = || value.bool_val.map(|it| it.to_string());
    let text = number.or_else(|| value.string_val.clone());
    text.or_else(plain).unwrap_or_else(unset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_nomad_units() {
        for (count, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (4096, "4.0 KiB"),
            (4_928_307, "4.7 MiB"),
            (19_398_656, "18 MiB"),
            (25_276_514_304, "24 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn unmeasured_values_are_not_shown() {
        let mut usage = ResourceUsage::default();
        assert_eq!(sections(&usage), "");
        usage.memory_stats = MemoryStats {
            rss: 1 << 20,
            usage: 5 << 20,
            measured: Some(vec!["Swap".to_owned(), "RSS".to_owned()]),
            ..MemoryStats::default()
        };
        usage.cpu_stats.measured = Some(vec!["Percent".to_owned()]);
        let expected = "Memory Stats\nRSS      Swap\n1.0 MiB  0 B\n\nCPU Stats\nPercent\n0.00%\n\n";
        assert_eq!(sections(&usage), expected);
        assert_eq!(memory_used(&usage.memory_stats), Some(1 << 20));
    }

    #[test]
    fn device_shows_values_and_unset_is_not_zero() {
        let value = |part: Option<i64>, all: Option<i64>| StatValue {
            int_numerator_val: part,
            int_denominator_val: all,
            unit: "MiB".to_owned(),
            ..StatValue::default()
        };
        let inner = StatObject {
            attributes: [("used".to_owned(), value(Some(0), Some(8)))].into(),
            ..StatObject::default()
        };
        let device = DeviceStats {
            stats: Some(StatObject {
                attributes: [("heat".to_owned(), value(None, None))].into(),
                nested: [("memory".to_owned(), inner)].into(),
            }),
            ..DeviceStats::default()
        };
        let group = DeviceGroupStats {
            vendor: "acme".to_owned(),
            kind: "gpu".to_owned(),
            name: "big".to_owned(),
            instance_stats: [("a".to_owned(), device)].into(),
        };
        let expected = "Device      = acme/gpu/big[a]\nheat        = -\nmemory.used = 0 / 8 MiB";
        assert_eq!(devices(&group), [expected]);
    }

    #[test]
    fn measured_tasks_show_alloc_status() {
        let tasks = crate::testing::measured_alloc().tasks;
        let tasks = tasks.iter().map(|(name, task)| {
            let shown = sections(&task.resource_usage);
            format!("{name}\n{shown}")
        });
        insta::assert_snapshot!("alloc_status", tasks.collect::<String>());
    }
}
