//! The five fields of a crontab, and the syntax of their texts.

use std::fmt;

/// A field of a crontab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `cron_minute`: 0 to 59.
    Minute,
    /// `cron_hour`: 0 to 23.
    Hour,
    /// `cron_day_of_month`: 1 to 31.
    DayOfMonth,
    /// `cron_month`: 1 to 12.
    Month,
    /// `cron_day_of_week`: 0 to 7; Sunday is 0, and 7.
    DayOfWeek,
}

/// An error of a crontab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    field: Field,
    offset: usize,
    message: String,
}

impl Fault {
    fn new(field: Field, offset: usize, message: impl Into<String>) -> Self {
        Self { field, offset, message: message.into() }
    }

    /// The fault of a crontab that matches on no day.
    pub(crate) fn never() -> Self {
        Self::new(Field::DayOfMonth, 0, "none of the months has such a day; name another day or month")
    }

    /// The field to whose text the fault belongs.
    pub fn field(&self) -> Field {
        self.field
    }

    /// The byte of the field's text at which the fault is.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// The error, and how to mend it.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Field {
    /// The fields, in the order in which a line of a crontab has them.
    pub const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// The submit command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Minute => "cron_minute",
            Self::Hour => "cron_hour",
            Self::DayOfMonth => "cron_day_of_month",
            Self::Month => "cron_month",
            Self::DayOfWeek => "cron_day_of_week",
        }
    }

    /// The attribute of the job's ad.
    pub fn attribute(self) -> &'static str {
        match self {
            Self::Minute => "CronMinute",
            Self::Hour => "CronHour",
            Self::DayOfMonth => "CronDayOfMonth",
            Self::Month => "CronMonth",
            Self::DayOfWeek => "CronDayOfWeek",
        }
    }

    /// The least and the greatest value.
    fn bounds(self) -> (u32, u32) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
        }
    }

    /// The set of all values.
    pub(crate) fn all(self) -> u64 {
        let (low, high) = self.bounds();
        self.steps(low, high, 1)
    }

    /// The set of the values from `first` to `last` that `step` divides.
    fn steps(self, first: u32, last: u32, step: u32) -> u64 {
        // Sunday is 0 and 7.
        let day = |value: u32| if self == Self::DayOfWeek { value % 7 } else { value };
        (first..=last).map(day).filter(|value| value % step == 0).fold(0, |set, value| set | 1 << value)
    }

    /// Whether a text is `*` alone.
    pub(crate) fn is_wildcard(text: &str) -> bool {
        text.trim() == "*"
    }

    /// The set of the values that a text names. Lists, ranges, `*` and steps are those of the manual; a step selects the values
    /// that can be divided by its number.
    pub(crate) fn values(self, text: &str) -> Result<u64, Fault> {
        let mut set = 0;
        let mut offset = 0;
        for item in text.split(',') {
            // As HTCondor reads lists, items without a text are none.
            if !item.trim().is_empty() {
                set |= Item { field: self, text, offset, end: offset + item.len() }.values()?;
            }
            offset += item.len() + 1;
        }
        if set == 0 {
            let (low, high) = self.bounds();
            return Err(Fault::new(self, 0, format!("expected numbers between {low} and {high}, or *")));
        }
        Ok(set)
    }
}

/// An item of a list, as far as it has not been read.
struct Item<'t> {
    field: Field,
    text: &'t str,
    offset: usize,
    end: usize,
}

impl Item<'_> {
    /// `*`, `N` or `N-N`; with `/N` after it, unless it is `N`.
    fn values(mut self) -> Result<u64, Fault> {
        let (low, high) = self.field.bounds();
        let is_star = self.take('*');
        let begins = self.offset;
        let (first, last) = if is_star { (low, high) } else { self.range(low, high)? };
        let is_range = self.text.get(begins..self.offset).is_some_and(|read| read.contains('-'));
        let slash = self.here();
        if !self.take('/') {
            self.nothing_more()?;
            return Ok(self.field.steps(first, last, 1));
        }
        if !is_star && !is_range {
            return Err(self.fault(slash, "a step follows * or a range, as in */5 or 10-30/5"));
        }
        let at = self.here();
        let step = self.number().filter(|step| *step > 0);
        let step = step.ok_or_else(|| self.fault(at, "expected the number of a step, of at least 1"))?;
        self.nothing_more()?;
        match self.field.steps(first, last, step) {
            0 => Err(self.fault(at, format!("no value between {first} and {last} can be divided by {step}"))),
            set => Ok(set),
        }
    }

    /// A number, or two with a dash between them.
    fn range(&mut self, low: u32, high: u32) -> Result<(u32, u32), Fault> {
        let first = self.bounded(low, high)?;
        if !self.take('-') {
            return Ok((first, first));
        }
        let at = self.here();
        let last = self.bounded(low, high)?;
        if last < first {
            return Err(self.fault(
                at,
                format!("{last} is less than {first}; write the lesser number first, or two ranges"),
            ));
        }
        Ok((first, last))
    }

    fn bounded(&mut self, low: u32, high: u32) -> Result<u32, Fault> {
        let at = self.here();
        match self.number() {
            Some(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.fault(at, format!("expected a number between {low} and {high}, or *"))),
        }
    }

    /// The number that comes next; a number that is too large is the largest there is.
    fn number(&mut self) -> Option<u32> {
        self.here();
        let digits: String = self.rest().chars().take_while(char::is_ascii_digit).collect();
        self.offset += digits.len();
        (!digits.is_empty()).then(|| digits.parse().unwrap_or(u32::MAX))
    }

    fn take(&mut self, c: char) -> bool {
        self.here();
        let there = self.rest().starts_with(c);
        if there {
            self.offset += c.len_utf8();
        }
        there
    }

    /// Where the next character is that is no blank.
    fn here(&mut self) -> usize {
        let rest = self.rest();
        self.offset += rest.len() - rest.trim_start().len();
        self.offset
    }

    fn rest(&self) -> &str {
        self.text.get(self.offset..self.end).unwrap_or_default()
    }

    fn nothing_more(&mut self) -> Result<(), Fault> {
        let at = self.here();
        match self.rest().chars().next() {
            None => Ok(()),
            Some(c) => Err(self.fault(at, format!("expected a comma or the end, found '{c}'"))),
        }
    }

    fn fault(&self, offset: usize, message: impl Into<String>) -> Fault {
        Fault::new(self.field, offset, message)
    }
}
