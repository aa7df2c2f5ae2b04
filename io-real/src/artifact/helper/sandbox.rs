//! What a process gives away before it touches anything of others: its user, its way back to
//! rights, almost all of the file system, and most of what it could use up.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::artifact::wire::Request;
use crate::unpack::Trouble;

/// The rules are written for this version of landlock; older kernels hold to less of them.
const RULES: ABI = ABI::V6;

/// What any program needs to read: programs and libraries, names of hosts, certificates.
const READABLE: &[&str] = &[
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr",
    "/nix/store",
    "/run/current-system",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/dev/random",
    "/dev/urandom",
];

/// The most memory, in bytes of addresses.
const MEMORY: u64 = 4 << 30;
/// The most open files.
const FILES: u64 = 512;
/// The most processes of the same user, others' included.
const PROCESSES: u64 = 4_096;
/// The most seconds of a processor.
const PROCESSOR: u64 = 2 * 3_600;

/// Gives rights away for good.
///
/// # Errors
/// That is not possible; nothing may be fetched then.
pub(super) fn enter(request: &Request) -> Result<(), Trouble> {
    limits(request).map_err(|error| refused("its limits cannot be set", &error.into()))?;
    if let Some((user, group)) = request.user {
        become_user(user, group)
            .map_err(|error| refused("its user cannot be set", &error.into()))?;
    }
    set_no_new_privs(true).map_err(|error| refused("it could get them back", &error.into()))?;
    confine(request).map_err(|error| Trouble::lasting(format!("landlock: {error}")))
}

fn refused(what: &str, error: &std::io::Error) -> Trouble {
    Trouble::lasting(format!(
        "the fetching process would have too many rights: {what}: {error}"
    ))
}

fn limits(request: &Request) -> rustix::io::Result<()> {
    let bounds = &request.limits;
    let file = match (bounds.http_bytes, bounds.unpacked_bytes) {
        (0, _) | (_, 0) => None,
        (one, other) => Some(one.max(other).saturating_add(1 << 20)),
    };
    for (resource, most) in [
        // Not nothing: then the kernel would still start a program that takes dumps, if it knows one.
        (Resource::Core, Some(1)),
        (Resource::As, Some(MEMORY)),
        (Resource::Nofile, Some(FILES)),
        (Resource::Nproc, Some(PROCESSES)),
        (Resource::Cpu, Some(PROCESSOR)),
        (Resource::Fsize, file),
    ] {
        let Some(most) = most else { continue };
        // What is stricter already stays so.
        let hard = getrlimit(resource).maximum.unwrap_or(u64::MAX).min(most);
        let limit = Rlimit {
            current: Some(hard),
            maximum: Some(hard),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}

/// There is only this one thread yet, so what holds for it holds for the process.
fn become_user(user: u32, group: u32) -> rustix::io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)
}

fn confine(request: &Request) -> Result<(), RulesetError> {
    let read = AccessFs::from_read(RULES);
    let write = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSym
        | AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::Refer;
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RULES))?
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::from_all(RULES))?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(&request.readable, read))?;
    let rules = may(rules, "/dev/null", AccessFs::ReadFile | AccessFs::WriteFile)?;
    let rules = may(rules, ".", write)?;
    let rules = match request.whole_filesystem {
        true => may(rules, "/", read)?,
        false => rules,
    };
    rules.restrict_self().map(drop)
}

/// Allows this below a path, if it is there.
fn may(
    rules: RulesetCreated,
    path: &str,
    what: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(at) => rules.add_rule(PathBeneath::new(at, what)),
        Err(_) => Ok(rules),
    }
}
