//! How fast each task reads and writes the disk of the data directory, whatever its job says.
//!
//! ```hcl
//! client {
//!   io {
//!     read_bps   = 104857600   # bytes in a second
//!     write_bps  = 52428800
//!     read_iops  = 2000        # requests in a second
//!     write_iops = 1000
//!   }
//! }
//! ```

use drover_core::driver::config::{IO_BYTES, IO_REQUESTS, IoLimits};
use hcl_edit::structure::Block;

use super::literal::{Fields, fields};

/// Reads the block.
pub(super) fn io(block: &Block) -> Result<IoLimits, String> {
    let mut given = fields(&block.body)?;
    let limits = IoLimits {
        read_bps: limit(&mut given, "read_bps", IO_BYTES)?,
        write_bps: limit(&mut given, "write_bps", IO_BYTES)?,
        read_iops: limit(&mut given, "read_iops", IO_REQUESTS)?,
        write_iops: limit(&mut given, "write_iops", IO_REQUESTS)?,
    };
    given.nothing_else("client: io")?;
    Ok(limits)
}

fn limit(
    given: &mut Fields,
    name: &'static str,
    (from, to): (i64, i64),
) -> Result<Option<u64>, String> {
    let Some(number) = given.number(name)? else {
        return Ok(None);
    };
    match u64::try_from(number) {
        Ok(limit) if (from..=to).contains(&number) => Ok(Some(limit)),
        _ => Err(format!(
            "client: io: {name}: {number} is not from {from} to {to}; leave it out for no limit"
        )),
    }
}

#[cfg(test)]
mod tests {
    use drover_core::driver::config::IoLimits;

    fn read(block: &str) -> Result<IoLimits, String> {
        let text = format!("client {{\n io {{\n{block}\n}}\n}}");
        super::super::parse(&text).map(|file| file.client.node.io)
    }

    #[test]
    fn limits_are_numbers_within_reason() {
        let limits = IoLimits {
            read_bps: Some(1 << 20),
            write_iops: Some(100),
            ..IoLimits::default()
        };
        assert_eq!(read("read_bps = 1048576\nwrite_iops = 100"), Ok(limits));
        for (block, word) in [
            ("read_bps = 0", "leave it out"),
            ("write_bps = -1", "from 65536"),
            ("read_iops = 1", "from 16"),
            ("weight = 5", "weight"),
        ] {
            let error = read(block).unwrap_err();
            assert!(
                error.contains("io") && error.contains(word),
                "{block}: {error}"
            );
        }
    }
}
