//! Functions of Nomad that are not offered, with the reason that the error gives.
//!
//! They are refused while a template is read, so nobody finds out at night.

use super::{Args, Function, Result, function};
use crate::error::Fault;
use crate::eval::cx::Cx;

/// Never run: reading refuses them.
fn never(_: &mut Cx<'_>, _: Args<'_>) -> Result {
    Err(Fault::refused("this function is not offered"))
}

const fn consul(name: &'static str) -> Function {
    function(
        name,
        &[],
        "needs Consul, which this agent does not speak to",
        never,
    )
}

const fn vault(name: &'static str) -> Function {
    function(
        name,
        &[],
        "needs Vault, which this agent does not speak to",
        never,
    )
}

const fn spew(name: &'static str) -> Function {
    function(
        name,
        &[],
        "shows how Go keeps a value; use toJSONPretty",
        never,
    )
}

pub(super) const TABLE: &[Function] = &[
    consul("byKey"),
    consul("byMeta"),
    consul("caLeaf"),
    consul("caRoots"),
    consul("connect"),
    consul("datacenters"),
    consul("explode"),
    consul("exportedServices"),
    consul("importedServices"),
    consul("key"),
    consul("keyExists"),
    consul("keyOrDefault"),
    consul("ls"),
    consul("node"),
    consul("nodes"),
    consul("partitions"),
    consul("peerings"),
    consul("safeLs"),
    consul("safeTree"),
    consul("service"),
    consul("services"),
    consul("tree"),
    vault("pkiCert"),
    vault("secret"),
    vault("secrets"),
    spew("spew_dump"),
    spew("spew_printf"),
    spew("spew_sdump"),
    spew("spew_sprintf"),
    function(
        "call",
        &[],
        "calls functions that are data, and there are none here",
        never,
    ),
    function(
        "executeTemplate",
        &[],
        "is denied by default in Nomad; use {{template}}",
        never,
    ),
    function(
        "plugin",
        &[],
        "runs programs, which templates must not",
        never,
    ),
    function(
        "sockaddr",
        &[],
        "asks the machine for its addresses; use the NOMAD_IP_, NOMAD_PORT_ and NOMAD_ADDR_ variables with env",
        never,
    ),
    function(
        "writeToFile",
        &[],
        "writes files, which templates must not; use a template block for each",
        never,
    ),
];

/// Why a function is refused, if it is.
pub(crate) fn reason(name: &str) -> Option<&'static str> {
    TABLE
        .iter()
        .find(|function| function.name == name)
        .map(|function| function.description)
}
