//! The `drover` program.
use drover::{jobspec, runtime};
use drover_core::effect::Reply;
use drover_core::ids::AllocId;
use drover_core::input::{LocalInput, ShutdownMode};
use drover_core::model::event::TaskEvent;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

struct Plain;
impl runtime::Screen for Plain {
    fn alloc(&mut self, id: AllocId, name: &str, _: &[String], running: bool) {
        println!("alloc {} {name} {running}", id.short());
    }
    fn event(&mut self, alloc: &str, task: &str, event: &TaskEvent) {
        println!(
            "{alloc}/{task}: {} {}",
            event.kind.as_str(),
            event.display_message
        );
    }
    fn blocked(&mut self, group: &str, why: &str) {
        println!("no place for {group}: {why}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    runtime::init_log("info");
    let mut signals = runtime::Signals::catch().unwrap();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let parsed = match jobspec::parse(&text, &args[1], &jobspec::Options::default()) {
        Ok(p) => p,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    let settings = runtime::Settings {
        data_dir: PathBuf::from(&args[2]),
        node_name: None,
        datacenter: "dc1".into(),
        http_addr: "127.0.0.1:4646".into(),
    };
    let running = match runtime::start(&settings) {
        Ok(r) => r,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    for r in &running.remarks {
        eprintln!("{r}");
    }
    let job = parsed.job;
    let mut job = job;
    if job.name.is_empty() {
        job.name = job.id.clone();
    }
    let key = job.key();
    let reply = running
        .door
        .local(LocalInput::Register {
            job: Arc::new(job),
            expect_index: None,
        })
        .await;
    if !matches!(reply, Ok(Reply::Registered { .. })) {
        eprintln!("{reply:?}");
    }
    let end = runtime::follow(&running.door, &key, &mut signals, &mut Plain).await;
    println!("{end:?}");
    let _ = running.door.shutdown(ShutdownMode::StopTasks).await;
    let _ = running.core.await;
    ExitCode::SUCCESS
}
