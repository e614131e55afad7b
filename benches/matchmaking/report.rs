//! The table of the results.

use std::fmt;
use std::fs;

use crate::ours::{How, What};
use crate::{JOBS, SLOTS};

/// The lines of the document between which the table is written.
const BEGIN: &str = "<!-- make bench writes from here -->";
const END: &str = "<!-- to here -->";

/// Which side a line is about, and how this side matches the ads.
#[derive(Clone, Debug)]
pub enum Share {
    Condor(&'static str),
    Ours(How),
}

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    pub share: Share,
    pub what: What,
    /// The seconds of matching one job with all slots, for each answer.
    pub seconds: Vec<f64>,
    pub matches: u64,
}

impl Line {
    pub fn new(share: Share, what: What) -> Self {
        Self { share, what, seconds: Vec::new(), matches: 0 }
    }

    pub fn name(&self) -> &'static str {
        match self.share {
            Share::Condor("parsed") => "libclassad, ads as parsed",
            Share::Condor(_) => "libclassad, Requirements optimized",
            Share::Ours(How::Plain) => "Slotwright, ads as parsed",
            Share::Ours(How::Pair) => "Slotwright, ads made ready, pair by pair",
            Share::Ours(How::All) => "Slotwright, ads made ready, a job with all slots",
        }
    }

    /// The number of pairs per second, by the median of the answers.
    fn rate(&self) -> f64 {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).map_or(f64::NAN, |median| SLOTS as f64 / median)
    }
}

/// All results.
pub struct Report {
    pub rounds: usize,
    pub lines: Vec<Line>,
    /// The microseconds that it takes to parse a machine's ad, and to prepare it.
    pub preparing: [f64; 2],
    pub condor: Option<[f64; 2]>,
}

impl Report {
    /// The higher rate of HTCondor's library.
    fn to_beat(&self, what: What) -> Option<f64> {
        let theirs =
            self.lines.iter().filter(|line| line.what == what && matches!(line.share, Share::Condor(_)));
        theirs.map(Line::rate).max_by(f64::total_cmp)
    }

    /// Replaces the table in a document.
    pub fn write(&self, path: &str) {
        let old = fs::read_to_string(path).unwrap();
        let (head, rest) = old.split_once(BEGIN).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        fs::write(path, format!("{head}{BEGIN}\n\n{self}\n{END}{tail}")).unwrap();
    }
}

/// A number rounded to three significant digits, with commas.
fn rounded(number: f64) -> String {
    let unit = 10_f64.powf(number.log10().floor() - 2.0).max(1.0);
    let digits = format!("{:.0}", (number / unit).round() * unit);
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let id = |name| field(name).unwrap_or_default();
    format!(
        "{}, family {}, model {}, cache {}",
        id("model name"),
        id("cpu family"),
        id("model"),
        id("cache size")
    )
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default();
        writeln!(f, "Processor: {}; {} of them, load average {load}.", processor(), processors())?;
        writeln!(f, "{} rounds, {SLOTS} machine ads, {JOBS} job ads.\n", self.rounds)?;
        for what in [What::Match, What::Ranks] {
            let title = match what {
                What::Match => "Requirements both ways",
                What::Ranks => "the same, and the three ranks of each match",
            };
            writeln!(f, "| {title} | pairs a second | ns a pair | times libclassad |")?;
            writeln!(f, "| --- | ---: | ---: | ---: |")?;
            let to_beat = self.to_beat(what);
            for line in self.lines.iter().filter(|line| line.what == what) {
                let rate = line.rate();
                let times = to_beat.map_or("-".to_owned(), |rival| format!("{:.1}", rate / rival));
                let each = 1e9 / rate;
                let each = if each < 100.0 { format!("{each:.1}") } else { rounded(each) };
                writeln!(f, "| {} | {} | {each} | {times} |", line.name(), rounded(rate))?;
            }
            writeln!(f)?;
        }
        writeln!(f, "| once for each machine ad, microseconds | to parse | to optimize or make ready |")?;
        writeln!(f, "| --- | ---: | ---: |")?;
        if let Some([parsing, optimizing]) = self.condor {
            writeln!(f, "| libclassad | {parsing:.1} | {optimizing:.1} |")?;
        }
        let [parsing, preparing] = self.preparing;
        writeln!(f, "| Slotwright | {parsing:.1} | {preparing:.1} |")
    }
}
