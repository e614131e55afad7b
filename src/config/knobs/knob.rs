//! What is said of a knob.

/// A knob: a configuration variable that means something to HTCondor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knob {
    /// As the manual spells it. A variable part stands in angle brackets: `SLOT_TYPE_<N>` (`<N>` is a number).
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// The unit of a number: `seconds`, `MiB`, ...; empty where there is none.
    pub unit: &'static str,
    /// The least and the greatest number allowed; infinite where there is no such bound.
    pub range: Option<(f64, f64)>,
    /// The default as documented, where HTCondor has it in its code and not in its parameter table.
    pub fallback: Option<&'static str>,
    /// Who reads it.
    pub readers: &'static [Reader],
    /// Whether `SLOT_TYPE_<N>_NAME` overrides it for the slots of a type.
    pub per_slot_type: bool,
    /// What Slotwright does with it.
    pub support: Support,
    /// The section of the seeds that names it first; empty where none does.
    pub section: &'static str,
    /// What it does, in a line.
    pub doc: &'static str,
}

impl Knob {
    /// A knob without unit, range and section, not overridden by slot types.
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        readers: &'static [Reader],
        support: Support,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            unit: "",
            range: None,
            fallback: None,
            readers,
            per_slot_type: false,
            support,
            section: "",
            doc,
        }
    }

    /// The same, counted in that unit.
    pub(super) const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// The same, at least so much.
    pub(super) const fn at_least(self, least: f64) -> Self {
        Self { range: Some((least, f64::INFINITY)), ..self }
    }

    /// The same, between those two.
    pub(super) const fn between(self, least: f64, greatest: f64) -> Self {
        Self { range: Some((least, greatest)), ..self }
    }

    /// The same, with a default that is not in HTCondor's table.
    pub(super) const fn fallback(self, fallback: &'static str) -> Self {
        Self { fallback: Some(fallback), ..self }
    }

    /// The same, named in that section of the seeds.
    pub(super) const fn section(self, section: &'static str) -> Self {
        Self { section, ..self }
    }

    /// The same, overridden by `SLOT_TYPE_<N>_NAME`.
    pub(super) const fn per_slot_type(self) -> Self {
        Self { per_slot_type: true, ..self }
    }

    /// Whether its name has a variable part.
    pub fn is_pattern(&self) -> bool {
        self.name.contains('<')
    }

    /// Its default, raw: HTCondor's compiled-in one, else the documented one. `None`: unset by default.
    pub fn default(&self) -> Option<&'static str> {
        super::default_of(None, self.name).or(self.fallback)
    }
}

/// What a knob's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false, or an expression that is so without an ad.
    Boolean,
    /// A whole number, or an expression that is one without an ad.
    Integer,
    /// A number, or an expression that is one without an ad.
    Real,
    /// A ClassAd expression, evaluated again and again against ads.
    Expression,
    /// Names, separated by commas or blanks.
    List,
    /// Shares of a machine's resources: `cpus=2, memory=25%, 50%`.
    Shares,
    /// Commands of a job transform.
    Transform,
    /// Text: a name, a path, an address.
    Text,
}

impl Kind {
    /// Its name in the documentation and in messages, with the article.
    pub const fn described(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Real => "a number",
            Self::Expression => "an expression",
            Self::List => "a list",
            Self::Shares => "shares of resources",
            Self::Transform => "a transform",
            Self::Text => "text",
        }
    }
}

/// Who reads a knob: HTCondor's daemons and tools, and what stands in for them here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    /// The startd: a NodePolicy's text.
    Startd,
    /// The negotiator: the Negotiator object.
    Negotiator,
    /// The accountant: Submitter and GroupQuota objects.
    Accountant,
    /// The schedd: the job queue and its policy.
    Schedd,
    /// `condor_submit`: defaults of a job.
    Submit,
    /// The defrag daemon.
    Defrag,
    /// The collector, and what looks back on it: HTCondorView, Ganglia.
    Collector,
    /// The master and the daemons of high availability.
    Master,
    /// Nobody but other values, by `$(NAME)`.
    Macros,
}

impl Reader {
    /// The object whose text it reads, with the article; none where nothing here reads one for it.
    pub const fn place(self) -> Option<&'static str> {
        match self {
            Self::Startd => Some("a NodePolicy"),
            Self::Negotiator | Self::Accountant => Some("the Negotiator"),
            Self::Schedd | Self::Submit => Some("the SubmitPolicy"),
            Self::Defrag | Self::Collector | Self::Master | Self::Macros => None,
        }
    }

    /// Its name in the documentation.
    pub const fn described(self) -> &'static str {
        match self {
            Self::Startd => "startd",
            Self::Negotiator => "negotiator",
            Self::Accountant => "accountant",
            Self::Schedd => "schedd",
            Self::Submit => "submit",
            Self::Defrag => "defrag",
            Self::Collector => "collector",
            Self::Master => "master",
            Self::Macros => "other values",
        }
    }
}

/// What Slotwright does with a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The knob does what it does in HTCondor.
    Honored,
    /// The knob is read, checked, and shown by `slotwright config`; nothing acts on it yet.
    Planned,
    /// The knob has no effect: the text names what to use instead.
    MappedTo(&'static str),
    /// The knob has no effect: the text says why.
    Meaningless(&'static str),
}
