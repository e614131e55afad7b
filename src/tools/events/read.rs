//! Reads a job event log: which procs it has, and how each stands.

use std::collections::BTreeMap;

use super::RUN;

/// How a proc stands, by its last event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// The log has no event of the proc, or only events that do not tell how the proc stands.
    #[default]
    Unknown,
    /// Submitted, evicted or released.
    Idle,
    /// The program runs.
    Running,
    /// The program stands still.
    Suspended,
    /// Held.
    Held,
    /// Terminated: the proc is done.
    Terminated,
    /// Aborted: the proc was removed.
    Aborted,
}

/// A proc, as far as a log tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// How the proc stands.
    pub standing: Standing,
    /// The host of the event 000, where the job was submitted to.
    pub host: Option<String>,
    /// The number of the last run in the log, from 1; 0 if there is none.
    pub run: u32,
    /// Reason, code and subcode of the last event 012.
    pub hold: Option<(String, i64, i64)>,
}

impl Log {
    /// Whether the proc has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.standing, Standing::Terminated | Standing::Aborted)
    }
}

/// An event as it stands in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'t> {
    /// The event's number.
    pub number: u32,
    /// ClusterId and ProcId.
    pub id: (i64, u32),
    /// The head: number, ids, time, and the first line.
    pub head: &'t str,
    /// The lines behind the head.
    pub lines: Vec<&'t str>,
}

impl<'t> Found<'t> {
    /// The events of a log, in their order. Other lines are left out: a log may have been cut, or another program may write to the
    /// log.
    pub fn all(text: &'t str) -> Vec<Self> {
        let mut all = Vec::new();
        let mut event: Vec<&str> = Vec::new();
        for line in text.lines() {
            if line.trim_end() == "..." {
                all.extend(Self::of(std::mem::take(&mut event)));
            } else if head(line).is_some() {
                // An event without its end is given up when the next event begins.
                event = vec![line];
            } else if !event.is_empty() {
                event.push(line);
            }
        }
        all
    }

    fn of(lines: Vec<&'t str>) -> Option<Self> {
        let (first, rest) = lines.split_first()?;
        let (number, id) = head(first)?;
        Some(Self { number, id, head: first, lines: rest.to_vec() })
    }

    /// The text behind `start` in the head.
    pub fn behind(&self, start: &str) -> Option<&'t str> {
        self.head.split_once(start).map(|(_, rest)| rest.trim())
    }

    /// The text behind `start` in the first line that begins with `start`, blanks aside.
    fn line(&self, start: &str) -> Option<&'t str> {
        self.lines.iter().find_map(|line| line.trim().strip_prefix(start)).map(str::trim)
    }

    /// Changes what is known of the proc by the event.
    fn note(&self, log: &mut Log) {
        let running = matches!(log.standing, Standing::Running | Standing::Suspended);
        log.standing = match self.number {
            0 => {
                log.host = self.behind("from host:").map(str::to_owned);
                Standing::Idle
            }
            1 => {
                let number = self.line(RUN).and_then(|rest| rest.trim_start_matches(['=', ' ']).parse().ok());
                log.run = number.unwrap_or(log.run.saturating_add(1));
                Standing::Running
            }
            4 | 13 => Standing::Idle,
            5 => Standing::Terminated,
            9 => Standing::Aborted,
            10 if running => Standing::Suspended,
            11 if running => Standing::Running,
            12 => {
                let reason = self.lines.first().map(|line| line.trim().to_owned()).unwrap_or_default();
                let codes = self.line("Code ").and_then(|rest| rest.split_once(" Subcode "));
                let number = |text: &str| text.trim().parse().unwrap_or(0);
                let (code, subcode) = codes.map_or((0, 0), |(code, sub)| (number(code), number(sub)));
                log.hold = Some((reason, code, subcode));
                Standing::Held
            }
            _ => log.standing,
        };
    }
}

/// The number of an event and the proc's ids, if the line is the first one of an event: `001 (012.003.000) ...`.
fn head(line: &str) -> Option<(u32, (i64, u32))> {
    let (number, rest) = line.split_once(" (")?;
    let (ids, _) = rest.split_once(") ")?;
    let mut ids = ids.split('.');
    let (cluster, proc, _) = (ids.next()?, ids.next()?, ids.next()?);
    if number.len() != 3 || ids.next().is_some() {
        return None;
    }
    Some((number.parse().ok()?, (cluster.parse().ok()?, proc.parse().ok()?)))
}

impl Log {
    /// The procs of a log, by ClusterId and ProcId.
    pub fn read(text: &str) -> BTreeMap<(i64, u32), Self> {
        let mut procs: BTreeMap<(i64, u32), Self> = BTreeMap::new();
        for event in Found::all(text) {
            event.note(procs.entry(event.id).or_default());
        }
        procs
    }
}
