//! The text of a history, ad by ad.

use classad::{Ad, Env};

use super::{Request, Shown};
use crate::column::{Absent, Column, Show};
use crate::conversion::whole;
use crate::long::{self, Attributes};
use crate::queue::{cells, job_id, valued};
use crate::screen::{Screen, Width, span};
use crate::table::{Apart, Table};
use crate::xml;

/// The most characters of a line of a table that goes to a pipe, as of HTCondor's tool.
const PIPED: usize = 1024;
/// The width for which HTCondor's tool prints a table of another layout.
const SHORT: usize = 80;
const SHORT_HEAD: &str = " ID      OWNER            SUBMITTED     RUN_TIME ST   COMPLETED CMD            \n";

/// Makes the text of a history. Call [`Printer::head`] first and [`Printer::foot`] last.
#[derive(Debug)]
pub struct Printer<'r> {
    request: &'r Request,
    screen: &'r Screen,
    env: Env,
    style: Style,
    /// Whether an ad was printed.
    begun: bool,
}

#[derive(Debug)]
enum Style {
    Table(Table),
    /// The table of `-wide:80`.
    Short,
    Whole,
}

impl<'r> Printer<'r> {
    pub(super) fn new(request: &'r Request, screen: &'r Screen) -> Self {
        let style = match request.form {
            Shown::Table => table(request, screen),
            Shown::Columns => Style::Table(request.columns.table()),
            _ => Style::Whole,
        };
        Self { request, screen, env: screen.env(), style, begun: false }
    }

    /// The text before the first ad.
    pub fn head(&self) -> String {
        match (&self.style, self.request.form) {
            (Style::Table(_), Shown::Columns) if !self.request.columns.has_headings() => String::new(),
            (Style::Table(table), _) => table.headings(),
            (Style::Short, _) => SHORT_HEAD.to_owned(),
            (Style::Whole, Shown::Xml) => format!("{}\n", xml::HEAD),
            (Style::Whole, Shown::Json) => "[\n".to_owned(),
            (Style::Whole, _) => String::new(),
        }
    }

    /// Appends an ad.
    pub fn ad(&mut self, ad: &Ad, out: &mut String) {
        match &mut self.style {
            Style::Table(table) => {
                let row = table.row(ad, self.screen, &self.env);
                table.print(&row, out);
            }
            Style::Short => short(ad, self.screen, &self.env, out),
            Style::Whole => self.whole(ad, out),
        }
        self.begun = true;
    }

    fn whole(&self, ad: &Ad, out: &mut String) {
        let attributes = self.attributes(ad);
        match self.request.form {
            Shown::Xml => {
                xml::ad(&attributes, out);
                out.push('\n');
            }
            Shown::Json => {
                if self.begun {
                    out.push_str(",\n");
                }
                long::json(&attributes, out, 0);
                out.push('\n');
            }
            Shown::JsonLines => {
                out.push_str(&long::json_line(&attributes));
                out.push('\n');
            }
            _ => long::long(&attributes, out),
        }
    }

    /// The attributes that are shown, by the names that the user wrote.
    fn attributes<'a>(&'a self, ad: &'a Ad) -> Attributes<'a> {
        if self.request.only.is_empty() {
            return long::all(ad);
        }
        let found = |name: &'a classad::Name| Some((name, ad.get_name(name)?));
        self.request.only.iter().filter_map(found).collect()
    }

    /// The text in the place of an ad that cannot be read.
    pub fn malformed() -> &'static str {
        "\t*** Warning: Bad history file; skipping malformed ad(s)\n"
    }

    /// The text behind the last ad.
    pub fn foot(&self) -> String {
        match self.request.form {
            Shown::Xml => format!("{}\n", xml::TAIL),
            Shown::Json => "]\n".to_owned(),
            _ => String::new(),
        }
    }
}

fn table(request: &Request, screen: &Screen) -> Style {
    let longest = match (request.width, screen.width) {
        (Some(Width::Columns(SHORT)), _) => return Style::Short,
        (Some(Width::Wide), _) => None,
        (Some(Width::Columns(columns)), _) => Some(columns),
        (_, Width::Columns(columns)) => Some(columns.saturating_sub(1)),
        _ => Some(PIPED),
    };
    let made = |heading, make| Column::new(heading, Show::Made(make));
    let unknown = Absent::Unknown;
    let run_time = valued("  RUN_TIME  ", "RemoteWallClockTime ?: (RemoteUserCpu ?: 0)", "%T");
    Style::Table(Table {
        columns: vec![
            made(" ID         ", |ad, _, env| job_id(ad, env)),
            made("OWNER", cells::owner).left(14).or(unknown),
            made("  SUBMITTED", cells::queued).right(11).or(unknown),
            run_time.right(12),
            made("ST", cells::state),
            made("  COMPLETED", cells::completed).right(11),
            made("CMD", cells::program).last(),
        ],
        apart: Apart::SPACES,
        longest,
    })
}

/// A line of the table of `-wide:80`.
fn short(ad: &Ad, screen: &Screen, env: &Env, out: &mut String) {
    let line = short_line(ad, screen, env).unwrap_or_else(|| " --- ???? --- ".to_owned());
    out.push_str(&line);
    out.push('\n');
}

fn short_line(ad: &Ad, screen: &Screen, env: &Env) -> Option<String> {
    let number = |name: &str| whole(&ad.eval_attr(name, None, env));
    let (cluster, proc, queued, done) =
        (number("ClusterId")?, number("ProcId")?, number("QDate")?, number("CompletionDate")?);
    let status = number("JobStatus")?;
    let (_, _) = (number("JobPrio")?, number("ImageSize")?);
    let (owner, cmd) = (cells::text(ad, "Owner", env)?, cells::text(ad, "Cmd", env)?);
    let ran = number("RemoteWallClockTime").or_else(|| number("RemoteUserCpu")).unwrap_or(0);
    let ran = if ran < 0 { "[?????]".to_owned() } else { span(ran) };
    let date = |secs: i64| if secs == 0 { " ??? ".to_owned() } else { screen.date(secs) };
    let cut =
        |text: &str, most: usize| text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned();
    let mut program = cmd;
    if let Some(arguments) = cells::text(ad, "Args", env)
        && program.len() < 14
    {
        let more = cut(&arguments, 14 - program.len());
        program = format!("{program} {more}");
    }
    Some(format!(
        "{cluster:>4}.{proc:<3} {:<14} {:<11} {ran:<12} {:<2} {:<11} {:<15}",
        cut(&owner, 14),
        date(queued),
        cells::letter(status),
        date(done),
        cut(&program, 15)
    ))
}
