//! The loop: it applies each event of the queue to the pool, lets the deciders look, and puts the effects that they
//! ask for into the queue.

use std::collections::BTreeMap;

use super::observe::Measures;
use super::queue::Happening;
use super::report::Report;
use super::scenario::Scenario;
use super::transitions::Transitions;
use super::world::World;
use model::decide::{Decision, conclude, decide};
use model::negotiator::{Ready, Stopwatch, negotiate_with};
use model::pool::{Document, NegotiatorId, Pauses, Pool, Time};

/// Simulates a scenario to its end. The loop calls `progress` with the simulated time at every sample. If `progress`
/// returns false, the simulation stops, and the report covers the time up to then.
pub fn simulate(scenario: &Scenario, progress: &mut dyn FnMut(Time) -> bool) -> Report {
    let mut pool = Pool::default();
    pool.set_pauses(Pauses::Htcondors);
    pool.begin_trace();
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
    /// When the deciders asked to be called again.
    next: Option<Time>,
    /// Slots made ready in earlier cycles, by negotiator.
    ready: BTreeMap<NegotiatorId, Ready>,
    events: u64,
}

impl Simulation<'_> {
    fn run(&mut self, scenario: &Scenario, progress: &mut dyn FnMut(Time) -> bool) {
        let end = scenario.start + scenario.length;
        self.world.begin(&mut self.pool);
        self.world.queue.schedule(self.now, Happening::Sample);
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
                    self.world.queue.schedule(next.min(end), Happening::Sample);
                }
                if !progress(self.now) {
                    return;
                }
            }
        }
        self.now = end;
    }

    /// The time of the next entry of the queue, or the time at which the deciders asked to be called, if that is
    /// earlier.
    fn due(&self) -> Option<Time> {
        [self.world.queue.next(), self.next].into_iter().flatten().min()
    }

    /// Calls the deciders, and gives their effects to the world. A negotiation cycle takes no simulated time: its
    /// matches go into the pool at once, and the deciders look again.
    fn decide(&mut self) {
        loop {
            let Decision { effects, negotiation, next, .. } = decide(&mut self.pool, self.now);
            self.next = next;
            self.transitions.extend(self.pool.take_trace());
            for effect in effects {
                self.world.perform(effect, self.now);
            }
            let stale = self.pool.take_statuses();
            for document in stale {
                if let Document::Job(uid) = document {
                    self.world.mark_status(&uid, &self.pool, self.now);
                }
            }
            let Some(negotiation) = negotiation else { return };
            let ready = self.ready.entry(negotiation.negotiator.clone()).or_default();
            let outcome = negotiate_with(&negotiation.cycle, ready, Stopwatch::STOPPED);
            conclude(&mut self.pool, &negotiation, &outcome, self.now);
            self.measures.cycle(negotiation, outcome);
        }
    }

    fn sample(&mut self) {
        self.measures.sample(&self.pool, &mut self.world.books, self.now);
    }
}
