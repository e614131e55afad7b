//! How much memory a program may have.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// The part of the container's memory that is the agent's.
const AGENTS: u64 = 16 << 20;
/// The limits of the agent's own container on cgroup v2, and on v1.
const LIMITS: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
/// A limit that is none: without a limit, version 1 tells the greatest number of pages.
const NO_LIMIT: u64 = 1 << 50;

/// The memory of a program, in bytes; none if the agent's container has no limit.
///
/// Programs share the limit of the agent's container, and kubelets let the kernel end the whole container when it is passed. With a bound
/// below it, a program that runs wild is refused memory instead. Programs that run at the same time can still pass the limit together.
pub(super) fn bound() -> Option<u64> {
    let texts = LIMITS.iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.filter_map(|text| below(&text)).min()
}

/// The bound below the limit that a file tells; none if the file tells of no limit.
fn below(limit: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)?;
    Some(limit.saturating_sub(AGENTS).max(limit / 2))
}

/// Bounds the private memory of a program that has just begun, and of the processes that it will start.
pub(super) fn bind(program: Pid, bytes: u64) {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    if let Err(error) = prlimit(Some(program), Resource::Data, limit) {
        tracing::debug!(%error, "the memory of a program cannot be bounded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_what_the_agent_does_not_need() {
        for (limit, expected) in [
            ("67108864\n", Some(48 << 20)),
            ("33554432\n", Some(16 << 20)),
            ("16777216\n", Some(8 << 20)),
            ("max\n", None),
            ("9223372036854771712\n", None),
            ("", None),
        ] {
            assert_eq!(below(limit), expected, "{limit:?}");
        }
    }
}
