//! One run: a plan in virtual time, on one thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, Once};
use std::task::Poll;
use std::time::Duration;

use controller::creators::Stamps;
use controller::seal::Seals;
use controller::{self, Clock, Cycles, Options, Surroundings};
use futures::FutureExt;
use jiff::SignedDuration;
use kube::Client;
use model::negotiator;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::archive::shelf;
use super::checks;
use super::coverage::Coverage;
use super::people;
use super::plan::Plan;
use super::rng::draw;
use super::wire::Wire;
use super::world::{Life, Shared, World};

/// The virtual time from one tick of the nodes and the plan to the next, in milliseconds.
const TICK: u64 = 500;
/// By when everything must have finished after faults have stopped, in milliseconds.
const SETTLES: u64 = 1_500_000;
/// For how long the operator must write nothing once everything has finished, in milliseconds.
const QUIET: u64 = 60_000;
/// For how long the operator may still write once everything has finished, in milliseconds: one more cycle explains
/// which jobs cannot run.
const LAST_WORDS: u64 = 90_000;

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub violation: Option<String>,
    /// A hash of all calls with their times and contents, and of everything that happened.
    pub trace: u64,
    pub coverage: Coverage,
    pub log: Vec<String>,
    /// How long the run took, in virtual milliseconds.
    pub took: u64,
    pub writes: u64,
}

thread_local! {
    static PLAYING: Cell<bool> = const { Cell::new(false) };
    static FAULT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes panics. tokio catches a panic in a task of the operator, but it is a bug that a run must report.
fn catch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if PLAYING.get() {
                FAULT.with_borrow_mut(|fault| {
                    fault.get_or_insert_with(|| info.to_string());
                });
            } else {
                usual(info);
            }
        }));
    });
}

/// Runs a plan. With `tell`, the outcome has a log of everything that happened.
pub fn run(plan: &Plan, tell: bool) -> Outcome {
    let (came, fault) = in_virtual_time(play(plan, tell));
    let fault = fault.or_else(|| came.is_none().then(|| "a panic".to_owned()));
    let outcome = came.unwrap_or_default();
    Outcome { violation: outcome.violation.or(fault), ..outcome }
}

/// The result of a future that runs on one thread, where time passes only when nothing else can happen; and the first
/// panic in the future or its tasks.
fn in_virtual_time<T>(future: impl Future<Output = T>) -> (Option<T>, Option<String>) {
    catch_panics();
    FAULT.with_borrow_mut(Option::take);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    PLAYING.set(true);
    let came = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(future)));
    PLAYING.set(false);
    (came.ok(), FAULT.with_borrow_mut(Option::take))
}

#[test]
fn a_panic_of_a_task_is_a_finding() {
    let (came, fault) = in_virtual_time(async { tokio::spawn(async { panic!("of a task") }).await.is_err() });
    assert_eq!(came, Some(true));
    assert!(fault.is_some_and(|fault| fault.contains("of a task")));
    let (came, fault) = in_virtual_time::<()>(async { panic!("of the run") });
    assert_eq!(came, None);
    assert!(fault.is_some_and(|fault| fault.contains("of the run")));
}

async fn play(plan: &Plan, tell: bool) -> Outcome {
    let start = Instant::now();
    let world: Shared = Arc::new(Mutex::new(World::new(plan, tell)));
    let seats = [
        tokio::spawn(seat(Arc::clone(&world), 0, plan.clone())),
        tokio::spawn(seat(Arc::clone(&world), 1, plan.clone())),
    ];
    let ends = u64::from(plan.ends) * 1000;
    let mut at = 0;
    let mut settled: Option<(u64, Option<u64>)> = None;
    loop {
        sleep_until(start + Duration::from_millis(at)).await;
        let mut world = world.lock().unwrap();
        if at == ends {
            people::mend(&mut world);
        }
        for what in world.due_by_time() {
            people::perform(&mut world, &what);
        }
        world.tick();
        if world.checks.loops {
            world.violated("calls come without end".to_owned());
        }
        if world.checks.violation.is_some() || FAULT.with_borrow(Option::is_some) {
            break;
        }
        if at > ends && at.is_multiple_of(2000) {
            people::release(&mut world);
            let left = checks::unfinished(&world);
            match (&left, settled) {
                (None, None) => settled = Some((at, None)),
                (None, Some((since, None))) if at >= since + LAST_WORDS => {
                    settled = Some((at, Some(world.writes)));
                }
                (None, Some((since, Some(writes)))) if at >= since + QUIET => {
                    if writes != world.writes {
                        let more = world.writes - writes;
                        world.violated(format!("{more} writes though nothing happens"));
                    }
                    break;
                }
                (None, Some(_)) => {}
                (Some(left), _) if at > ends + SETTLES => {
                    world.violated(format!("it never settles: {left}"));
                    break;
                }
                (Some(_), _) => settled = None,
            }
        }
        drop(world);
        at += TICK;
    }
    for seat in seats {
        seat.abort();
    }
    let mut world = world.lock().unwrap();
    world.coverage.close();
    Outcome {
        violation: world.checks.violation.take(),
        trace: world.trace,
        coverage: std::mem::take(&mut world.coverage),
        log: world.log.take().unwrap_or_default(),
        took: at,
        writes: world.writes,
    }
}

/// A seat for operators: whenever one has ended, another starts, as in a Deployment.
async fn seat(world: Shared, seat: usize, plan: Plan) {
    loop {
        let wanted = seat == 0 || world.lock().unwrap().second;
        if !wanted {
            sleep(Duration::from_millis(TICK)).await;
            continue;
        }
        let who = live(&world, seat, &plan).await;
        let pause = {
            let mut world = world.lock().unwrap();
            let at = world.at();
            world.lives[who].buried = Some(at);
            world.note(|| format!("operator {who} is no more"));
            200 + world.draw(&format!("restart {who}"), 8000)
        };
        sleep(Duration::from_millis(pause)).await;
    }
}

/// Runs an operator from its start to its end, and returns its number.
async fn live(world: &Shared, seat: usize, plan: &Plan) -> usize {
    let (killed, stop) = (CancellationToken::new(), CancellationToken::new());
    let (who, wall) = {
        let mut world = world.lock().unwrap();
        let life = Life {
            seat,
            alive: true,
            buried: None,
            killed: killed.clone(),
            stop: stop.clone(),
            polls_left: None,
        };
        world.lives.push(life);
        let who = world.lives.len() - 1;
        world.note(|| format!("operator {who} starts"));
        // At each start the machine's clock is wrong by another amount.
        let skew = if plan.skew == 0 {
            0
        } else {
            plan.skew * (1 + i64::try_from(who % 3).unwrap()) * if who.is_multiple_of(2) { 1 } else { -1 }
        };
        let wall = world.wall_at(world.at()).saturating_add(SignedDuration::from_secs(skew)).unwrap();
        (who, wall)
    };
    let seed = plan.seed;
    let noted = Arc::clone(world);
    let client = Client::new(Wire { world: Arc::clone(world), who }, "default");
    let surroundings = Surroundings {
        client: client.clone(),
        elections: client,
        clock: Clock::set_to(wall),
        cycles: Cycles::run_by(move |negotiation| {
            let matches = negotiator::negotiate(&negotiation.cycle);
            let (slots, found) = (negotiation.cycle.slots.len(), matches.matches.len());
            noted
                .lock()
                .unwrap()
                .note(|| format!("operator {who} negotiates: {slots} slots, {found} matches"));
            // The world goes on while the cycle runs.
            let takes = draw(&format!("cycle {}", negotiation.started.millis()), seed) % 400;
            sleep(Duration::from_millis(takes)).map(|()| matches).boxed()
        }),
        chance: draw(&format!("chance {who}"), seed),
        seals: Seals::default(),
        stamps: Stamps::default(),
        pods_at_once: if draw("pods at once", seed).is_multiple_of(2) { 2 } else { 1000 },
        shelf: plan.history.then(|| shelf(world, who)),
    };
    let options = Options {
        history: None,
        webhook_serves: None,
        health_addr: None,
        metrics_addr: None,
        leader_elect_namespace: Some("slotwright".to_owned()),
        // Operators with one name in two pods. The next operator of a seat is started in the same pod.
        identity: "operator".to_owned(),
        pod_uid: Some(format!("pod-{seat}")),
    };
    let operator = controller::run_in(surroundings, options, stop);
    mortal(world, who, killed, operator).await;
    // The operator may have ended by itself. An ended process does nothing.
    let mut world = world.lock().unwrap();
    world.lives[who].alive = false;
    drop(world);
    who
}

/// Polls the operator until it ends, is killed, or has been polled as many times as the plan allows.
async fn mortal<T>(world: &Shared, who: usize, killed: CancellationToken, operator: impl Future<Output = T>) {
    let mut operator = pin!(operator);
    let mut killed = pin!(killed.cancelled());
    std::future::poll_fn(|context| {
        if killed.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        {
            let mut world = world.lock().unwrap();
            match world.lives[who].polls_left {
                Some(0) => {
                    world.kill(who);
                    return Poll::Ready(());
                }
                Some(left) => world.lives[who].polls_left = Some(left - 1),
                None => {}
            }
        }
        operator.as_mut().poll(context).map(|_| ())
    })
    .await;
}
