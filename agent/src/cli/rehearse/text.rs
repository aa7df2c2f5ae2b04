//! The report as people read it.

use std::fmt::Write as _;

use drover_core::time::{SECOND, Span};
use drover_io_sim::rehearse::{Block, Finding, GroupBlock, Setting};

use super::Report;

/// The trouble and what it is.
pub(super) fn title(block: &Block) -> String {
    format!("{}: {}", block.trouble.name(), block.sentence)
}

/// What came of it.
pub(super) fn body(report: &Report<'_>, block: &Block) -> String {
    if let Some(why) = &block.not_for {
        return format!("  Not rehearsed: {why}.\n");
    }
    let mut text = String::new();
    for group in &block.groups {
        let _ = writeln!(text, "  {}", fared(group, block.runs));
    }
    for finding in &block.findings {
        text.push_str(&told(report, block, finding));
    }
    text
}

fn fared(group: &GroupBlock, runs: usize) -> String {
    let down = match &group.worst {
        None => "never down".to_owned(),
        Some(worst) => format!(
            "worst downtime {} (at {}, seed {}), typically {}",
            length(worst.down),
            length(worst.at),
            worst.seed,
            length(group.typical)
        ),
    };
    let back = if group.back == runs {
        "always whole again by itself".to_owned()
    } else {
        format!("whole again by itself in {} of {runs} runs", group.back)
    };
    format!("{}: {down}; {back}", group.group)
}

fn told(report: &Report<'_>, block: &Block, finding: &Finding) -> String {
    let sign = if finding.kind.is_bad() {
        "BAD "
    } else {
        "note"
    };
    let mut text = String::new();
    let whose = match finding.group.as_str() {
        "" => String::new(),
        group => format!("{group}: "),
    };
    let _ = writeln!(text, "  {sign}  {whose}{}", finding.what);
    for setting in &finding.settings {
        let _ = writeln!(text, "        {}", blamed(report, setting));
        let _ = writeln!(text, "          {}", setting.suggestion);
    }
    let again = report.again(block.trouble, finding.seed);
    let _ = writeln!(text, "        see it: {again}");
    text
}

fn blamed(report: &Report<'_>, setting: &Setting) -> String {
    match report.place_of(&setting.paths) {
        Some((file, line)) => format!("{file}:{line}: {}", setting.text),
        None => {
            let path = setting.paths.last().map_or("", String::as_str);
            format!("{path} (not written, the default): {}", setting.text)
        }
    }
}

/// A length of time to the second, or finer where it is short.
fn length(span: Span) -> String {
    let unit = if span.0 < 10 * SECOND {
        SECOND / 1000
    } else {
        SECOND
    };
    Span(span.0 / unit * unit).to_string()
}

/// One line about everything.
pub(super) fn summary(blocks: &[Block]) -> String {
    let runs: usize = blocks.iter().map(|block| block.runs).sum();
    let troubles = blocks
        .iter()
        .filter(|block| block.not_for.is_none())
        .count();
    let findings = || blocks.iter().flat_map(|block| &block.findings);
    let bad = findings().filter(|finding| finding.kind.is_bad()).count();
    let notes = findings().count() - bad;
    let verdict = match (bad, notes) {
        (0, 0) => "nothing found".to_owned(),
        (0, _) => format!("nothing bad, {}", many(notes, "note")),
        (_, 0) => many(bad, "bad finding"),
        (_, _) => format!("{}, {}", many(bad, "bad finding"), many(notes, "note")),
    };
    let (troubles, runs) = (many(troubles, "trouble"), many(runs, "run"));
    format!("{troubles}, {runs}: {verdict}")
}

fn many(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
