//! Names of the jobs that the clock makes of a periodic job.

/// Between the id of a periodic job and the time of a launch.
const MARK: &str = "/periodic-";

/// The most letters that a launch adds to the id of its job.
pub const LONGEST: usize = MARK.len() + 20;

/// How the ids of a job's launches begin.
pub fn launches_of(parent: &str) -> String {
    format!("{parent}{MARK}")
}

/// The id of the launch for this time, in seconds since 1970.
pub fn launch_id(parent: &str, time: i64) -> String {
    format!("{parent}{MARK}{time}")
}

/// The time of a launch by its id; none if that is no launch of this job.
pub fn launch_of(parent: &str, id: &str) -> Option<i64> {
    if parent.is_empty() {
        return None;
    }
    let time = id.strip_prefix(parent)?.strip_prefix(MARK)?;
    time.parse()
        .ok()
        .filter(|_| time.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_is_known_by_its_id() {
        assert_eq!(launch_id("a/b", 17), "a/b/periodic-17");
        assert_eq!(launch_of("a/b", "a/b/periodic-17"), Some(17));
        for (parent, id) in [
            ("", "/periodic-17"),
            ("a", "a/b/periodic-17"),
            ("a", "a/periodic-+1"),
            ("a", "a"),
        ] {
            assert_eq!(launch_of(parent, id), None, "{parent} {id}");
        }
    }
}
