//! A file of rules, as condor_transform_ads takes it: one transform without a configuration.

use classad::{Ad, Env};
use condor_config::{Config, Diagnostic, FileError, Reader as ConfigReader, Scope, Source};

use crate::command::Reader;
use crate::iteration::{self, Passes};
use crate::rules::{Rules, RulesReader};
use crate::transforms::{Applied, PREFIX, WORK, predefine};

/// A file of rules. TRANSFORM with arguments makes several ads of each ad.
///
/// ```
/// use classad::{Ad, Env};
/// use condor_config::{Host, Source};
/// use transform::RulesFile;
///
/// let mut findings = Vec::new();
/// let text = "SET Size $(size)\nTRANSFORM size in (1, 2)\n";
/// let rules = RulesFile::read(&Source::new("rules", text), Host::none(), None, &mut findings);
/// assert!(findings.is_empty(), "{findings:?}");
/// let ads = rules.apply(&Ad::new(), &Env::at(0)).map_err(|(_, error)| error.to_string())?;
/// let printed: Vec<String> = ads.iter().map(|applied| applied.ad.to_long()).collect();
/// assert_eq!(printed, ["Size = 1\n", "Size = 2\n"]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct RulesFile {
    config: Config,
    rules: Rules,
    /// `None`: one pass.
    passes: Option<Passes>,
}

/// The work that [`RulesFile::apply_once`] may take, in bytes looked at or moved: about a millisecond.
const WORK_AT_ONCE: u64 = 100_000;

/// A function that reads the items of `TRANSFORM ... from FILE`.
pub type Files<'f> = &'f dyn Fn(&str) -> Result<String, FileError>;

impl RulesFile {
    /// Reads a file of rules. Errors and warnings are added to `findings`; rules with errors are not fit to be applied.
    ///
    /// `host` is what the rules may know of the machine. `files` reads the items of `TRANSFORM ... from FILE`; without it, such
    /// a statement is an error.
    pub fn read(
        source: &Source,
        host: condor_config::Host,
        files: Option<Files<'_>>,
        findings: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut config = ConfigReader::new(host).read(&[]).config;
        let lines = config.lines_of(source);
        let mut reader = RulesReader { config: &config, commands: Reader::new(), findings };
        let rules = reader.read(&source.name, false, &lines);
        let passes = rules
            .iteration
            .as_ref()
            .and_then(|arguments| iteration::read(&config, arguments, &lines, files, findings));
        Self { config, rules, passes }
    }

    /// Applies the rules to an ad. If the ad does not meet the REQUIREMENTS, it comes back unchanged.
    ///
    /// There is one ad for each pass that TRANSFORM asks for, else one. The error: why a pass failed, and the ads of the passes
    /// before it.
    pub fn apply(&self, ad: &Ad, env: &Env) -> Result<Vec<Applied>, (Vec<Applied>, Diagnostic)> {
        let mut scope = Scope::new(&self.config, PREFIX, ad.clone(), env.clone(), WORK);
        let mut done = Vec::new();
        let Some(passes) = &self.passes else {
            predefine(&mut scope);
            return match self.once(&mut scope) {
                Ok(applied) => Ok(vec![applied]),
                Err(error) => Err((done, error)),
            };
        };
        for pass in passes.iter() {
            scope.replace_ad(ad.clone());
            if let Err(error) = pass.enter(&mut scope) {
                return Err((done, error));
            }
            match self.once(&mut scope) {
                Ok(applied) => done.push(applied),
                Err(error) => return Err((done, error)),
            }
        }
        Ok(done)
    }

    /// Applies the rules to one ad, without TRANSFORM's passes and within about a millisecond: anybody may have written
    /// rules that stand in a job's ad, and everything else waits meanwhile. If the ad does not meet the REQUIREMENTS,
    /// it comes back unchanged, and `names` is empty.
    ///
    /// # Errors
    /// Why the rules cannot be carried out.
    pub fn apply_once(&self, ad: Ad, env: &Env) -> Result<Applied, Diagnostic> {
        let mut scope = Scope::new(&self.config, PREFIX, ad, env.clone(), WORK_AT_ONCE);
        predefine(&mut scope);
        self.once(&mut scope)
    }

    fn once(&self, scope: &mut Scope<'_>) -> Result<Applied, Diagnostic> {
        let mut names = Vec::new();
        if self.rules.matches(scope) {
            self.rules.run(scope)?;
            names.push(self.rules.name.clone());
        }
        let (warnings, written) = (scope.take_warnings(), scope.take_written());
        Ok(Applied { ad: scope.replace_ad(Ad::new()), names, written, warnings })
    }
}
