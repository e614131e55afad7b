//! Job transforms: the transforms that a configuration names, in their order.

use std::collections::BTreeSet;
use std::sync::Arc;

use classad::{Ad, Env, Name};
use condor_config::{Config, Diagnostic, Host, Reader as ConfigReader, Scope, Severity, Source};

use crate::command::Reader;
use crate::old_syntax;
use crate::rules::{Rules, RulesReader};

/// The work that the rules of a file may take with one ad, in bytes looked at or moved: about half a second.
pub(crate) const WORK: u64 = 50_000_000;
/// The same for all transforms of a configuration together. Somebody waits for each job that is submitted: about 50 ms.
const JOB_WORK: u64 = 5_000_000;
/// The prefix under which a transform's own variables are looked up first.
pub(crate) const PREFIX: &str = "XFORM";

/// The job transforms of a configuration: `JOB_TRANSFORM_NAMES`, and `JOB_TRANSFORM_<name>` of each name.
///
/// ```
/// use classad::{Ad, Env};
/// use condor_config::Source;
/// use transform::Transforms;
///
/// let text = "\
/// JOB_TRANSFORM_NAMES = Memory
/// JOB_TRANSFORM_Memory @=end
///    REQUIREMENTS RequestMemory < 512
///    COPY RequestMemory AskedMemory
///    SET RequestMemory 512
/// @end
/// ";
/// let transforms = Transforms::parse(&Source::new("policy", text)).map_err(|errors| errors[0].to_string())?;
/// let applied = transforms.apply(Ad::new().with("RequestMemory", 100), &Env::at(0)).map_err(|error| error.to_string())?;
/// assert_eq!(applied.names, ["Memory"]);
/// assert_eq!(applied.ad.to_long(), "AskedMemory = 100\nRequestMemory = 512\n");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Transforms {
    config: Arc<Config>,
    rules: Vec<Rules>,
}

/// A job ad after its transforms.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The ad.
    pub ad: Ad,
    /// The transforms that were for the ad, in the order in which they were applied.
    pub names: Vec<String>,
    /// The attributes that the transforms wrote, also those that were so before.
    pub written: BTreeSet<Name>,
    /// Warnings of commands that do not do what the text seems to say, such as a SET whose value is no expression.
    pub warnings: Vec<Diagnostic>,
}

impl Transforms {
    /// Reads the transforms of a configuration text. The error: all errors of the text.
    pub fn parse(source: &Source) -> Result<Self, Vec<Diagnostic>> {
        let reading =
            ConfigReader::new(Host::none()).subsystem("SCHEDD").guarded().read(std::slice::from_ref(source));
        let mut findings: Vec<Diagnostic> = reading.errors().cloned().collect();
        let transforms = Self::of(Arc::new(reading.config), &mut findings);
        findings.retain(|finding| finding.severity == Severity::Error);
        if findings.is_empty() { Ok(transforms) } else { Err(findings) }
    }

    /// Reads the transforms of a configuration. Errors and warnings are added to `findings`. A transform with an error is not
    /// fit to be applied.
    ///
    /// As in HTCondor, a name without `JOB_TRANSFORM_<name>` is skipped; it is warned of.
    pub fn of(config: Arc<Config>, findings: &mut Vec<Diagnostic>) -> Self {
        let mut reader = RulesReader { config: &config, commands: Reader::new(), findings };
        let rules = names(&config, "JOB_TRANSFORM_NAMES", reader.findings)
            .iter()
            .filter_map(|name| read(&mut reader, name))
            .collect();
        Self { config, rules }
    }

    /// The names of the transforms, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rules| rules.name.as_str())
    }

    /// Whether there are no transforms.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Applies all transforms whose REQUIREMENTS are true of the ad, one after the other.
    ///
    /// A variable that one transform sets is there for the next. The error is why a transform cannot be carried out; HTCondor
    /// then refuses the job.
    pub fn apply(&self, ad: Ad, env: &Env) -> Result<Applied, Diagnostic> {
        let mut scope = Scope::new(&self.config, PREFIX, ad, env.clone(), JOB_WORK);
        predefine(&mut scope);
        let mut names = Vec::new();
        for rules in &self.rules {
            if rules.matches(&scope) {
                rules.run(&mut scope)?;
                names.push(rules.name.clone());
            }
        }
        let (warnings, written) = (scope.take_warnings(), scope.take_written());
        Ok(Applied { ad: scope.replace_ad(Ad::new()), names, written, warnings })
    }
}

/// Sets the variables that HTCondor sets for each job.
pub(crate) fn predefine(scope: &mut Scope<'_>) {
    let facts = [
        ("IsClusterAd", "0"),
        ("IsLinux", "1"),
        ("IsWindows", "0"),
        ("Iterating", "0"),
        ("LateMaterialization", "0"),
    ];
    for (name, value) in facts {
        scope.predefine(name, value);
    }
    // HTCondor detects these two unless the configuration sets them.
    for (name, value) in [("ARCH", "X86_64"), ("OPSYS", "LINUX")] {
        if scope.config().definition(name).is_none() {
            scope.predefine(name, value);
        }
    }
}

/// The names in a list knob, without the name NAMES, which would mean the list itself.
pub(crate) fn names(config: &Config, knob: &str, findings: &mut Vec<Diagnostic>) -> Vec<String> {
    match config.list(knob) {
        Ok(names) => names.into_iter().filter(|name| !name.eq_ignore_ascii_case("NAMES")).collect(),
        Err(error) => {
            findings.push(error.into());
            Vec::new()
        }
    }
}

/// A finding about a list knob.
pub(crate) fn about(config: &Config, knob: &str, severity: Severity, message: String) -> Diagnostic {
    let text = config.text(knob).ok().flatten().unwrap_or_default();
    Diagnostic { severity, position: config.position_at(&text, 0), message }
}

fn read(reader: &mut RulesReader<'_>, name: &str) -> Option<Rules> {
    let (config, knob) = (reader.config, format!("JOB_TRANSFORM_{name}"));
    let lines = config.lines(&knob).unwrap_or_default();
    let Some(first) = lines.iter().find(|line| !line.is_empty()) else {
        let message =
            format!("JOB_TRANSFORM_NAMES names {name}, but {knob} is not defined: {name} does nothing");
        reader.findings.push(about(config, "JOB_TRANSFORM_NAMES", Severity::Warning, message));
        return None;
    };
    if first.as_str().starts_with('[') {
        let message = old_syntax::refusal(&knob, &config.value(&knob).ok().flatten().unwrap_or_default());
        let position = config.position_at(first, 0);
        reader.findings.push(Diagnostic { severity: Severity::Error, position, message });
        return None;
    }
    let rules = reader.read(name, true, &lines);
    if let Some(arguments) = &rules.iteration {
        let message =
            "TRANSFORM makes no more than one job of a job here: its arguments do nothing".to_owned();
        let position = config.position_at(arguments, 0);
        reader.findings.push(Diagnostic { severity: Severity::Warning, position, message });
    }
    Some(rules)
}
