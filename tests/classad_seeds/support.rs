//! Policies as the startd reads them, and their values for a slot and a job.

use slotwright::classad::{Ad, Env, Expr, Value, rank};
use slotwright::config::{Config, Host, Reader, Source};

/// 2026-01-31T12:00:00Z
pub const NOW: i64 = 1_769_860_800;

/// What the policies' macros stand for, as the manual's section "Macros" has them (chapter 0).
pub const MACROS: &str = r"
    MINUTE          = 60
    HOUR            = (60 * $(MINUTE))
    StateTimer      = (time() - EnteredCurrentState)
    ActivityTimer   = (time() - EnteredCurrentActivity)
    ActivationTimer = (time() - JobStart)
    NonCondorLoadAvg        = (LoadAvg - CondorLoadAvg)
    BackgroundLoad          = 0.3
    HighLoad                = 0.5
    StartIdleTime           = 15 * $(MINUTE)
    ContinueIdleTime        = 5 * $(MINUTE)
    MaxSuspendTime          = 10 * $(MINUTE)
    KeyboardBusy            = KeyboardIdle < $(MINUTE)
    ConsoleBusy             = (ConsoleIdle  < $(MINUTE))
    CPUIdle                = $(NonCondorLoadAvg) <= $(BackgroundLoad)
    CPUBusy                = $(NonCondorLoadAvg) >= $(HighLoad)
    KeyboardNotBusy         = ($(KeyboardBusy) == False)
";

/// Named by the examples, and printed nowhere in these chapters.
pub const UNPRINTED: &str = r"
    JustCpu   = ($(CPUBusy) && ($(KeyboardBusy) == False))
    SmallJob  = (TARGET.ImageSize < (15 * 1024))
    IsVanilla = (TARGET.JobUniverse == 5)
    IsPVM     = (TARGET.JobUniverse == 4)
    DETECTED_CORES = 2
";

/// Examples as the startd reads them, one after another.
pub struct Policy(Config);

impl Policy {
    pub fn new(texts: &[&str]) -> Self {
        let text = texts.join("\n");
        let reading = Reader::new(Host::none()).subsystem("STARTD").read(&[Source::new("example", &text)]);
        Self(reading.into_config().unwrap_or_else(|error| panic!("{error}\n{text}")))
    }

    /// The expanded text of a name.
    pub fn text(&self, name: &str) -> String {
        self.0.value(name).unwrap().unwrap_or_else(|| panic!("no {name}"))
    }

    pub fn expr(&self, name: &str) -> Expr {
        let expr = self.0.expr(name).unwrap_or_else(|error| panic!("{error}"));
        expr.unwrap_or_else(|| panic!("no {name}"))
    }

    /// The value of a policy expression for a slot and a job.
    pub fn eval(&self, name: &str, slot: &str, job: &str) -> String {
        self.expr(name).eval(Some(&ad(slot)), Some(&ad(job)), &Env::at(NOW)).to_string()
    }

    /// The same while there is no job.
    pub fn alone(&self, name: &str, slot: &str) -> String {
        self.expr(name).eval(Some(&ad(slot)), None, &Env::at(NOW)).to_string()
    }

    pub fn rank(&self, slot: &str, job: &str) -> f64 {
        let mut slot = ad(slot);
        slot.insert("Rank", self.expr("RANK"));
        rank(&slot, &ad(job), &Env::at(NOW))
    }
}

/// An ad of attributes with commas between, none of which has one.
pub fn ad(text: &str) -> Ad {
    Ad::parse_long(&text.replace(", ", "\n")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn value(text: &str, my: &str, target: &str) -> Value {
    Expr::parse(text).unwrap().eval(Some(&ad(my)), Some(&ad(target)), &Env::at(NOW))
}

#[track_caller]
pub fn assert_rank(policy: &Policy, cases: &[(&str, f64)]) {
    for (job, expected) in cases {
        let found = policy.rank("", job);
        assert!((found - expected).abs() < f64::EPSILON, "{job}: {found}, not {expected}");
    }
}
