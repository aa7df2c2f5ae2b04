//! What random worlds come by: every property has something to look at, every situation that must
//! happen sometimes does, and no pair of a state and an input that was reached is lost again.

use std::collections::BTreeSet;
use std::fs;
use std::thread::available_parallelism;

use drover_io_sim::Property;
use drover_sim_tests::report::report;
use drover_sim_tests::soak::{Plan, Soaked, soak};

const KNOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/coverage.txt");

/// What is reached less often is not noted: any change of the worlds could lose it by chance.
const OFTEN_ENOUGH: u64 = 10;

/// Other seeds than those of the other tests, and always the same.
fn worlds() -> Soaked {
    let plan = Plan {
        from: 1_000_000,
        seeds: 1000,
        seconds: 1500,
        threads: available_parallelism().map_or(2, usize::from),
        first_only: false,
    };
    let soaked = soak(plan, |_, _| {});
    assert_eq!(soaked.seeds, plan.seeds);
    if let Some((_, world, violation)) = soaked.violated.values().next() {
        panic!("{}", report(world, violation, None));
    }
    soaked
}

/// Properties that are raised elsewhere than in a check, so that nobody counts them, and those that
/// only scenarios have.
const UNCOUNTED: &[Property] = &[
    Property::LaunchIdIsStartedOnce,
    Property::TaskHasOneLiveProcess,
    Property::ForeignProcessIsNotTouched,
    Property::ForgottenLaunchIsNotRecovered,
    Property::UnchangedRecordIsNotWritten,
    Property::FetchedDiskIsNotHiddenByLocalDisk,
    Property::NetworkHasOneHolder,
    Property::EngineIsAwaited,
    Property::NoLivelock,
    Property::NoPanic,
    Property::SpuriousTimeoutChangesNothing,
    Property::SameInputsSameEffects,
    Property::AgentRestartAtRestChangesNothing,
    Property::ExpectedOutcomeHappens,
    Property::ScenarioExpectationHolds,
    Property::DiskPressureIsToldOnce,
    Property::NamespacesSurviveAgentRestart,
    Property::StartIsInKnownNamespace,
    Property::JobWithoutHomeIsRefused,
    Property::DeletedNamespaceIsEmpty,
    Property::ContentHasItsNamespace,
    Property::DirsAreMeasuredInIntervals,
    Property::OversizedDirectoryIsTold,
    Property::OversizedDirectoryIsToldOnce,
    Property::DiskQuotaIsThatOfJobFile,
    Property::MovedTagMakesOneVersion,
    Property::MovedTagIsFound,
];

#[test]
fn coverage_table_is_reached() {
    let soaked = worlds();
    let silent: Vec<&str> = (Property::ALL.iter())
        .filter(|property| !UNCOUNTED.contains(property))
        .map(|property| property.name())
        .filter(|name| !soaked.reached.contains_key(name))
        .collect();
    assert_eq!(silent, [""; 0], "never looked at");

    let often = (soaked.coverage.lines()).filter(|(_, times)| *times >= OFTEN_ENOUGH);
    let often: BTreeSet<String> = often.map(|(line, _)| line).collect();
    if std::env::var_os("DROVER_BLESS").is_some() {
        let text: String = often.iter().map(|line| format!("{line}\n")).collect();
        return fs::write(KNOWN, text).unwrap_or_else(|why| panic!("{KNOWN}: {why}"));
    }
    let reached: BTreeSet<String> = soaked.coverage.lines().map(|(line, _)| line).collect();
    let known = fs::read_to_string(KNOWN).unwrap_or_default();
    let lost: Vec<&str> = known
        .lines()
        .filter(|line| !reached.contains(*line))
        .collect();
    assert_eq!(
        lost, [""; 0],
        "no longer reached; if that is meant: DROVER_BLESS=1"
    );
    let noted: BTreeSet<&str> = known.lines().collect();
    let new: Vec<&String> = often
        .iter()
        .filter(|line| !noted.contains(line.as_str()))
        .collect();
    assert!(
        new.is_empty(),
        "not in {KNOWN}, DROVER_BLESS=1 adds them: {new:#?}"
    );
}
