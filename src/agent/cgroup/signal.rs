//! SIGKILL to each process of a cgroup, where the kernel has no `cgroup.kill`.

use std::collections::BTreeSet;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// How often the processes are listed before [`kill_all`] gives up.
const ROUNDS: usize = 64;
/// How many processes are held open at once: fewer than the usual limit of 1024 open files.
const AT_ONCE: usize = 256;

/// Sends SIGKILL to all processes that `list` returns, until `list` returns no process that has not got the signal.
///
/// A process that has got SIGKILL forks no more, so once a list has only such processes, none will be added by forks.
/// Fails after [`ROUNDS`] lists, if the kernel refuses a signal, or if `list` has a 0, which stands for a process outside
/// of the agent's PID namespace.
pub(super) fn kill_all(list: impl Fn() -> io::Result<BTreeSet<i32>>) -> io::Result<()> {
    let mut killed = BTreeSet::new();
    let mut refused = None;
    for _ in 0..ROUNDS {
        let fresh: Vec<i32> = list()?.difference(&killed).copied().take(AT_ONCE).collect();
        if fresh.is_empty() {
            return refused.map_or(Ok(()), Err);
        }
        refused = kill_those(&fresh, &list)?.or(refused);
        killed.extend(fresh);
    }
    Err(io::Error::other(format!("new processes appeared in each of {ROUNDS} rounds of SIGKILL")))
}

/// Sends SIGKILL to each of the processes that still is in the list, and returns the first refusal.
///
/// A process may end after it was listed, and its id may then belong to a process outside of the cgroup. So each process is
/// opened first, and listed again before the signal: a process that is still listed was in the cgroup after it was opened.
fn kill_those(pids: &[i32], list: impl Fn() -> io::Result<BTreeSet<i32>>) -> io::Result<Option<io::Error>> {
    let mut opened = Vec::new();
    for &pid in pids {
        let Some(id) = Pid::from_raw(pid) else {
            let message = "processes outside of the agent's PID namespace cannot get a signal: run the agent with hostPID";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        };
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) => opened.push((id, Some(process))),
            // Linux before 5.3 cannot open a process. There, the id is all that is known; the list that follows leaves
            // another process no more than microseconds to take the id over.
            Err(Errno::NOSYS) => opened.push((id, None)),
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let listed = list()?;
    let mut refused = None;
    for (id, process) in opened.into_iter().filter(|(id, _)| listed.contains(&id.as_raw_nonzero().get())) {
        let sent = match process {
            Some(process) => pidfd_send_signal(process, Signal::KILL),
            None => kill_process(id, Signal::KILL),
        };
        match sent {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => refused = refused.or(Some(io::Error::from(error))),
        }
    }
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_listed_no_more_gets_no_signal() {
        let lists = std::cell::RefCell::new(vec![BTreeSet::new(), BTreeSet::new(), own()]);
        kill_all(|| Ok(lists.borrow_mut().pop().unwrap())).unwrap();
        assert!(lists.borrow().is_empty(), "this test's own process was opened and listed again");
    }

    #[test]
    fn a_process_of_another_namespace_is_an_error_that_says_what_to_do() {
        let error = kill_all(|| Ok([0].into())).unwrap_err();
        assert!(error.to_string().contains("hostPID"), "{error}");
    }

    #[test]
    fn the_rounds_are_bounded() {
        // Ids above the kernel's limit of 2^22: no such process exists.
        let next = std::cell::Cell::new(1 << 23);
        let error = kill_all(|| {
            next.set(next.get() + 1);
            Ok([next.get()].into())
        });
        assert!(error.unwrap_err().to_string().contains("64 rounds"));
    }

    fn own() -> BTreeSet<i32> {
        [i32::try_from(std::process::id()).unwrap()].into()
    }
}
