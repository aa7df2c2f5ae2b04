//! When the disk is checked, and ended allocations are garbage-collected: `gc_…` and `disk_…` of the block
//! `client`.

use drover_core::config::{DiskUsageLimits, PARALLEL_DESTROYS};
use drover_core::text::{parse_duration, quote};
use drover_core::time::Span;

use super::literal::Fields;

/// The shortest pause between two looks at the disk.
const SHORTEST: Span = Span::secs(1);

/// The usual pause between two looks at how much directories take.
const DIR_USAGE: Span = Span::secs(60);

/// When ended allocations are garbage-collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcConfig {
    /// How many ended allocations are kept at most.
    pub keep: usize,
    /// How many are garbage-collected at once.
    pub parallel: usize,
    /// When the disk has too little room for them.
    pub disk_limits: DiskUsageLimits,
    /// The pause between two looks at how much directories of allocations take; nobody looks if there is none.
    pub dir_usage: Option<Span>,
    /// Whether the file system keeps allocations from taking more than they asked for.
    pub disk_quota: bool,
}

impl Default for GcConfig {
    fn default() -> GcConfig {
        GcConfig {
            keep: 50,
            parallel: PARALLEL_DESTROYS,
            disk_limits: DiskUsageLimits::default(),
            dir_usage: Some(DIR_USAGE),
            disk_quota: false,
        }
    }
}

/// Reads the settings.
pub(super) fn gc(given: &mut Fields) -> Result<GcConfig, String> {
    let mut gc = GcConfig::default();
    if let Some(text) = given.text("gc_interval")? {
        let interval = parse_duration(&text).ok();
        let long_enough = interval.filter(|interval| *interval >= SHORTEST);
        gc.disk_limits.interval = long_enough.ok_or_else(|| {
            let text = quote(&text);
            format!("client: gc_interval: {text} is no time of a second or more, as \"1m\" is")
        })?;
    }
    if let Some(text) = given.text("disk_usage_interval")? {
        let interval = parse_duration(&text).ok();
        let interval = interval.filter(|it| *it == Span::ZERO || *it >= SHORTEST);
        let interval = interval.ok_or_else(|| {
            let text = quote(&text);
            format!(
                "client: disk_usage_interval: {text} is no time of a second or more, as \"1m\" is, and not \"0s\" \
                 for never"
            )
        })?;
        gc.dir_usage = Some(interval).filter(|it| *it != Span::ZERO);
    }
    gc.disk_quota = given.flag("disk_quota")?.unwrap_or(false);
    let percent = [
        ("gc_disk_usage_threshold", &mut gc.disk_limits.disk_percent),
        (
            "gc_inode_usage_threshold",
            &mut gc.disk_limits.inode_percent,
        ),
    ];
    for (name, limit) in percent {
        if let Some(number) = given.number(name)? {
            let whole = u8::try_from(number)
                .ok()
                .filter(|whole| (1..=100).contains(whole));
            *limit = whole.ok_or_else(|| format!("client: {name}: {number} is no percentage"))?;
        }
    }
    if let Some(number) = given.number("gc_max_allocs")? {
        let keep = usize::try_from(number)
            .map_err(|_| format!("client: gc_max_allocs: {number} is too few"))?;
        gc.keep = keep;
    }
    if let Some(number) = given.number("gc_parallel_destroys")? {
        let parallel = usize::try_from(number).ok().filter(|number| *number > 0);
        gc.parallel =
            parallel.ok_or_else(|| format!("client: gc_parallel_destroys: {number} is too few"))?;
    }
    Ok(gc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn gc_settings_are_configurable() {
        let text = "client {\n gc_interval = \"5s\"\n gc_max_allocs = 3\n \
                    gc_disk_usage_threshold = 95\n gc_parallel_destroys = 7\n \
                    disk_usage_interval = \"10s\"\n disk_quota = true\n}";
        let gc = parse(text).unwrap().client.gc;
        assert_eq!(gc.keep, 3);
        assert_eq!(gc.parallel, 7);
        assert_eq!((gc.dir_usage, gc.disk_quota), (Some(Span::secs(10)), true));
        assert_eq!(gc.disk_limits.interval, Span::secs(5));
        assert_eq!(gc.disk_limits.disk_percent, 95);
        assert_eq!(gc.disk_limits.inode_percent, 70, "as in Nomad");
        assert_eq!(parse("").unwrap().client.gc, GcConfig::default());
        let never = parse("client { disk_usage_interval = \"0s\" }").unwrap();
        assert_eq!(never.client.gc.dir_usage, None);
    }

    #[test]
    fn invalid_setting_is_refused_by_name() {
        for (setting, expected) in [
            ("gc_interval = \"1ms\"", "of a second or more"),
            ("gc_interval = \"often\"", "of a second or more"),
            ("gc_interval = 60", "a string is needed"),
            ("disk_usage_interval = \"1ms\"", "for never"),
            ("gc_disk_usage_threshold = 0", "is no percentage"),
            ("gc_disk_usage_threshold = 101", "is no percentage"),
            (
                "gc_inode_usage_threshold = 70.5",
                "a whole number is needed",
            ),
            ("gc_max_allocs = -1", "is too few"),
            ("gc_parallel_destroys = 0", "is too few"),
            ("gc_max_alloc = 1", "did you mean gc_max_allocs?"),
        ] {
            let why = parse(&format!("client {{\n{setting}\n}}")).unwrap_err();
            assert!(why.contains(expected), "{setting}: {why}");
        }
    }
}
