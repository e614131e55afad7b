//! A submit file, read from the top to the bottom: assignments, conditionals, and queue statements that make procs.

use classad::{Ad, Env};
use condor_config::{Config, Diagnostic, Position, Reader, Scope, Script, Severity, Source, Text};

use crate::items::{self, option};
use crate::job::{Job, Memory, Program};
use crate::queue::{self, Queue, Reading};
use crate::unused;
use crate::world::World;

/// The most procs of a submit file.
const MAX_PROCS: usize = 100_000;
/// The work that a submit file may take: bytes that are looked at or moved.
const WORK: u64 = 2_000_000_000;

/// The command line's additions to a submit file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Lines that are read before each queue statement: `-append`.
    pub appended: Vec<String>,
    /// The queue statement, if the file has none: `-queue`, with the word `queue`.
    pub queue: Option<String>,
    /// Variables that are set before the file is read: `NAME=VALUE`.
    pub assigned: Vec<(String, String)>,
}

/// The result of reading a submit file.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    /// The cluster. `None`: there is an error, or no queue statement has an item.
    pub cluster: Option<Cluster>,
    /// Errors and warnings in the order in which they were found.
    pub findings: Vec<Diagnostic>,
}

impl Submission {
    /// The errors among the findings.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }
}

/// A cluster of jobs.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The ad that all procs share.
    pub ad: Ad,
    /// The procs, at least one, in the order of their numbers.
    pub procs: Vec<Proc>,
    /// The commands and variables that the file gives, in the order of their names. Queue statements give commands, too.
    pub written: Vec<WrittenCommand>,
    /// Where the first queue statement stands, or the file ends that has none.
    pub queued: Position,
    /// The time and other circumstances under which the ads are evaluated.
    pub env: Env,
}

/// A proc of a cluster.
#[derive(Clone, Debug)]
pub struct Proc {
    /// The attributes that the proc has besides those of the cluster.
    pub ad: Ad,
    /// `$(Row)`: the index of the item.
    pub row: usize,
    /// `$(Step)`: the proc's number among those of the item.
    pub step: usize,
    /// The program that the proc runs.
    pub program: Program,
}

/// A command or variable, and where its value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCommand {
    /// The name as it was first written. The name of an attribute starts with `MY.`.
    pub name: String,
    /// Where the value stands.
    pub position: Position,
}

/// A line that is a command of the script.
enum Line {
    /// A queue statement: where its arguments start, and its number among the statements.
    Queue { arguments: usize, number: usize },
}

/// Reads a submit file and makes the ads of its jobs.
///
/// ```
/// use condor_config::Source;
/// use submit::{Options, World, submit};
///
/// let text = "executable = /bin/echo\narguments = $(word) $(Process)\nqueue word in (a, b)\n";
/// let submission = submit(&Source::new("hello.sub", text), &Options::default(), &World::none());
/// assert!(submission.findings.is_empty(), "{:?}", submission.findings);
/// let cluster = submission.cluster.ok_or("no jobs")?;
/// assert_eq!(cluster.ad.get("Args").map(ToString::to_string).as_deref(), Some("\"a 0\""));
/// assert_eq!(cluster.procs[1].ad.to_long(), "Args = \"b 1\"\nJobStatus = 1\nProcId = 1\n");
/// # Ok::<(), &str>(())
/// ```
pub fn submit(source: &Source, options: &Options, world: &World<'_>) -> Submission {
    let mut config = Reader::new(world.host.clone()).read(&[]).config;
    let (lines, lists) = without_lists(config.lines_of(source));
    let appended = sources(&mut config, "-append", &options.appended);
    let assigned: Vec<String> =
        options.assigned.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let assigned = sources(&mut config, "command line", &assigned);
    let statement = options.queue.iter().cloned().collect::<Vec<_>>();
    let statement = sources(&mut config, "-queue", &statement).pop();
    let mut findings = Vec::new();
    let of_file = script(&config, &lines, &mut findings);
    let appended = script(&config, &appended, &mut findings);
    let assigned = script(&config, &assigned, &mut findings);
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Submission { cluster: None, findings };
    }
    let env = Env::at(world.host.now);
    let mut scope = Scope::of_submit_file(&config, env.clone(), WORK);
    predefine(&mut scope, source, world);
    if let Some(line) = behind_queue(&lines) {
        let message = "stands behind the last queue statement, so that no job has it: put it before";
        findings.push(scope.error(line, 0, message));
        return Submission { cluster: None, findings };
    }
    let mut run = Run {
        world,
        env: &env,
        lists,
        appended: &appended,
        statement: statement.as_ref(),
        memory: Memory::default(),
        cluster: None,
        procs: Vec::new(),
        first: None,
        statements: 0,
        queued: None,
        written: Vec::new(),
        findings: Vec::new(),
    };
    let refused = |scope: &mut Scope<'_>, line: &Text, _: &Line| {
        Err(scope.error(line, 0, "a queue statement cannot stand here"))
    };
    let outcome = assigned.run(&mut scope, refused).and_then(|()| {
        of_file.run(&mut scope, |scope, line, Line::Queue { arguments, number }| {
            run.statement(scope, line, *arguments, *number)
        })
    });
    // A file without a queue statement has one proc, or what -queue says.
    let end = lines.last().cloned().unwrap_or_default();
    let outcome = outcome.and_then(|()| if run.statements == 0 { run.end(&mut scope, &end) } else { Ok(()) });
    findings.extend(scope.take_warnings());
    findings.append(&mut run.findings);
    match outcome {
        Ok(()) => run.finish(&scope, &end, findings),
        Err(mut error) => {
            error.message.push_str(unused::advice_on_condition(&error.message));
            findings.push(error);
            Submission { cluster: None, findings }
        }
    }
}

/// Reads the lines of a submit file, in which each queue statement has a number.
fn script(config: &Config, lines: &[Text], findings: &mut Vec<Diagnostic>) -> Script<Line> {
    let mut number = 0;
    let command = |line: &Text| {
        let text = line.as_str();
        let arguments = queue::arguments(&text).ok_or_else(|| (0, no_command(&text)))?;
        number += 1;
        Ok(Line::Queue { arguments, number: number - 1 })
    };
    Script::read(config, lines, command, findings)
}

/// The first line behind the last queue statement. Conditionals may close there.
fn behind_queue(lines: &[Text]) -> Option<&Text> {
    let last = lines.iter().rposition(|line| queue::arguments(&line.as_str()).is_some())?;
    lines.iter().skip(last + 1).find(|line| {
        let text = line.as_str();
        let first = text.split_ascii_whitespace().next();
        first.is_some_and(|first| {
            let closes = ["if", "elif", "else", "endif"].iter().any(|word| first.eq_ignore_ascii_case(word));
            !closes && !first.starts_with('#')
        })
    })
}

fn no_command(line: &str) -> String {
    let first = line.split_ascii_whitespace().next().unwrap_or_default();
    if ["job", "parent", "subdag", "splice", "final", "vars"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
    {
        return "this is a line of a DAG: DAGs do not exist here".to_owned();
    }
    "expected NAME = VALUE, if, or queue".to_owned()
}

/// The lines of texts that are no files.
fn sources(config: &mut Config, name: &str, texts: &[String]) -> Vec<Text> {
    texts.iter().flat_map(|text| config.lines_of(&Source::new(name, text.as_str()))).collect()
}

/// Takes the lists of items out that stand behind queue statements: one list for each queue statement.
fn without_lists(lines: Vec<Text>) -> (Vec<Text>, Vec<Vec<Text>>) {
    let (mut kept, mut lists) = (Vec::new(), Vec::new());
    let mut lines = lines.into_iter();
    while let Some(line) = lines.next() {
        let text = line.as_str();
        if let Some(arguments) = queue::arguments(&text) {
            let mut list = Vec::new();
            if queue::is_open(text.get(arguments..).unwrap_or_default()) {
                // The line with the closing parenthesis is kept in the list: without it, the list is not closed.
                for item in lines.by_ref() {
                    let closes = item.as_str().starts_with(')');
                    list.push(item);
                    if closes {
                        break;
                    }
                }
            }
            lists.push(list);
        }
        drop(text);
        kept.push(line);
    }
    (kept, lists)
}

fn predefine(scope: &mut Scope<'_>, source: &Source, world: &World<'_>) {
    let cluster = world.cluster.to_string();
    let (year, month, day) = &world.date;
    let now = world.host.now.to_string();
    for (name, value) in [
        ("ARCH", world.arch.as_str()),
        ("OPSYS", &world.op_sys),
        ("IsLinux", if world.op_sys == "LINUX" { "true" } else { "false" }),
        ("IsWindows", if world.op_sys == "WINDOWS" { "true" } else { "false" }),
        ("Cluster", &cluster),
        ("ClusterId", &cluster),
        ("JobId", "$(ClusterId).$(ProcId)"),
        ("JobListId", "$(ClusterId)"),
        ("Request_CPUs", "$(RequestCPUs)"),
        ("Request_Memory", "$(RequestMemory)"),
        ("VM_VCPUS", "$(Request_CPUs)"),
        ("VM_MEMORY", "$(Request_Memory)"),
        ("Year", year),
        ("Month", month),
        ("Day", day),
        ("SUBMIT_TIME", &now),
        ("SUBMIT_FILE", &source.name),
        ("Node", ""),
        ("TaskId", "0"),
    ] {
        scope.predefine(name, value);
    }
    number(scope, 0, 0, 0);
    for (name, value) in &world.host.predefined {
        scope.predefine(name, value.as_str());
    }
}

/// Sets the variables that say which proc it is.
fn number(scope: &mut Scope<'_>, proc: usize, row: usize, step: usize) {
    for (name, number) in
        [("Process", proc), ("ProcId", proc), ("Row", row), ("ItemIndex", row), ("Step", step)]
    {
        scope.predefine(name, number.to_string());
    }
}

/// The place of a proc in its queue statement.
#[derive(Clone, Copy)]
struct ItemPlace<'p> {
    row: usize,
    step: usize,
    /// The variables of the statement, and their values.
    items: &'p [(String, String)],
    /// Whether each command has the same value for all procs of the statement.
    same: bool,
}

/// The state of a run of a submit file.
struct Run<'r> {
    world: &'r World<'r>,
    env: &'r Env,
    lists: Vec<Vec<Text>>,
    appended: &'r Script<Line>,
    /// The statement that the command line gives.
    statement: Option<&'r Text>,
    memory: Memory,
    cluster: Option<Ad>,
    procs: Vec<Proc>,
    first: Option<Program>,
    /// How many queue statements were carried out.
    statements: usize,
    /// Where the first of these stands.
    queued: Option<Position>,
    /// The commands among the variables of queue statements.
    written: Vec<WrittenCommand>,
    findings: Vec<Diagnostic>,
}

impl Run<'_> {
    /// The submission of a file whose statements were all carried out. `end` is the file's last line.
    fn finish(self, scope: &Scope<'_>, end: &Text, mut findings: Vec<Diagnostic>) -> Submission {
        if self.cluster.is_some() {
            findings.extend(unused::warnings(scope));
        }
        findings.sort_by(|one, other| one.position.cmp(&other.position));
        let written = unused::written(scope, self.written);
        let queued = self.queued.unwrap_or_else(|| scope.config().position_at(end, 0));
        let env = self.env.clone();
        let cluster = self.cluster.map(|ad| Cluster { ad, procs: self.procs, written, queued, env });
        Submission { cluster, findings }
    }

    /// Carries out a queue statement of the file.
    fn statement(
        &mut self,
        scope: &mut Scope<'_>,
        line: &Text,
        at: usize,
        number: usize,
    ) -> Result<(), Diagnostic> {
        if self.statement.is_some() {
            return Err(scope.error(line, 0, "the file has a queue statement: leave -queue out"));
        }
        if self.statements == 1 {
            let message =
                "a second queue statement, which HTCondor refuses by default: use one statement with items";
            scope.warn(line, 0, message);
        }
        let list = std::mem::take(self.lists.get_mut(number).unwrap_or(&mut Vec::new()));
        self.queue(scope, line, &line.slice(at, line.len()), &list)
    }

    /// Carries out the statement of the command line, or an empty one.
    fn end(&mut self, scope: &mut Scope<'_>, end: &Text) -> Result<(), Diagnostic> {
        let Some(line) = self.statement else { return self.queue(scope, end, &Text::default(), &[]) };
        let text = line.as_str();
        let arguments = queue::arguments(&text).unwrap_or_default();
        self.queue(scope, line, &line.slice(arguments, line.len()), &[])
    }

    fn queue(
        &mut self,
        scope: &mut Scope<'_>,
        line: &Text,
        arguments: &Text,
        list: &[Text],
    ) -> Result<(), Diagnostic> {
        self.statements += 1;
        self.queued.get_or_insert_with(|| scope.config().position_at(line, 0));
        self.appended
            .run(scope, |scope, line, _| Err(scope.error(line, 0, "use -queue for a queue statement")))?;
        let expanded = scope.expand(arguments).map_err(Diagnostic::from)?;
        let reading = Reading { integer: &|text| scope.integer(text), boolean: &|text| scope.boolean(text) };
        let queue = queue::read(&expanded.as_str(), &reading)
            .map_err(|message| scope.error(line, 0, format!("queue: {message}")))?;
        for option in &queue.ignored {
            let known = "header, skip, trim, comma_sep, sep, csv and standard";
            scope.warn(
                line,
                0,
                format!("queue: '{option}' is no option of table, and is ignored: there are {known}"),
            );
        }
        let items = items::items(scope, self.world, &queue, line, list)?;
        let rows: Vec<(usize, &items::Item)> = items
            .items
            .iter()
            .enumerate()
            .filter(|(index, _)| queue.slice.has(*index, items.items.len()))
            .collect();
        let procs = rows.len().saturating_mul(queue.count).saturating_add(self.procs.len());
        if procs > MAX_PROCS {
            return Err(scope.error(line, 0, format!("queue: {procs} procs are more than {MAX_PROCS}")));
        }
        if option(scope, "SubmitWarnEmptyFields", "submit_warn_empty_fields", true) {
            for gap in items.gaps(&rows) {
                scope.warn(line, 0, format!("queue: {gap}"));
            }
        }
        let same = self.cluster.is_some() || !rows.is_empty();
        let same = same && !unused::vary(scope, &items.variables);
        let mut values = Vec::new();
        for (row, item) in rows {
            values = item.enter(scope, &items.variables, queue.table, &values, line)?;
            for step in 0..queue.count {
                self.proc(scope, line, ItemPlace { row, step, items: &values, same }).map_err(
                    |mut error| {
                        error.message.push_str(&items::row(row, &values, &error.message));
                        error
                    },
                )?;
            }
        }
        self.leave(scope, line, &queue, &items.variables);
        Ok(())
    }

    /// Forgets the variables of a queue statement, but keeps the names of those that are commands.
    fn leave(&mut self, scope: &mut Scope<'_>, line: &Text, queue: &Queue, variables: &[String]) {
        let has_items = queue.source != queue::Items::None && !self.procs.is_empty();
        for variable in variables {
            if has_items && !scope.is_used(variable) {
                scope.warn(line, 0, format!("queue: the variable {variable} is not used: is it a typo?"));
            }
            if has_items && unused::is_command(variable) {
                let position = scope.config().position_at(line, 0);
                self.written.push(WrittenCommand { name: variable.clone(), position });
            }
            scope.forget_variable(variable);
        }
    }

    /// Makes the ad of a proc.
    fn proc(&mut self, scope: &mut Scope<'_>, line: &Text, place: ItemPlace<'_>) -> Result<(), Diagnostic> {
        let ItemPlace { row, step, items, same } = place;
        let id = self.procs.len();
        number(scope, id, row, step);
        // Each proc has random values of its own.
        scope.begin_draw(u64::try_from(id).unwrap_or(u64::MAX));
        let id = i64::try_from(id).unwrap_or(i64::MAX);
        if let (true, Some(first)) = (same && self.statements == 1, &self.first) {
            let status = self.procs.first().and_then(|proc| proc.ad.get("JobStatus")).cloned();
            let mut ad = Ad::new().with("ProcId", id);
            ad.extend(status.map(|status| ("JobStatus", status)));
            let program = Program { items: items.to_vec(), ..first.clone() };
            self.procs.push(Proc { ad, row, step, program });
            return Ok(());
        }
        let mut job = Job {
            scope,
            world: self.world,
            env: self.env,
            memory: &mut self.memory,
            cluster: self.cluster.as_ref(),
            first: self.first.as_ref(),
            own: Ad::new(),
            proc: id,
            row,
            program: Program { items: items.to_vec(), ..Program::default() },
            statement: line,
            warnings: &mut self.findings,
            directory: String::new(),
        };
        job.make()?;
        let (mut ad, program) = (job.own, job.program);
        if self.cluster.is_none() {
            ad.remove("ProcId");
            self.first = Some(program.clone());
            self.cluster = Some(std::mem::replace(&mut ad, Ad::new().with("ProcId", id)));
        }
        if !ad.contains("JobStatus")
            && let Some(status) = self.cluster.as_ref().and_then(|cluster| cluster.get("JobStatus"))
        {
            let status = status.clone();
            ad.insert("JobStatus", status);
        }
        self.procs.push(Proc { ad, row, step, program });
        Ok(())
    }
}
