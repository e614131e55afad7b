//! The types of the knob table.

/// A knob: a configuration variable that means something to HTCondor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knob {
    /// The name as the manual spells it. A variable part stands in angle brackets: `SLOT_TYPE_<N>_START` (`<N>` is a
    /// number).
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// The unit of a number: `seconds`, `MiB`, ...; empty if it has none.
    pub unit: &'static str,
    /// The least and the greatest number allowed. Infinity means no bound.
    pub range: Option<(f64, f64)>,
    /// The documented default, if HTCondor has the default in its code and not in its parameter table.
    pub fallback: Option<&'static str>,
    /// The default in Slotwright, where HTCondor's is another; an empty text means that the knob is unset by default.
    pub ours: Option<&'static str>,
    /// Who reads the knob; the first decides where the manual page lists it.
    pub readers: &'static [Reader],
    /// Whether `SLOT_TYPE_<N>_NAME` overrides the knob for a type of slots.
    pub per_slot_type: bool,
    /// Slotwright's support of the knob.
    pub support: Support,
    /// The section of the manual that names the knob first; empty if none does.
    pub section: &'static str,
    /// The effect of the knob, in one line.
    pub doc: &'static str,
}

impl Knob {
    /// A knob without unit, range and section, which slot types do not override.
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
            ours: None,
            readers,
            per_slot_type: false,
            support,
            section: "",
            doc,
        }
    }

    /// The knob, with a unit.
    pub(super) const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// The knob, with a least number.
    pub(super) const fn at_least(self, least: f64) -> Self {
        Self { range: Some((least, f64::INFINITY)), ..self }
    }

    /// The knob, with a least and a greatest number.
    pub(super) const fn between(self, least: f64, greatest: f64) -> Self {
        Self { range: Some((least, greatest)), ..self }
    }

    /// The knob, with a default that is not in HTCondor's table.
    pub(super) const fn fallback(self, fallback: &'static str) -> Self {
        Self { fallback: Some(fallback), ..self }
    }

    /// The knob, with another default than HTCondor's.
    pub(super) const fn ours(self, ours: &'static str) -> Self {
        Self { ours: Some(ours), ..self }
    }

    /// The knob, with the section of the manual that names it.
    pub(super) const fn section(self, section: &'static str) -> Self {
        Self { section, ..self }
    }

    /// The knob, which `SLOT_TYPE_<N>_NAME` overrides.
    pub(super) const fn per_slot_type(self) -> Self {
        Self { per_slot_type: true, ..self }
    }

    /// Whether the name has a variable part.
    pub fn is_pattern(&self) -> bool {
        self.name.contains('<')
    }

    /// HTCondor's default, unexpanded: the compiled-in one, else the documented one. `None`: unset by default.
    pub fn default(&self) -> Option<&'static str> {
        super::default_of(None, self.name).or(self.fallback)
    }
}

/// The type of a knob's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false, or an expression that evaluates to a boolean without an ad.
    Boolean,
    /// A whole number, or an expression that evaluates to one without an ad.
    Integer,
    /// A number, or an expression that evaluates to one without an ad.
    Real,
    /// A ClassAd expression that is evaluated again and again against ads.
    Expression,
    /// An amount of memory or disk, which may have a unit (`2 GB`) and else counts units of so many bytes; or an expression, as
    /// [`Kind::Expression`], that evaluates to such a count.
    Amount(i64),
    /// Names between commas or white space.
    List,
    /// Shares of a machine's resources: `cpus=2, memory=25%, 50%`.
    Shares,
    /// Commands of a job transform.
    Transform,
    /// Text: a name, a path, an address.
    Text,
}

impl Kind {
    /// Whether a value may be a ClassAd expression that is evaluated against ads.
    pub const fn is_expression(self) -> bool {
        matches!(self, Self::Expression | Self::Amount(_))
    }

    /// The type's name in the documentation and in messages, with its article.
    pub const fn described(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Real => "a number",
            Self::Expression => "an expression",
            Self::Amount(_) => "an amount or expression",
            Self::List => "a list",
            Self::Shares => "shares of resources",
            Self::Transform => "a transform",
            Self::Text => "text",
        }
    }
}

/// Who reads a knob: HTCondor's daemons and tools. In Slotwright, objects stand for some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    /// The startd; its configuration is a NodePolicy's text.
    Startd,
    /// The negotiator; its configuration is the Negotiator object.
    Negotiator,
    /// The accountant; its configuration is in Submitter and GroupQuota objects, and in the Negotiator.
    Accountant,
    /// The schedd: the job queue and its policy.
    Schedd,
    /// `condor_submit`, which fills in defaults of a job.
    Submit,
    /// The defrag daemon.
    Defrag,
    /// The collector, and its clients that look back: HTCondorView, Ganglia.
    Collector,
    /// The master, and the daemons of high availability.
    Master,
    /// No daemon; other values refer to the knob by `$(NAME)`.
    Macros,
}

impl Reader {
    /// The object whose text sets the knob, with its article. `None`: no object of Slotwright does.
    pub const fn place(self) -> Option<&'static str> {
        match self {
            Self::Startd | Self::Collector => Some("a NodePolicy"),
            Self::Negotiator | Self::Accountant => Some("the Negotiator"),
            Self::Schedd | Self::Submit => Some("the SubmitPolicy"),
            Self::Defrag | Self::Master | Self::Macros => None,
        }
    }

    /// The reader's name in the documentation.
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

/// Slotwright's support of a knob.
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
