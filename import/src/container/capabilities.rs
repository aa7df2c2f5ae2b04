//! Capabilities by the names that Linux gives them.

use crate::hcl::Body;
use crate::text::Text;

/// All of them, without `CAP_`.
const NAMES: &str = "\
    chown dac_override dac_read_search fowner fsetid kill \
    setgid setuid setpcap linux_immutable net_bind_service net_broadcast \
    net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio \
    sys_chroot sys_ptrace sys_pacct sys_admin sys_boot sys_nice \
    sys_resource sys_time sys_tty_config mknod lease audit_write \
    audit_control setfcap mac_override mac_admin syslog wake_alarm \
    block_suspend audit_read perfmon bpf checkpoint_restore";

/// The capabilities with these names, as job files have them. What is none is told.
pub(crate) fn known(names: &[(String, usize)], what: &str, notes: &mut Body) -> Vec<Text> {
    let mut list = Vec::new();
    for (name, line) in names {
        let lower = name.to_ascii_lowercase();
        let plain = lower.strip_prefix("cap_").unwrap_or(&lower);
        match plain == "all" || NAMES.split_whitespace().any(|known| known == plain) {
            true => list.push(Text::from(plain)),
            false => notes.lost(
                *line,
                &format!("{what} {name}"),
                "there is no such capability",
            ),
        }
    }
    list
}
