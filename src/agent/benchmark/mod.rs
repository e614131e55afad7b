//! Benchmarks: Mips by Dhrystone and KFlops by LINPACK, as HTCondor's startd measures them.
//!
//! | file | holds |
//! | --- | --- |
//! | `dhrystone` | a mix of integer, text and control statements |
//! | `linpack` | a dense system of linear equations |
//!
//! Both are written anew from the published descriptions. The result of each run is checked, so that the compiler cannot
//! leave the work out. Figures of different builds of the agent may differ by some percent, because compilers do.

mod dhrystone;
mod linpack;

use std::time::Duration;

use dhrystone::Dhrystone;
use linpack::Linpack;

/// Dhrystones a second of a VAX 11/780, which counts as a computer of one Mips.
const DHRYSTONES_OF_ONE_MIPS: f64 = 1757.0;
/// Dhrystones between two looks at the clock: about a tenth of a millisecond.
const DHRYSTONES_AT_ONCE: u32 = 1000;
/// The most looks at the clock, so that a run ends even if the clock stands still.
const MAX_LOOKS: u32 = 1_000_000;

/// The figures of a benchmark run, of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Mips: Dhrystones a second by 1757. 0 if the clock stood still, or if the computer calculated wrongly.
    pub mips: i64,
    /// KFlops: thousands of floating point operations of double precision a second. 0 in the same cases.
    pub kflops: i64,
}

/// Runs both benchmarks on the calling thread, for half of `budget` each, and for at least a moment each.
///
/// `clock` is the time since any fixed moment, by a clock that never goes back. The run ends within a few milliseconds after
/// the budget. HTCondor measures by the CPU time of its process: with the thread's CPU time as the clock, other programs on
/// a busy node do not make the figures smaller, but the run takes longer than the budget. On a computer on which HTCondor's
/// `condor_mips` says 12,500, this says 11,900.
pub fn run(clock: impl Fn() -> Duration, budget: Duration) -> Figures {
    let half = budget / 2;
    let mut dhrystone = Dhrystone::new();
    let dhrystones = rate(&clock, half, || {
        dhrystone.run(DHRYSTONES_AT_ONCE);
        f64::from(DHRYSTONES_AT_ONCE)
    });
    let right = dhrystone.is_right();
    let mut linpack = Linpack::new();
    let mut solved = true;
    let operations = rate(&clock, half, || {
        solved &= linpack.run();
        linpack::OPERATIONS
    });
    Figures {
        mips: if right { whole(dhrystones / DHRYSTONES_OF_ONE_MIPS) } else { 0 },
        kflops: if solved { whole(operations / 1000.0) } else { 0 },
    }
}

/// Repeats `work`, which returns how much was done, until `budget` is over. Returns how much was done in a second; 0 if the
/// clock stood still.
fn rate(clock: impl Fn() -> Duration, budget: Duration, mut work: impl FnMut() -> f64) -> f64 {
    let start = clock();
    let (mut done, mut taken) = (0.0, Duration::ZERO);
    for _ in 0..MAX_LOOKS {
        done += work();
        taken = clock().saturating_sub(start);
        if taken >= budget && !taken.is_zero() {
            break;
        }
    }
    if taken.is_zero() { 0.0 } else { done / taken.as_secs_f64() }
}

/// The nearest whole number, and at least 1 for a rate that was measured, because 0 says that none was.
fn whole(figure: f64) -> i64 {
    if figure > 0.0 {
        // A conversion from a float to an integer saturates.
        #[allow(clippy::cast_possible_truncation)]
        let whole = figure.round() as i64;
        whole.max(1)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that is `step` later at each look, and the looks.
    fn clock(step: Duration) -> (impl Fn() -> Duration, std::rc::Rc<Cell<u32>>) {
        let looks = std::rc::Rc::new(Cell::new(0));
        let counted = looks.clone();
        let look = move || {
            counted.set(counted.get() + 1);
            step * counted.get()
        };
        (look, looks)
    }

    #[test]
    fn a_run_ends_with_its_budget() {
        let (clock, looks) = clock(Duration::from_millis(100));
        let figures = run(clock, Duration::from_secs(2));
        // Each half: a look at the start and ten of 100 ms.
        assert_eq!(looks.get(), 22);
        // 10 batches of 1000 in a second; 10 systems in a second.
        assert_eq!(figures, Figures { mips: 6, kflops: 6867 });
    }

    #[test]
    fn without_a_budget_each_benchmark_runs_once() {
        let (clock, looks) = clock(Duration::from_micros(500));
        let figures = run(clock, Duration::ZERO);
        assert_eq!((looks.get(), figures), (4, Figures { mips: 1138, kflops: 1_373_333 }));
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_ends_with_no_figure() {
        assert!(rate(|| Duration::from_secs(7), Duration::from_secs(1), || 1.0).abs() < f64::EPSILON);
        let back = Cell::new(Duration::from_secs(2_000_000));
        let clock = || {
            back.set(back.get().saturating_sub(Duration::from_secs(1)));
            back.get()
        };
        assert!(rate(clock, Duration::from_secs(1), || 1.0).abs() < f64::EPSILON);
    }
}
