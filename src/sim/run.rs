//! The loop: what happens goes into the pool, what the deciders ask for comes true later.

use std::collections::BTreeMap;

use super::observe::Measures;
use super::queue::Happening;
use super::report::Report;
use super::scenario::Scenario;
use super::transitions::Transitions;
use super::world::World;
use model::decide::{Decision, conclude, decide};
use model::negotiator::{Ready, Watch, negotiate_with};
use model::pool::{Document, NegotiatorId, Pool, Time};

/// Simulates a scenario to its end. `progress` is told the time now and then, and may end the simulation by answering
/// false: then the report goes as far as it went.
pub fn simulate(scenario: &Scenario, progress: &mut dyn FnMut(Time) -> bool) -> Report {
    let mut pool = Pool::default();
    pool.trace = Some(Vec::new());
    let mut simulation = Simulation {
        pool,
        world: World::new(scenario),
        measures: Measures::new(scenario),
        transitions: Transitions::default(),
        now: scenario.start,
        next: None,
        ready: BTreeMap::new(),
        events: 0,
    };
    simulation.run(scenario, progress);
    let report = simulation.measures.report(
        scenario,
        simulation.now,
        simulation.events,
        &simulation.pool,
        simulation.world.books,
    );
    Report { transitions: simulation.transitions, ..report }
}

struct Simulation<'s> {
    pool: Pool,
    world: World<'s>,
    measures: Measures,
    transitions: Transitions,
    now: Time,
    /// When the deciders want to look again.
    next: Option<Time>,
    /// Slots made ready in earlier cycles, by negotiator.
    ready: BTreeMap<NegotiatorId, Ready>,
    events: u64,
}

impl Simulation<'_> {
    fn run(&mut self, scenario: &Scenario, progress: &mut dyn FnMut(Time) -> bool) {
        let end = scenario.start + scenario.length;
        self.world.begin(&mut self.pool);
        self.world.queue.say(self.now, Happening::Sample);
        self.decide();
        while let Some(at) = self.due().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let mut sampled = false;
            while let Some(what) = self.world.queue.take(self.now) {
                sampled |= matches!(what, Happening::Sample);
                self.events += 1;
                self.world.happen(what, &mut self.pool, self.now);
            }
            self.decide();
            if sampled {
                self.sample();
                let next = self.now + scenario.sample;
                if self.now < end {
                    self.world.queue.say(next.min(end), Happening::Sample);
                }
                if !progress(self.now) {
                    return;
                }
            }
        }
        self.now = end;
    }

    /// When something happens next, or the deciders want to look.
    fn due(&self) -> Option<Time> {
        [self.world.queue.next(), self.next].into_iter().flatten().min()
    }

    /// Lets the deciders look. A cycle takes no time: what it found is there at once, and is looked at.
    fn decide(&mut self) {
        loop {
            let Decision { effects, negotiation, next } = decide(&mut self.pool, self.now);
            self.next = next;
            self.transitions.extend(self.pool.trace.replace(Vec::new()).unwrap_or_default());
            for effect in effects {
                self.world.perform(effect, self.now);
            }
            let stale = self.pool.take_stale();
            for document in stale {
                if let Document::Job(uid) = document {
                    self.world.mark_status(&uid, &self.pool, self.now);
                }
            }
            let Some(negotiation) = negotiation else { return };
            let ready = self.ready.entry(negotiation.negotiator.clone()).or_default();
            let outcome = negotiate_with(&negotiation.cycle, ready, Watch::STOPPED);
            conclude(&mut self.pool, &negotiation, &outcome, self.now);
            self.measures.cycle(negotiation, outcome);
        }
    }

    fn sample(&mut self) {
        self.measures.sample(&self.pool, &mut self.world.books, self.now);
    }
}
