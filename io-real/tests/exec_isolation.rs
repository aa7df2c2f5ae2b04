//! The driver `exec`: what a task sees, what it cannot reach, and how it ends. Without root, or without control
//! groups, these tests say so and pass.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use common::disk::Disk;
use common::driver::{World, key, sh, with};
use common::isolation::{as_root, beside, isolated, run_beside, script};
use common::{handle, kernel_keeps_exit_codes, wait_readable};
use drover_core::driver::capabilities::Capabilities;
use drover_core::driver::config::ExecConfig;
use drover_core::driver::isolation::{ExecPolicy, Sharing};
use drover_core::ids::LaunchId;
use drover_core::input::{DriverInput, Found};
use drover_core::model::device::Mount;
use drover_core::model::value::Value;

#[test]
fn task_has_its_own_root_user_and_processes() {
    let Some(mut world) = World::isolated("root") else {
        return;
    };
    fs::write(world.task_dir().join("local/own"), "own").unwrap();
    let exit = world.run(
        1,
        script(
            "cat /local/own; echo; pwd; echo $USER $HOME; id -u; id -g; id -G; echo $$
             echo /proc/[0-9]*; echo a > /alloc/data/shared; echo b > /local/new
             ls /root /home /work 2>/dev/null; (echo x > /usr/x) 2>/dev/null || echo refused
             cat /etc/shadow; ls /dev",
        ),
    );
    assert_eq!(exit.code, Some(0), "{exit:?}");
    let lines: Vec<String> = world.stdout().lines().map(str::to_owned).collect();
    let expected = [
        "own",
        "/",
        "nobody /nonexistent",
        "65534",
        "65534",
        "65534",
        "2",
        "/proc/1 /proc/2",
        "refused",
    ];
    assert_eq!(lines[..expected.len()], expected, "{lines:?}");
    let devices = [
        "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
        "stdout", "tty", "urandom", "zero",
    ];
    assert_eq!(lines[expected.len()..], devices);
    assert_eq!(
        fs::read_to_string(world.task_dir().join("local/new")).unwrap(),
        "b\n"
    );
    assert!(world.log_dir().join("../data/shared").exists());
    assert_eq!(world.destroy(1).unwrap().unwrap().code, Some(0));
    world.assert_gone(1);
}

#[test]
fn script_for_the_image_of_its_process_reaches_no_file_of_the_host() {
    let Some(mut world) = World::isolated("image") else {
        return;
    };
    let home = drover_io_real::shim::ShimHome::open(world.data.path()).unwrap();
    let state = || {
        let meta = fs::metadata(home.program()).unwrap();
        (meta.mode(), meta.uid(), meta.ctime(), meta.ctime_nsec())
    };
    let before = state();
    let image = world.task_dir().join("local/image");
    fs::write(&image, "#!/proc/self/exe\n").unwrap();
    fs::set_permissions(&image, fs::Permissions::from_mode(0o755)).unwrap();
    let asked = |config| with(config, "command", Value::from("/local/image"));
    // For another user it is not to be executed; for root it is a shim that nobody told what to do.
    let failure = world.refused(1, asked(script(""))).message;
    assert!(failure.contains("Permission denied"), "{failure}");
    assert_eq!(world.run(2, asked(as_root(script("")))).code, Some(1));
    assert_eq!(state(), before);
    for launch in [1, 2] {
        world.destroy(launch).unwrap();
        world.assert_gone(launch);
    }
    assert_eq!(world.run(3, script("true")).code, Some(0));
    world.destroy(3).unwrap();
}

#[test]
fn kill_signal_ends_program_without_handlers() {
    let Some(mut world) = World::isolated("signal") else {
        return;
    };
    let ready = world.fifo("ready");
    world
        .start(1, script("echo up > /ready; exec sleep 1000"))
        .unwrap();
    assert_eq!(fs::read_to_string(ready).unwrap(), "up\n");
    world.stop(1, "SIGTERM");
    let mut exits = 0;
    for _ in 0..2 {
        match world.receive() {
            DriverInput::Exited { result, .. } => {
                assert_eq!((result.code, result.signal), (Some(143), 15));
                exits += 1;
            }
            DriverInput::Stopped { result, .. } => assert_eq!(result, Ok(())),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(exits, 1);
    assert!(world.destroy(1).is_ok());
    world.assert_gone(1);
}

#[test]
fn orphans_end_with_the_task() {
    let Some(mut world) = World::isolated("orphans") else {
        return;
    };
    let text =
        "for i in 1 2 3; do (setsid sleep 1000 &) ; done; echo $(ls -d /proc/[0-9]* | wc -l)";
    assert_eq!(world.run(1, script(text)).code, Some(0));
    assert!(
        world.stdout().trim().parse::<u32>().unwrap() >= 5,
        "{}",
        world.stdout()
    );
    world.destroy(1).unwrap();
    world.assert_gone(1);
}

#[test]
fn task_is_found_again_and_destroyed_by_next_agent() {
    let Some(mut world) = World::isolated("recover") else {
        return;
    };
    let go = world.fifo("go");
    world
        .start(1, script("trap '' TERM INT; read x < /go; exit 7"))
        .unwrap();
    world
        .start(2, script("trap '' TERM INT; sleep 1000"))
        .unwrap();
    world.begin();
    assert_eq!(world.recover(1), Found::Running);
    assert_eq!(world.recover(2), Found::Running);
    fs::write(go, "go\n").unwrap();
    assert_eq!(world.exited().code, Some(7));
    world.destroy(1).unwrap();
    assert_eq!(world.end(2).signal, 9);
    world.assert_gone(1);
    world.assert_gone(2);
}

#[test]
fn killed_shim_is_replaced_and_namespaces_end_with_the_task() {
    let Some(mut world) = World::isolated("shim") else {
        return;
    };
    let go = world.fifo("go");
    world
        .start(1, script("read x < /go; (setsid sleep 1000 &); exit 2"))
        .unwrap();
    let home = drover_io_real::shim::ShimHome::open(world.data.path()).unwrap();
    let name = LaunchId(1).to_string();
    let before = home.read_record(&name).unwrap().unwrap();
    assert!(before.holder.pid > 0 && before.holder.pid != before.task.pid);
    let (shim, holder) = (handle(before.shim.pid), handle(before.holder.pid));
    rustix::process::pidfd_send_signal(&shim, rustix::process::Signal::KILL).unwrap();
    assert!(wait_readable(&shim));
    world.until(|_| home.read_record(&name).unwrap().unwrap().shim != before.shim);
    fs::write(go, "go\n").unwrap();
    let code = world.exited().code;
    assert!(code == Some(2) || code.is_none() && !kernel_keeps_exit_codes());
    assert!(wait_readable(&holder));
    world.destroy(1).unwrap();
    world.assert_gone(1);
}

#[test]
fn signal_to_process_one_is_the_programs() {
    let Some(mut world) = World::isolated("passed") else {
        return;
    };
    let text = "trap 'exit 3' USR1; kill -USR1 1; sleep 60 & wait; exit 4";
    let exit = world.run(1, as_root(script(text)));
    assert_eq!(exit.code, Some(3), "{exit:?}");
    world.destroy(1).unwrap();
    world.assert_gone(1);
}

#[test]
fn failed_start_leaves_no_namespaces() {
    let Some(mut world) = World::isolated("failed") else {
        return;
    };
    let own = world.dir.path().to_str().unwrap().to_owned();
    let mounts = || {
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let of_own = all.lines().filter(|line| line.contains(&own));
        of_own.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = mounts();
    let nowhere = |config| with(config, "command", Value::from("/usr/bin/no-such-program"));
    let failure = world.refused(1, nowhere(script("")));
    assert!(
        failure.message.contains("in the task's root"),
        "{failure:?}"
    );
    let at = |dir: &str| with(script("pwd"), "work_dir", Value::from(dir));
    for (launch, dir) in [(2, "/nowhere"), (3, "/proc/self/fd/7"), (4, "/proc/1/root")] {
        let failure = world.refused(launch, at(dir)).message;
        assert!(failure.contains("WorkDir"), "{dir}: {failure}");
    }
    for launch in 1..=4 {
        assert_eq!(mounts(), before);
        assert!(world.destroy(launch).is_ok());
        world.assert_gone(launch);
    }
}

#[test]
fn link_in_place_of_a_mount_is_not_followed() {
    let Some(mut world) = World::isolated("links") else {
        return;
    };
    let outside = world.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for (launch, place) in ["usr", "alloc", "dev", "proc"].into_iter().enumerate() {
        let link = world.task_dir().join(place);
        symlink(&outside, &link).unwrap();
        let launch = launch as u128 + 1;
        let failure = world.refused(launch, script("true")).message;
        assert!(
            failure.contains(&format!("/{place} of the task's root")),
            "{failure}"
        );
        fs::remove_file(&link).unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{place}");
    }
    assert_eq!(world.run(9, script("true")).code, Some(0));
    world.destroy(9).unwrap();
}

#[test]
fn link_in_a_shared_volume_is_no_place_for_another() {
    let Some(mut world) = World::isolated("exchanged") else {
        return;
    };
    let shared = world.dir.path().join("shared");
    let other = world.dir.path().join("other");
    for dir in [&shared, &other] {
        fs::create_dir(dir).unwrap();
    }
    let mount = |place: &str, from: &Path| Mount {
        task_path: place.to_owned(),
        host_path: from.to_str().unwrap().to_owned(),
        ..Mount::default()
    };
    let mut config = script("true");
    config.reserved.mounts = vec![mount("/srv/a", &shared), mount("/srv/a/b", &other)];
    // What another task of the volume puts there, at whatever moment.
    let links = ["/etc", "..", "/proc/self/root/etc", "/local"];
    for (launch, link) in (1..).zip(links) {
        symlink(link, shared.join("b")).unwrap();
        let failure = world.refused(launch, config.clone()).message;
        assert!(failure.contains("/srv/a/b"), "{link}: {failure}");
        fs::remove_file(shared.join("b")).unwrap();
        world.destroy(launch).unwrap();
    }
    fs::create_dir(shared.join("b")).unwrap();
    assert_eq!(world.run(9, config).code, Some(0));
    world.destroy(9).unwrap();
}

#[test]
fn volume_is_mounted_for_reading_or_writing() {
    let Some(mut world) = World::isolated("volumes") else {
        return;
    };
    let outside = world.dir.path().join("data-of-jobs");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    let mount = |place: &str, read_only| Mount {
        task_path: place.to_owned(),
        host_path: outside.to_str().unwrap().to_owned(),
        read_only,
        ..Mount::default()
    };
    let mut config = script(
        "echo new > /srv/rw/file; cat /srv/ro/file; (echo x > /srv/ro/file) 2>/dev/null || echo refused",
    );
    config.reserved.mounts = vec![mount("/srv/rw", false), mount("/srv/ro", true)];
    assert_eq!(world.run(1, config).code, Some(0));
    assert_eq!(world.stdout(), "new\nrefused\n");
    world.destroy(1).unwrap();
    let mut config = script("true");
    config.reserved.mounts = vec![mount("/etc/no-such-place", false)];
    let failure = world.refused(2, config).message;
    assert!(
        failure.contains("nothing can be mounted at /etc/no-such-place"),
        "{failure}"
    );
    world.destroy(2).unwrap();
    assert!(outside.join("file").exists());
}

#[test]
fn file_system_below_a_volume_is_as_limited_as_the_volume() {
    let Some(mut world) = World::isolated("below") else {
        return;
    };
    let outside = world.dir.path().join("data-of-jobs");
    let inner = outside.join("inner");
    fs::create_dir_all(&inner).unwrap();
    let Some(_inner) = Disk::mount(&inner, "1m") else {
        return;
    };
    let mount = |place: &str, read_only| Mount {
        task_path: place.to_owned(),
        host_path: outside.to_str().unwrap().to_owned(),
        read_only,
        ..Mount::default()
    };
    let mut config = script(
        "echo new > /srv/rw/inner/file; cat /srv/ro/inner/file
         (echo x > /srv/ro/inner/file) 2>/dev/null || echo refused
         grep -o '/srv/r[ow]/inner r[ow],nosuid,nodev' /proc/self/mountinfo | sort",
    );
    config.reserved.mounts = vec![mount("/srv/rw", false), mount("/srv/ro", true)];
    assert_eq!(world.run(1, config).code, Some(0));
    let limits = "/srv/ro/inner ro,nosuid,nodev\n/srv/rw/inner rw,nosuid,nodev\n";
    assert_eq!(world.stdout(), format!("new\nrefused\n{limits}"));
    world.destroy(1).unwrap();
}

#[test]
fn unmounted_host_directory_leaves_volume_with_propagation() {
    let Some(mut world) = World::isolated("follows") else {
        return;
    };
    let outside = world.dir.path().join("data-of-jobs");
    fs::create_dir(&outside).unwrap();
    let Some(_outer) = Disk::mount(&outside, "1m") else {
        return;
    };
    let made = Command::new("mount")
        .arg("--make-shared")
        .arg(&outside)
        .status();
    assert!(made.unwrap().success());
    fs::create_dir(outside.join("inner")).unwrap();
    let _inner = Disk::mount(&outside.join("inner"), "1m").unwrap();
    fs::write(outside.join("inner/file"), "x").unwrap();
    let mount = |place: &str, mode: &str| Mount {
        task_path: place.to_owned(),
        host_path: outside.to_str().unwrap().to_owned(),
        propagation_mode: mode.to_owned(),
        ..Mount::default()
    };
    let show = "ls /srv/alone/inner /srv/follows/inner > /local/said";
    let text = format!("echo up > /ready; read go < /ready; {show}; echo done > /done");
    let mut config = script(&text);
    config.reserved.mounts = vec![
        mount("/srv/alone", ""),
        mount("/srv/follows", "host-to-task"),
    ];
    let (ready, done) = (world.fifo("ready"), world.fifo("done"));
    world.start(1, config).unwrap();
    assert_eq!(fs::read_to_string(&ready).unwrap(), "up\n");
    // The host can, whatever a task sees of it.
    let unmounted = Command::new("umount").arg(outside.join("inner")).status();
    assert!(unmounted.unwrap().success());
    fs::write(&ready, "go\n").unwrap();
    assert_eq!(fs::read_to_string(done).unwrap(), "done\n");
    world.end(1);
    let output = fs::read_to_string(world.task_dir().join("local/said")).unwrap();
    assert_eq!(output, "/srv/alone/inner:\nfile\n\n/srv/follows/inner:\n");
}

#[test]
fn out_of_memory_is_reported() {
    let Some(mut world) = World::isolated("oom") else {
        return;
    };
    let mut config = script("exec tail -n 1 /dev/zero");
    config.memory_limit = 16 << 20;
    let exit = world.run(1, config);
    assert_eq!((exit.signal, exit.oom_killed), (9, true), "{exit:?}");
    world.destroy(1).unwrap();
}

#[test]
fn added_capability_reaches_another_user() {
    let Some(mut world) = World::isolated("caps") else {
        return;
    };
    let policy = ExecPolicy {
        allow_caps: Capabilities::ALL,
        ..ExecPolicy::default()
    };
    let asked = ExecConfig {
        cap_add: vec!["net_raw".to_owned()],
        cap_drop: vec!["all".to_owned()],
        ..ExecConfig::default()
    };
    let show = sh("grep -E '^Cap' /proc/self/status | cut -f2");
    assert_eq!(world.run(1, isolated(show, &policy, &asked)).code, Some(0));
    let only = "0000000000002000";
    assert_eq!(world.stdout().lines().collect::<Vec<_>>(), [only; 5]);
    world.destroy(1).unwrap();
}

#[test]
fn switched_off_filters_and_limits_of_privileges_are_off() {
    for (no_new_privileges, seccomp) in [(true, true), (true, false), (false, true), (false, false)]
    {
        for user in ["nobody", "root"] {
            let Some(mut world) = World::isolated("switches") else {
                return;
            };
            let policy = ExecPolicy {
                no_new_privileges,
                seccomp,
                ..ExecPolicy::default()
            };
            let show = sh("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | cut -f2");
            let mut config = isolated(show, &policy, &ExecConfig::default());
            config.user = user.to_owned();
            assert_eq!(world.run(1, config).code, Some(0));
            // A filter is the second mode of seccomp.
            let expected = [
                if no_new_privileges { "1" } else { "0" },
                if seccomp { "2" } else { "0" },
            ];
            let output = world.stdout();
            assert_eq!(output.lines().collect::<Vec<_>>(), expected, "as {user}");
            world.destroy(1).unwrap();
        }
    }
}

#[test]
fn host_processes_are_visible_where_allowed() {
    let Some(mut world) = World::isolated("host-pids") else {
        return;
    };
    let policy = ExecPolicy {
        default_pid_mode: Sharing::Host,
        ..ExecPolicy::default()
    };
    let me = std::process::id();
    let text = format!("test -d /proc/{me} && echo seen; (setsid sleep 1000 &)");
    assert_eq!(
        world
            .run(1, isolated(sh(&text), &policy, &ExecConfig::default()))
            .code,
        Some(0)
    );
    assert_eq!(world.stdout(), "seen\n");
    world.destroy(1).unwrap();
    world.assert_gone(1);
}

#[test]
fn session_and_script_enter_the_task() {
    let Some(mut world) = World::isolated("session") else {
        return;
    };
    let show = "cat /proc/self/cgroup; for n in mnt pid ipc uts cgroup; do readlink /proc/self/ns/$n; done; id; \
                grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; pwd; ls /";
    let text = format!("({show}) > /local/own; echo up > /ready; exec sleep 1000");
    let ready = world.fifo("ready");
    world.start(1, script(&text)).unwrap();
    assert_eq!(fs::read_to_string(ready).unwrap(), "up\n");
    let own = fs::read_to_string(world.task_dir().join("local/own")).unwrap();
    let output = beside(&mut world, "/bin/sh", &["-c", show], script(""));
    assert_eq!(output, own);
    run_beside(&mut world, format!("({show}) > /local/script"), script(""));
    let script = fs::read_to_string(world.task_dir().join("local/script")).unwrap();
    assert_eq!(script, own);
    assert_eq!(world.end(1).signal, 9);
    world.assert_gone(1);
    assert_eq!(key().task.as_str(), "web");
}
