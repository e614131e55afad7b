//! The columns that `-autoformat` and `-format` ask for.

use std::collections::BTreeSet;

use classad::{Ad, Env, Name};

use crate::column::{Column, Show};
use crate::conversion::{Conversion, Source, unescaped};
use crate::queue::job_id;
use crate::screen::Screen;
use crate::table::{Apart, Table};

/// The columns that a command line asks for, in the order in which it does.
#[derive(Clone, Debug, Default)]
pub struct Formats {
    columns: Vec<Column>,
    apart: Option<Apart>,
    headings: bool,
}

/// The letters behind `-af:`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent letters")]
struct Letters {
    label: bool,
    quoted: bool,
    raw: bool,
    span: bool,
    date: bool,
    headings: bool,
    job_id: bool,
}

impl Letters {
    /// The format of each value.
    const fn format(self) -> &'static str {
        match self {
            Self { raw: true, .. } => "%r",
            Self { quoted: true, .. } => "%V",
            Self { date: true, .. } => "%Y",
            Self { span: true, .. } => "%T",
            _ => "%v",
        }
    }
}

impl Formats {
    /// Adds the columns of `-autoformat`: the letters behind the colon, and the attributes or expressions. A letter that is not
    /// known is ignored, as by the real tools.
    ///
    /// # Errors
    /// When one of the words is neither an attribute nor an expression.
    pub fn autoformat(&mut self, letters: &str, words: &[&str]) -> Result<(), String> {
        let mut apart = Apart::SPACES;
        let mut asked = Letters::default();
        for letter in letters.chars() {
            match letter {
                ',' => apart.after = ",",
                'n' => apart.after = "\n",
                'g' => (apart.row_begin, apart.before) = ("\n", ""),
                't' => apart.before = "\t",
                'l' => asked.label = true,
                'V' => asked.quoted = true,
                'r' | 'o' => asked.raw = true,
                'T' => asked.span = true,
                'Y' => asked.date = true,
                'h' => asked.headings = true,
                'j' => asked.job_id = true,
                _ => {}
            }
        }
        self.apart = Some(apart);
        self.headings |= asked.headings;
        if asked.job_id {
            let show = Show::Made(if asked.label { labelled_job_id } else { plain_job_id });
            let column = Column::new(if self.headings { " ID" } else { "" }, show);
            self.columns.push(Column { grows: self.headings, ..column });
        }
        for word in words {
            let source = Source::parse(word)?;
            let label = if asked.label && !self.headings {
                format!("{} = ", source.text().replace('%', "%%"))
            } else {
                String::new()
            };
            let format = format!("{label}{}", asked.format());
            let conversion = Conversion::parse(&format)?.unwrap_or_else(Conversion::value);
            let heading = if self.headings { source.text().to_owned() } else { String::new() };
            let column = Column::new(&heading, Show::Value(source, conversion));
            self.columns.push(Column { grows: self.headings, ..column });
        }
        Ok(())
    }

    /// Adds the column of `-format`. A format without a conversion prints as it is, and needs no attribute.
    ///
    /// # Errors
    /// When the format or the expression is wrong.
    pub fn format(&mut self, format: &str, expression: &str) -> Result<(), String> {
        let format = unescaped(format);
        let column = match Conversion::parse(&format)? {
            None => Column::new("", Show::Fixed(format)),
            Some(conversion) => {
                let (width, left) = (conversion.width(), conversion.is_left());
                let column = Column::new("", Show::Value(Source::parse(expression)?, conversion));
                Column { width, left, ..column }
            }
        };
        self.columns.push(Column { grows: false, ..column });
        Ok(())
    }

    /// Whether no column was asked for.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The ads as these columns: headings if there are any, and a row an ad.
    pub(crate) fn print<'a>(&self, ads: impl IntoIterator<Item = &'a Ad>, screen: &Screen) -> String {
        let mut table = self.table();
        let env = screen.env();
        let rows: Vec<_> = ads.into_iter().map(|ad| table.row(ad, screen, &env)).collect();
        let mut out = if self.headings { table.headings() } else { String::new() };
        for row in rows {
            table.print(&row, &mut out);
        }
        out
    }

    /// The columns as a table without rows.
    pub(crate) fn table(&self) -> Table {
        let apart = self.apart.unwrap_or(Apart::NOTHING);
        Table { columns: self.columns.clone(), apart, longest: None }
    }

    /// Whether a line of headings stands above the rows.
    pub(crate) const fn has_headings(&self) -> bool {
        self.headings
    }

    /// The names of the attributes that the columns show, or refer to.
    pub(crate) fn reads(&self) -> BTreeSet<Name> {
        let mut names = BTreeSet::new();
        for column in &self.columns {
            match &column.show {
                Show::Value(source, _) => source.reads(&mut names),
                Show::Made(_) | Show::Number(_) => names.extend(["ClusterId", "ProcId"].map(Name::from)),
                Show::Fixed(_) => {}
            }
        }
        names
    }

    /// The columns, to stand behind those of another table.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }
}

fn plain_job_id(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    job_id(ad, env)
}

fn labelled_job_id(ad: &Ad, _: &Screen, env: &Env) -> Option<String> {
    job_id(ad, env).map(|id| format!("ID = {id}"))
}
