//! The report as data.

use drover_io_sim::rehearse::{Block, Finding, Setting};
use serde_json::{Value, json};

use super::Report;

/// Everything that the text says.
pub(super) fn report(report: &Report<'_>, blocks: &[Block], runs: usize) -> Value {
    let left_out = report.rehearsal.left_out();
    let left_out = left_out
        .map(|(group, less, whole)| json!({ "Group": group, "Rehearsed": less, "Count": whole }));
    json!({
        "Job": report.rehearsal.job().id,
        "Seed": report.args.seed,
        "Runs": runs,
        "Bad": blocks.iter().any(Block::is_bad),
        "LeftOut": left_out.collect::<Vec<_>>(),
        "Troubles": blocks.iter().map(|b| block(report, b)).collect::<Vec<_>>(),
    })
}

fn block(report: &Report<'_>, block: &Block) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "Kind": finding.kind,
            "Bad": finding.kind.is_bad(),
            "Group": finding.group,
            "What": finding.what,
            "Runs": finding.runs,
            "Seed": finding.seed,
            "Replay": report.again(block.trouble, finding.seed),
            "Settings": finding.settings.iter().map(|s| setting(report, s)).collect::<Vec<_>>(),
        })
    };
    json!({
        "Trouble": block.trouble,
        "Sentence": block.sentence,
        "NotFor": block.not_for,
        "Runs": block.runs,
        "Groups": block.groups,
        "Findings": block.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn setting(report: &Report<'_>, setting: &Setting) -> Value {
    json!({
        "Line": report.position_of(&setting.paths).map(|(_, line)| line),
        "Paths": setting.paths,
        "Text": setting.text,
        "Suggestion": setting.suggestion,
    })
}
