//! How pods end: what a kubelet tells their containers, and what it reports, in its order.

use std::time::Duration;

use jiff::Timestamp;

use super::super::life::{Ending, KILLED, Life, shifted};
use super::super::script::NO_COMMAND;
use super::super::status::{self, Cause, Exit};
use super::super::view::{Phase, PodView};
use super::{Action, CANNOT_RUN, Hosted, NodeState};

impl NodeState {
    /// Ends a pod that somebody deleted, or gives it the grace period that the deletion asks for.
    pub(super) fn delete(&mut self, view: &PodView, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(grace) = view.deletion else { return };
        let Some(hosted) = self.pods.get_mut(&view.key.uid) else { return };
        hosted.deleted = true;
        match &mut hosted.life {
            Life::Starting { .. } => {
                let exit = Exit { started: None, at: now, code: KILLED, cause: Cause::Exited };
                self.never_ran(&view.key.uid, &exit, actions);
            }
            Life::Running(run) | Life::Ending(Ending { run, .. }) => {
                run.terminate(now, grace, &hosted.view.script);
            }
            // A pod that has ended and was deleted with grace period 0 is kept only by its finalizers.
            Life::Ended if grace.is_zero() => hosted.removed = true,
            Life::Ended => hosted.remove(actions),
        }
    }

    /// The pod's object no longer exists. Containers that run are told to end, and end in their time.
    pub(super) fn vanish(&mut self, uid: &str, now: Timestamp) {
        let Some(hosted) = self.pods.get_mut(uid) else { return };
        hosted.gone = true;
        match &mut hosted.life {
            Life::Running(run) | Life::Ending(Ending { run, .. }) => {
                run.terminate(now, Duration::ZERO, &hosted.view.script);
            }
            Life::Starting { .. } | Life::Ended => self.forget(uid),
        }
    }

    fn forget(&mut self, uid: &str) {
        self.free(uid);
        self.pods.remove(uid);
    }

    /// When the pod needs the kubelet's attention next.
    pub(super) fn wake_of(&self, hosted: &Hosted) -> Option<Timestamp> {
        [hosted.life.next(&hosted.view), self.lease_ends(hosted)].into_iter().flatten().min()
    }

    /// Does what is due by `now`, pod by pod.
    pub(super) fn advance(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let due = |state: &Self, hosted: &Hosted| state.wake_of(hosted).is_some_and(|at| at <= now);
        let uids: Vec<String> =
            self.pods.iter().filter(|(_, h)| due(self, h)).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            // Several steps of a pod may be due. Each takes the pod further in its life, which has four stages.
            for _ in 0..4 {
                if self.pods.get(&uid).is_some_and(|hosted| due(self, hosted)) {
                    self.proceed(&uid, now, actions);
                }
            }
        }
    }

    fn proceed(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        self.start(uid, now, actions);
        self.fence(uid, now, actions);
        self.suspend_or_kill(uid, now, actions);
        let Some(hosted) = self.pods.get(uid) else { return };
        let exit = hosted.life.exit(&hosted.view.script);
        if let Some(exit) = exit.filter(|exit| exit.at <= now) {
            self.stop(uid, exit, actions);
        }
        self.settle(uid, now, actions);
    }

    /// Reports that the main container of a pod has ended.
    pub(super) fn stop(&mut self, uid: &str, exit: Exit, actions: &mut Vec<Action>) {
        let ahead = self.ahead;
        let Some(hosted) = self.pods.get_mut(uid) else { return };
        let Life::Running(run) = hosted.life else { return };
        let ending = Ending { exit, run };
        hosted.life = Life::Ending(ending);
        if !hosted.gone {
            let phase = if hosted.view.phase.is_terminal() { hosted.view.phase } else { Phase::Running };
            let patch = status::stopped(&hosted.view, &hosted.place, &ending.dated(ahead));
            actions.push(Action::Report { pod: hosted.view.key.clone(), phase, patch });
        }
    }

    /// Reports the terminal phase of a pod once all its containers have ended and its sandbox is down, and then removes
    /// the pod if somebody deleted it.
    fn settle(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        let ahead = self.ahead;
        let Some(hosted) = self.pods.get_mut(uid) else { return };
        let Life::Ending(ending) = hosted.life else { return };
        if ending.settles(&hosted.view) > now {
            return;
        }
        if hosted.gone {
            return self.forget(uid);
        }
        hosted.life = Life::Ended;
        let patch = status::settled(&hosted.view, &hosted.place, &ending.dated(ahead));
        let written = Some(hosted.view.phase).filter(|phase| phase.is_terminal());
        let evicted = ending.exit.cause == Cause::Evicted;
        let own = if evicted { Phase::Failed } else { ending.phase(&hosted.view) };
        let phase = written.unwrap_or(own);
        actions.push(Action::Report { pod: hosted.view.key.clone(), phase, patch });
        if hosted.deleted {
            hosted.remove(actions);
        }
        self.free(uid);
    }

    /// Reports the end of a pod whose containers have never run, and removes the pod if somebody deleted it.
    fn never_ran(&mut self, uid: &str, exit: &Exit, actions: &mut Vec<Action>) {
        self.free(uid);
        let ahead = self.ahead;
        let Some(hosted) = self.pods.get_mut(uid) else { return };
        hosted.life = Life::Ended;
        let dated = Exit { at: shifted(exit.at, ahead), ..*exit };
        let of_init = hosted.view.script.init_exit_code != 0 && exit.started.is_some();
        let write = if of_init { status::init_failed } else { status::never_ran };
        actions.push(Action::Report {
            pod: hosted.view.key.clone(),
            phase: Phase::Failed,
            patch: write(&hosted.view, &hosted.place, &dated),
        });
        if hosted.deleted {
            hosted.remove(actions);
        }
    }

    /// Starts the containers of a pod whose time has come, as far as they can start.
    fn start(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get_mut(uid) else { return };
        let Life::Starting { at } = hosted.life else { return };
        if at > now {
            return;
        }
        let script = &hosted.view.script;
        let fails = script.init_exit_code != 0 && !hosted.view.init_containers.is_empty();
        let no_command = script.start_error.as_ref().is_some_and(|error| error.reason == NO_COMMAND);
        if fails {
            let code = script.init_exit_code;
            self.never_ran(uid, &Exit { started: Some(at), at, code, cause: Cause::Exited }, actions);
        } else if no_command {
            let exit = Exit { started: None, at, code: CANNOT_RUN, cause: Cause::NoCommand };
            self.never_ran(uid, &exit, actions);
        } else {
            hosted.start(at, self.ahead, actions);
        }
    }

    /// Ends a pod once the lease of its claim has passed since the agent renewed its own Lease, unless the pod had
    /// ended by itself before that time.
    fn fence(&mut self, uid: &str, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(hosted) = self.pods.get(uid) else { return };
        let Some(at) = self.lease_ends(hosted).filter(|at| *at <= now) else { return };
        let own = hosted.life.exit(&hosted.view.script).filter(|exit| exit.at <= at);
        match hosted.life {
            Life::Running(run) => {
                let fenced = Exit { started: Some(run.since), at, code: KILLED, cause: Cause::Fenced };
                self.stop(uid, own.unwrap_or(fenced), actions);
            }
            Life::Starting { .. } => {
                let exit = Exit { started: None, at, code: KILLED, cause: Cause::Fenced };
                self.never_ran(uid, &exit, actions);
            }
            Life::Ending(_) | Life::Ended => {}
        }
    }
}
