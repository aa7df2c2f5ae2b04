//! `volumes`: whether the node has what the task mounts, and links to it for drivers that do not mount.
//! They are made before each start: the task may have removed them, and the volume may lie elsewhere.

use super::TaskHook;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::interpolate::Names;
use crate::op::Failure;
use crate::task::hooks::devices::Devices;
use crate::task::runner::{Scope, TaskRunner};
use crate::task::volumes::{can_mount, links, mounted};
use crate::work::LinkVolumes;

/// The hook.
pub struct Volumes;

impl TaskHook for Volumes {
    fn name(&self) -> &'static str {
        "volumes"
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, scope: Scope<'_>) -> HookStart {
        match wanted(task, cx, scope) {
            // The next start would find the same: another allocation waits until the volume is there.
            Err(why) => HookStart::Failed(Failure::fatal(why)),
            Ok(work) if work.links.is_empty() => HookStart::Done,
            Ok(work) => task.hook_work(cx, self, work),
        }
    }
}

fn wanted(task: &TaskRunner, cx: &Cx<'_>, scope: Scope<'_>) -> Result<LinkVolumes, String> {
    let (group, of) = (task.spec().group(), task.spec().task());
    let node = &cx.config.node;
    let mounted = mounted(node, group, of, scope.alloc.index)?;
    if mounted.is_empty() || can_mount(&of.driver) {
        return Ok(LinkVolumes::default());
    }
    let env = task.environment(cx, scope, &[&Devices]);
    let names = Names { env: &env, node };
    let links = links(&mounted, &names, &scope.root(cx.config), &of.name)?;
    Ok(LinkVolumes { links })
}
