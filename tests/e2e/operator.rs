//! The process of a test's operator, which is started again as a Deployment does.

use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The exit status of an operator that lost its Lease, for example because the API server of a busy computer did not answer for 20 s.
const LEASE_LOST: i32 = 2;

/// How often an operator that lost its Lease is started again. An operator that ends more often stays down, and its test fails by the
/// test's own deadline.
const STARTS: u32 = 3;

/// The pause before an operator that ended is started again, as a kubelet makes: the API server may recover meanwhile.
const PAUSE: Duration = Duration::from_secs(10);

/// A running operator. If this value is dropped, the operator is killed.
pub struct Operator(Arc<Mutex<State>>);

struct State {
    process: Child,
    /// The test killed the operator.
    killed: bool,
}

impl Operator {
    /// Starts this command, and starts it again when it ends with [`LEASE_LOST`].
    pub fn start(mut command: Command) -> Self {
        let state = State { process: command.spawn().unwrap(), killed: false };
        let shared = Arc::new(Mutex::new(state));
        let watched = Arc::downgrade(&shared);
        std::thread::spawn(move || {
            let (mut starts, mut ended) = (0, None);
            while let Some(state) = watched.upgrade() {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.killed {
                    return;
                }
                if ended.is_some_and(|at: Instant| at.elapsed() >= PAUSE) {
                    ended = None;
                    state.process = command.spawn().unwrap();
                } else if ended.is_none()
                    && let Some(status) = state.process.try_wait().unwrap()
                {
                    eprintln!("the operator ended by itself: {status}");
                    if status.code() != Some(LEASE_LOST) || starts == STARTS {
                        return;
                    }
                    starts += 1;
                    ended = Some(Instant::now());
                }
                drop(state);
                std::thread::sleep(Duration::from_millis(250));
            }
        });
        Self(shared)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.0.lock().unwrap().process.id()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.killed = true;
        let _ = state.process.kill();
        let _ = state.process.wait();
    }
}
