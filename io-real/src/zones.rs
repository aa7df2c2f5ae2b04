//! The local time of zones, out of the system's database or the one that is built in.

use drover_core::cron::zone::{MAX_CHANGES, ZoneOffsets, is_utc};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How far before and after now a zone is told of, in seconds.
const KNOWN: i64 = 10 * 366 * 24 * 3600;

/// A time at which every zone is known, for who asks only whether there is one.
pub const ANY_TIME: i64 = 1_800_000_000;

/// What is known of a zone around a second since 1970. `Local` is the machine's own.
///
/// # Errors
/// There is no such zone.
pub fn around(name: &str, second: i64) -> Result<ZoneOffsets, String> {
    if is_utc(name) {
        return Ok(ZoneOffsets::utc());
    }
    let zone = match name {
        "Local" => TimeZone::system(),
        name => TimeZone::get(name).map_err(|error| error.to_string())?,
    };
    let far = "the time is out of the calendar";
    let at = |second: i64| Timestamp::from_second(second).map_err(|_| far.to_owned());
    let (from, until) = (second.saturating_sub(KNOWN), second.saturating_add(KNOWN));
    let first = zone.to_offset(at(from)?).seconds();
    let last = at(until)?;
    let mut changes: Vec<(i64, i32)> = zone
        .following(at(from)?)
        .take_while(|change| change.timestamp() < last)
        .map(|change| (change.timestamp().as_second(), change.offset().seconds()))
        .take(MAX_CHANGES + 1)
        .collect();
    // Not more than is taken, and what is left out is not told of.
    let until = match changes.get(MAX_CHANGES) {
        Some((left_out, _)) => *left_out,
        None => until,
    };
    changes.truncate(MAX_CHANGES);
    Ok(ZoneOffsets {
        from,
        until,
        first,
        changes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str, now: i64) -> ZoneOffsets {
        around(name, now).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    #[test]
    fn zone_transitions_around_now_are_reported() {
        let now = 1_795_632_000;
        let berlin = known("Europe/Berlin", now);
        assert_eq!(berlin.check(), Ok(()));
        assert!(
            berlin.covers(now) && berlin.changes.len() >= 38,
            "{}",
            berlin.changes.len()
        );
        // 2026-10-25, 01:00 UTC.
        assert!(berlin.changes.contains(&(1_792_890_000, 3600)));
        assert_eq!(berlin.offset(1_792_889_999), Some(7200));
        assert_eq!(berlin.offset(1_792_890_000), Some(3600));
        for name in [
            "",
            "UTC",
            "Asia/Tokyo",
            "America/New_York",
            "Africa/Casablanca",
            "Local",
        ] {
            let zone = known(name, now);
            assert_eq!(zone.check(), Ok(()), "{name}");
        }
        assert!(around("Mars/Olympus", now).is_err());
        assert!(around("Europe/Berlin", i64::MAX).is_err());
    }
}
