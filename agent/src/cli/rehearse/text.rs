//! The report as people read it.

use std::fmt::Write as _;

use drover_io_sim::rehearse::{Block, Finding, GroupBlock, Setting, rounded};

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
        let _ = writeln!(text, "  {}", outcome_text(group, block.runs));
    }
    for finding in &block.findings {
        text.push_str(&finding_text(report, block, finding));
    }
    text
}

fn outcome_text(group: &GroupBlock, runs: usize) -> String {
    let name = &group.group;
    let always = group.lost == 0;
    let worst = match &group.worst {
        None if always => return format!("{name}: never down"),
        None => return format!("{name}: down for ever in {} of {runs} runs", group.lost),
        Some(worst) => format!(
            "down for {} at most (from {} on, seed {})",
            rounded(worst.down),
            rounded(worst.at),
            worst.seed
        ),
    };
    let typical = match group.typical {
        Some(typical) => format!("typically {}", rounded(typical)),
        None => "typically for ever".to_owned(),
    };
    match group.lost {
        0 => format!("{name}: {worst}, {typical}; always up again by itself"),
        lost => format!("{name}: {worst} or for ever ({lost} of {runs} runs), {typical}"),
    }
}

fn finding_text(report: &Report<'_>, block: &Block, finding: &Finding) -> String {
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
        let _ = writeln!(text, "        by {}", attributed(report, setting));
    }
    let again = report.again(block.trouble, finding.seed);
    let _ = writeln!(text, "        see {again}");
    text
}

fn attributed(report: &Report<'_>, setting: &Setting) -> String {
    match report.position_of(&setting.paths) {
        Some((file, line)) => format!("{file}:{line}: {}", setting.text),
        None => {
            let of_group = |path: &&String| !path.contains(".task[");
            let path = setting
                .paths
                .iter()
                .find(of_group)
                .map_or("", String::as_str);
            format!("{path}, not written, so the default: {}", setting.text)
        }
    }
}

/// What might help against everything that was found, each setting once.
pub(super) fn help(report: &Report<'_>, blocks: &[Block]) -> String {
    let mut seen: Vec<(String, &str)> = Vec::new();
    let findings = blocks.iter().flat_map(|block| &block.findings);
    for setting in findings.flat_map(|finding| &finding.settings) {
        let one = (attributed(report, setting), setting.suggestion.as_str());
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    let mut text = String::new();
    let mut last = "";
    for (setting, suggestion) in &seen {
        if setting != last {
            let _ = writeln!(text, "  {setting}");
        }
        last = setting;
        let _ = writeln!(text, "    {suggestion}");
    }
    text
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
