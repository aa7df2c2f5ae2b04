//! Which symbolic links stay inside of what they came with.

/// Whether a link in a directory `depth` levels below the top leads to something below the top,
/// whatever lies there: it is relative, and goes up before it goes down, no further than the top.
/// Other links that it may lead through stay inside by the same rule.
pub(crate) fn stays_inside(depth: usize, target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return false;
    }
    let mut up = 0;
    let mut goes_down = false;
    for step in target.split(|byte| *byte == b'/') {
        match step {
            b"" | b"." => {}
            b".." if goes_down => return false,
            b".." => up += 1,
            _ => goes_down = true,
        }
    }
    up <= depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_link_stays_below_top() {
        for (depth, target, inside) in [
            (0, "x", true),
            (0, "./x/y", true),
            (1, "../x", true),
            (2, "../../x", true),
            (0, "../x", false),
            (1, "../../x", false),
            (3, "x/../y", false),
            (3, "/etc/passwd", false),
            (3, "/", false),
            (1, "..", true),
            (0, "..", false),
            (0, "", false),
            (0, "x\0", false),
        ] {
            assert_eq!(stays_inside(depth, target.as_bytes()), inside, "{target}");
        }
    }
}
