//! The task shim: starts one task, moves its output to log files, records its end.
//!
//! One shim runs beside each task. It outlives the agent, so killing or upgrading the agent touches
//! no task; and it is tiny, so a machine can have thousands. The agent's side is the module `shim`
//! of `drover-io-real`; what passes between the two is written down in [`wire`] and [`record`].
//!
//! In the order of a task's life: [`spec`] (what to start), [`claim`] (who may start it),
//! [`launch`] and [`child`] (the fork; of isolated tasks [`isolate`], [`root`] and [`privileges`] too), [`supervise`] with [`stream`], [`logs`] and [`control`]
//! (while it runs), [`leftovers`] (after it), [`adopted`] (a task whose shim was killed).
//!
//! It has a second use: what leads containers into the network of their allocation ([`network`]).

#![no_std]
#![no_main]
// There is no standard library that could define them twice.
#![allow(clippy::missing_safety_doc)]

mod adopted;
mod child;
mod claim;
mod control;
mod core_dumps;
mod isolate;
mod kernel;
mod launch;
mod leftovers;
mod logs;
mod network;
mod privileges;
mod proc;
#[allow(dead_code, reason = "shared with the agent")]
mod record;
mod root;
mod signals;
mod spec;
mod start;
mod stream;
mod supervise;
mod text;
#[allow(dead_code, reason = "shared with the agent")]
mod wire;

use adopted::Adopted;
use child::Ends;
use claim::{Claim, Refusal};
use control::Control;
use record::{Exit, State};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::process::{fchdir, getpid, set_child_subreaper, setsid, umask};
use rustix::thread::set_name;
use spec::{Fault, Job, Spec};
use stream::Stream;
use supervise::{Main, Supervisor};
use wire::{Step, Verdict};

/// Runs the program; called by the entry point.
extern "C" fn enter(arguments: *mut *mut u8) -> ! {
    // SAFETY: nothing is open yet but what the agent gave us.
    unsafe { kernel::close_inherited() };
    // SAFETY: they are what the kernel gave the program.
    if unsafe { network::is_wanted(arguments) } {
        exit(network::join())
    }
    // It is executed by the number of a descriptor, which would be its name. The agent's is not a part of it:
    // who ends programs by name means one of the two.
    let _ = set_name(c"shim");
    core_dumps::forbid();
    signals::block_all();
    // SAFETY: standard input is the agent's socket; it is closed only in `detach`.
    let agent = unsafe { BorrowedFd::borrow_raw(0) };
    let prepared = match spec::receive(agent) {
        Ok(spec) => prepare(spec, arguments),
        // The agent died before it had said what to do.
        Err(Errno::CONNRESET) => exit(1),
        Err(errno) => Err(Fault {
            step: Step::Spec,
            errno,
            path: 0,
        }
        .into()),
    };
    match prepared {
        Ok(supervisor) => {
            answer(agent, Verdict::Started, None, &supervisor.claim.record);
            detach();
            supervisor.run();
            exit(0)
        }
        Err(refusal) => {
            let (verdict, fault) = match refusal {
                Refusal::Taken => (Verdict::AlreadyClaimed, None),
                Refusal::Fault(fault) => (Verdict::Failed, Some(fault)),
            };
            let nothing = record::Record::new([0; 36], [0; 36], State::Failed);
            answer(agent, verdict, fault, &nothing);
            exit(1)
        }
    }
}

fn exit(status: i32) -> ! {
    rustix::runtime_448b8ad740e2a26f::exit_group(status)
}

/// Does what the spec says, up to the point where the task runs.
fn prepare(mut spec: Spec, arguments: *mut *mut u8) -> Result<Supervisor, Refusal> {
    // Fails only for a group leader, which already is apart from the agent's group.
    let _ = setsid();
    umask(Mode::WGRP | Mode::WOTH);
    let _ = set_child_subreaper(Some(getpid()));
    let [
        run_dir,
        log_dir,
        out,
        err,
        task_dir,
        null,
        out_end,
        err_end,
        lifeline,
    ] = core::mem::take(&mut spec.fds);
    fchdir(some(&run_dir)?).map_err(Fault::at(Step::Record))?;
    let launch = &spec.keep.launch;
    let (claim, listener) = match spec.job {
        Job::Start(_) => claim::fresh(launch)?,
        Job::Adopt => claim::inherit(launch)?,
        Job::Collect => match claim::inherit(launch) {
            Err(Refusal::Taken) => claim::fresh(launch)?,
            inherited => inherited?,
        },
    };
    let keep = spec.keep;
    let kept = keep.max_files > 0;
    if kept {
        fchdir(some(&log_dir)?).map_err(Fault::at(Step::Log))?;
    }
    let [out_base, err_base] = keep.bases;
    let stream = |pipe, base| Stream::new(pipe, base, keep.max_files, keep.max_size);
    // Output that is thrown away goes to /dev/null, which came in place of the pipes.
    let pipe = |fd: Option<OwnedFd>| if kept { owned(fd).map(Some) } else { Ok(None) };
    let streams = [stream(pipe(out)?, out_base), stream(pipe(err)?, err_base)];
    let control = Control {
        listener,
        client: None,
    };
    let mut connected = true;
    let mut supervisor = match &spec.job {
        Job::Start(start) => {
            connected = start.lifeline;
            let ends = Ends {
                task_dir: some(&task_dir)?,
                null: some(&null)?,
                outputs: [some(&out_end)?, some(&err_end)?],
                more: &spec.more,
                arguments,
            };
            start_task(claim, control, streams, keep, start, &ends)?
        }
        Job::Adopt => adopt_task(claim, control, streams, keep)?,
        Job::Collect => collect(claim, control, streams, keep)?,
    };
    supervisor.lifeline = lifeline.filter(|_| connected);
    spec.release();
    Ok(supervisor)
}

fn some(fd: &Option<OwnedFd>) -> Result<&OwnedFd, Fault> {
    fd.as_ref().ok_or(Fault {
        step: Step::Spec,
        errno: Errno::BADF,
        path: 0,
    })
}

fn owned(fd: Option<OwnedFd>) -> Result<OwnedFd, Fault> {
    fd.ok_or(Fault {
        step: Step::Spec,
        errno: Errno::BADF,
        path: 0,
    })
}

fn start_task(
    mut claim: Claim,
    control: Control,
    mut streams: [Stream; 2],
    keep: spec::Keep,
    start: &spec::Start,
    ends: &Ends<'_>,
) -> Result<Supervisor, Refusal> {
    for stream in &mut streams {
        if let Err(errno) = stream.begin() {
            let fault = Fault {
                step: Step::Log,
                errno,
                path: 0,
            };
            launch::fail(&mut claim, fault);
            return Err(fault.into());
        }
    }
    let [out, err] = &streams;
    claim.record.logs = [out.log, err.log];
    let pid = launch::launch(&mut claim, &keep, start, ends)?;
    let mut supervisor = Supervisor::new(claim, control, streams, keep, Main::Child(pid));
    // What it leaves becomes the children of another process, the holder of the namespaces.
    supervisor.is_guest = start.isolation.is_some_and(|isolation| isolation.enter);
    Ok(supervisor)
}

/// Goes on with the log files of a dead shim, if there was one.
fn resume(streams: &mut [Stream; 2], claim: &Claim) -> Result<(), Fault> {
    for (stream, log) in streams.iter_mut().zip(claim.record.logs) {
        stream.resume(log).map_err(Fault::at(Step::Log))?;
    }
    Ok(())
}

fn adopt_task(
    mut claim: Claim,
    control: Control,
    mut streams: [Stream; 2],
    keep: spec::Keep,
) -> Result<Supervisor, Refusal> {
    resume(&mut streams, &claim)?;
    let main = match Adopted::find(claim.record.task) {
        Some(task) if claim.record.state == State::Running => Main::Adopted(task),
        _ => Main::Gone,
    };
    if matches!(main, Main::Gone) && claim.record.state == State::Running {
        claim.record.state = State::Ended;
        claim.record.exit = Exit::Unknown;
        claim.record.finished_ns = kernel::now_ns();
        claim.save().map_err(Fault::at(Step::Record))?;
    }
    Ok(Supervisor::new(claim, control, streams, keep, main))
}

/// Moves output only, from where a dead shim was, if there was one.
fn collect(
    mut claim: Claim,
    control: Control,
    mut streams: [Stream; 2],
    keep: spec::Keep,
) -> Result<Supervisor, Refusal> {
    resume(&mut streams, &claim)?;
    if claim.record.state != State::Running {
        claim.record.started_ns = kernel::now_ns();
        claim.record.state = State::Running;
        claim.save().map_err(Fault::at(Step::Record))?;
    }
    Ok(Supervisor::new(claim, control, streams, keep, Main::Nobody))
}

/// Tells the agent how it went. If it is gone, the record tells the next one.
fn answer(agent: BorrowedFd<'_>, verdict: Verdict, fault: Option<Fault>, record: &record::Record) {
    let mut bytes = [0; wire::ANSWER];
    let (step, errno, path) = match fault {
        Some(fault) => (
            fault.step as u32,
            fault.errno.raw_os_error() as u32,
            fault.path,
        ),
        None => (0, 0, 0),
    };
    let [low, high] = [
        record.task.start_time as u32,
        (record.task.start_time >> 32) as u32,
    ];
    let words = [
        verdict as u32,
        step,
        errno,
        path,
        record.task.pid as u32,
        0,
        low,
        high,
    ];
    for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    let _ = send(agent, &bytes, SendFlags::NOSIGNAL);
}

/// Closes the agent's socket and the other standard descriptors: from now on the shim is alone.
fn detach() {
    for fd in 0..3 {
        // SAFETY: nothing owns the standard descriptors, and nothing uses them from here on.
        unsafe { rustix::io::close(fd) };
    }
}
