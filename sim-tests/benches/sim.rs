//! How fast simulated worlds go, with every property checked: `cargo bench --profile measure -p drover-sim-tests`.
//! Throughput is in whole runs, in inputs to the agent, and in simulated seconds.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::RestartMode;
use drover_core::model::task::Hook;
use drover_core::time::{SECOND, Span};
use drover_io_sim::{Faults, Sim};
use drover_sim_tests::build::{GroupExt, TaskExt, group, job, service, task};
use drover_sim_tests::inspect::Inspect;

const DAY: Span = Span::secs(24 * 3600);

/// One allocation of two tasks lives, is stopped and comes to rest.
fn small_world(seed: u64) -> Sim {
    let mut sim = Sim::new(seed);
    sim.world.scene.faults = Faults::swarm(seed);
    let side = task("side").hook(Hook::Prestart, true);
    sim.register(&service("web", [task("main"), side]));
    let _ = sim.run(Span::secs(60));
    sim.deregister("web", false);
    let _ = sim.run(Span::secs(60));
    if let Err(violation) = sim.converge() {
        panic!("seed {seed}: {violation:?}");
    }
    sim
}

/// So many copies of a task that ends each minute and is started again.
fn busy(copies: i64) -> Job {
    let main = task("main").ends("60s", 0);
    let main = main.restarts(1_000_000, DAY, Span::secs(1), RestartMode::Delay);
    let main = group("g", [main]).count(copies);
    job("busy", JobType::Service, [main])
}

fn running(copies: i64, of: &Job) -> Sim {
    let mut sim = Sim::new(7);
    sim.register(of);
    let _ = sim.run(Span::secs(10));
    assert_eq!(sim.living("main"), usize::try_from(copies).unwrap_or(0));
    sim
}

fn benches(c: &mut Criterion) {
    let mut seed = 0;
    let mut group = c.benchmark_group("sim");
    group.throughput(Throughput::Elements(1));
    group.bench_function("small world, whole runs", |b| {
        b.iter(|| {
            seed += 1;
            black_box(small_world(seed))
        });
    });

    let sim = running(50, &busy(50));
    let minutes = Span::secs(10 * 60);
    let mut after = sim.clone();
    let _ = after.run(minutes);
    group.throughput(Throughput::Elements(after.steps - sim.steps));
    group.bench_function("50 tasks, inputs", |b| {
        b.iter_batched_ref(
            || sim.clone(),
            |sim| black_box(sim.run(minutes).is_ok()),
            criterion::BatchSize::LargeInput,
        );
    });

    let sim = running(20, &busy(20));
    let day = Span::secs(6 * 3600);
    group.throughput(Throughput::Elements((day.0 / SECOND).unsigned_abs()));
    group.sample_size(10);
    group.bench_function("20 allocations, simulated seconds", |b| {
        b.iter_batched_ref(
            || sim.clone(),
            |sim| black_box(sim.run(day).is_ok()),
            criterion::BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
