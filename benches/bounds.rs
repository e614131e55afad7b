//! Measures how long the evaluations take that cost most: expressions of `tests/language/hostile.rs`, each by itself and
//! thousands of times in one evaluation, which a bound ends.
//!
//! Run by `cargo bench -p slotwright-classad --bench bounds`. It fails if an evaluation takes longer than [`MOST`]. All times
//! are the least of several rounds, so that other work on the computer has little influence.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use classad::{Ad, Env, Evaluation, Expr};

#[path = "../tests/language/hostile.rs"]
mod hostile;

/// The longest that an evaluation may take.
const MOST: Duration = Duration::from_millis(50);

/// The most time that evaluations should take.
const WANTED: Duration = Duration::from_millis(5);

const ROUNDS: u32 = 3;

/// The least time that an evaluation took, the first evaluation's left aside, and that of the first.
fn time(expr: &Expr, ad: &Ad, env: &Env) -> (Duration, Duration, Evaluation) {
    let timed = || {
        let began = Instant::now();
        let done = black_box(expr.evaluate(Some(black_box(ad)), None, env));
        (began.elapsed(), done)
    };
    let (first, done) = timed();
    let least = (0..ROUNDS).map(|_| timed().0).min().unwrap_or_default();
    (first, least, done)
}

fn main() {
    let env = Env::at(1_769_860_800);
    let (mut longest, mut slow, mut over) = (Duration::ZERO, 0, 0);
    println!(
        "| expression | steps | first, ms | ms | ns a step | often: steps | first, ms | ms | ns a step |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for hostile in hostile::all() {
        print!("| `{}`", hostile.text);
        for expr in [&hostile.once, &hostile.often] {
            let (first, least, done) = time(expr, &hostile.ad, &env);
            let [first_ms, least_ms] = [first, least].map(|time| time.as_secs_f64() * 1e3);
            let price = least_ms * 1e6 / f64::from(done.steps.max(1));
            print!(" | {} | {first_ms:.2} | {least_ms:.2} | {price:.1}", done.steps);
            longest = longest.max(least);
            slow += u32::from(least > WANTED);
            over += u32::from(least.max(first) > MOST);
        }
        println!(" |");
    }
    println!(
        "\nThe longest took {longest:?}; {slow} took longer than {WANTED:?}, {over} longer than {MOST:?}."
    );
    assert_eq!(over, 0, "an evaluation took longer than {MOST:?}");
}
