//! How long it takes to inspect this machine.

use criterion::{Criterion, criterion_group, criterion_main};
use drover_io_real::fingerprint::{Context, PROBES, Settings};

fn probe_machine(bench: &mut Criterion) {
    let Ok(context) = Context::of_this_machine(Settings::default()) else {
        return;
    };
    let own = || PROBES.iter().filter(|probe| !probe.off_unless_enabled);
    for probe in own() {
        let name = format!("fingerprint {}", probe.name);
        bench.bench_function(&name, |bench| bench.iter(|| probe.query(&context)));
    }
    bench.bench_function("fingerprint all, one after the other", |bench| {
        bench.iter(|| own().filter_map(|probe| probe.query(&context).ok()).count());
    });
}

criterion_group!(benches, probe_machine);
criterion_main!(benches);
