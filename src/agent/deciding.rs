//! The agent's actions on the processes of a pod, by the wanted state and the state that the agent sees. Pure.

use super::pods::Wanted;

/// The state of a pod's processes, as their cgroups say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// The pod has no cgroup with processes: its containers have not started yet, or have ended.
    Nothing,
    /// The pod has processes, and none that could stand still: the container runtime still starts its containers.
    Starting,
    /// The processes run.
    Running,
    /// Some of the processes may still run.
    Freezing,
    /// All processes stand still.
    Frozen,
}

/// An action of the agent on the processes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Makes the processes stand still.
    Freeze,
    /// Lets the processes run again.
    Thaw,
    /// Kills the processes.
    Kill,
}

/// The next action on a pod's processes; `None` if they do what is wanted, or if there are none. The agent looks again after each
/// act: a process may have started meanwhile.
pub fn next_act(wanted: Wanted, seen: ProcessState) -> Option<Act> {
    match (wanted, seen) {
        (_, ProcessState::Nothing)
        | (Wanted::Run | Wanted::Suspend, ProcessState::Starting)
        | (Wanted::Run, ProcessState::Running)
        | (Wanted::Suspend, ProcessState::Frozen) => None,
        (Wanted::Run, ProcessState::Freezing | ProcessState::Frozen) => Some(Act::Thaw),
        (Wanted::Suspend, ProcessState::Running | ProcessState::Freezing) => Some(Act::Freeze),
        (Wanted::Kill, _) => Some(Act::Kill),
    }
}

/// Whether the report may say that the pod is suspended. A pod that is to run again counts as suspended until its processes
/// run.
pub fn is_suspended(seen: ProcessState) -> bool {
    seen == ProcessState::Frozen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_wanted_and_seen_has_its_act() {
        use Wanted::{Kill, Run, Suspend};
        let table = [
            //        Nothing, Starting, Running,            Freezing,           Frozen
            (Run, [None, None, None, Some(Act::Thaw), Some(Act::Thaw)]),
            (Suspend, [None, None, Some(Act::Freeze), Some(Act::Freeze), None]),
            (Kill, [None, Some(Act::Kill), Some(Act::Kill), Some(Act::Kill), Some(Act::Kill)]),
        ];
        for (wanted, acts) in table {
            let seen = [
                ProcessState::Nothing,
                ProcessState::Starting,
                ProcessState::Running,
                ProcessState::Freezing,
                ProcessState::Frozen,
            ];
            assert_eq!(seen.map(|seen| next_act(wanted, seen)), acts, "{wanted:?}");
        }
    }

    /// From any state of the processes, one pass after the other leads to the wanted state, if each act has its effect.
    #[test]
    fn acts_lead_to_what_is_wanted() {
        for wanted in [Wanted::Run, Wanted::Suspend, Wanted::Kill] {
            for start in [ProcessState::Running, ProcessState::Freezing, ProcessState::Frozen] {
                let mut seen = start;
                for _ in 0..2 {
                    seen = match (next_act(wanted, seen), seen) {
                        (Some(Act::Freeze), ProcessState::Running) => ProcessState::Freezing,
                        (Some(Act::Freeze), _) => ProcessState::Frozen,
                        (Some(Act::Thaw), _) => ProcessState::Running,
                        (Some(Act::Kill), _) => ProcessState::Nothing,
                        (None, same) => same,
                    };
                }
                let end = match wanted {
                    Wanted::Run => ProcessState::Running,
                    Wanted::Suspend => ProcessState::Frozen,
                    Wanted::Kill => ProcessState::Nothing,
                };
                assert_eq!((seen, next_act(wanted, seen)), (end, None), "{wanted:?} from {start:?}");
            }
        }
    }
}
