//! Time zones of simulated worlds: one whose clocks are set each few minutes, and told of for a day only.

use drover_core::cron::zone::ZoneOffsets;

/// The zone whose clocks are set forwards and back again and again.
pub const RESTLESS: &str = "Sim/Restless";

/// How long its clocks stay as they are, in seconds.
const PERIOD: i64 = 2500;

/// How far ahead of UTC they are every other time, in seconds.
const AHEAD: i32 = 1800;

/// How far around now they are known, in seconds.
const KNOWN: i64 = 4 * 3600;

/// How far the clocks of a zone are ahead of UTC.
pub(crate) fn offset(zone: &str, at: i64) -> i64 {
    match zone == RESTLESS && at.div_euclid(PERIOD) % 2 == 1 {
        true => i64::from(AHEAD),
        false => 0,
    }
}

/// What is told of a zone by whoever is asked now.
pub(crate) fn around(zone: &str, at: i64) -> Option<ZoneOffsets> {
    if zone != RESTLESS {
        return None;
    }
    let offset = |at| i32::try_from(offset(zone, at)).unwrap_or(0);
    let (from, until) = (at - KNOWN, at + KNOWN);
    let changes = (from.div_euclid(PERIOD) + 1..).map(|nth| nth * PERIOD);
    let changes = changes
        .take_while(|at| *at < until)
        .map(|at| (at, offset(at)));
    Some(ZoneOffsets {
        from,
        until,
        first: offset(from),
        changes: changes.collect(),
    })
}
