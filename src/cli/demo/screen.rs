//! Shows progress: on a terminal as a table that is drawn over itself, elsewhere as lines.

use std::io::{self, IsTerminal, Stdout, Write};
use std::time::Duration;

use terminal_size::{Height, Width, terminal_size};

use super::progress;
use super::scene::Scene;

/// The least time between two lines, if the output is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The standard output, with the table that is on it.
#[derive(Debug)]
pub struct Screen {
    out: Stdout,
    terminal: bool,
    /// How many lines of the table are above the cursor.
    drawn: usize,
    last: Option<(Duration, String)>,
}

impl Screen {
    /// The standard output, whether a terminal or not.
    pub fn new() -> Self {
        let out = io::stdout();
        let terminal = out.is_terminal();
        Self { out, terminal, drawn: 0, last: None }
    }

    /// Shows the progress.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn show(&mut self, scene: &Scene, elapsed: Duration) -> io::Result<()> {
        if self.terminal { self.draw(scene, elapsed) } else { self.log(scene, elapsed) }
    }

    /// Prints a text that stays, below everything printed before.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.drawn = 0;
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// Removes the table, so that the summary takes its place.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.terminal {
            let text = format!("{}\x1b[J\x1b[?25h", self.home());
            self.drawn = 0;
            self.out.write_all(text.as_bytes())?;
        }
        self.out.flush()
    }

    fn draw(&mut self, scene: &Scene, elapsed: Duration) -> io::Result<()> {
        let (Width(columns), Height(rows)) = terminal_size().unwrap_or((Width(80), Height(24)));
        // The cursor is in the line below the table: one line less, or the table would scroll.
        let size = (usize::from(columns).max(1), usize::from(rows).saturating_sub(1).max(1));
        let lines = progress::table(scene, elapsed, size);
        let mut text = format!("\x1b[?25l{}", self.home());
        for line in &lines {
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.len();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn log(&mut self, scene: &Scene, elapsed: Duration) -> io::Result<()> {
        let line = progress::line(scene);
        let due = match &self.last {
            None => true,
            Some((at, said)) => *said != line && elapsed.saturating_sub(*at) >= LINE_EVERY,
        };
        if due {
            writeln!(self.out, "{:>6}  {line}", progress::clock(elapsed))?;
            self.out.flush()?;
            self.last = Some((elapsed, line));
        }
        Ok(())
    }

    /// Moves the cursor to where the table begins.
    fn home(&self) -> String {
        if self.drawn == 0 { "\r".to_owned() } else { format!("\r\x1b[{}A", self.drawn) }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.terminal {
            // The terminal gets its cursor back, even after an error.
            let _ = self.out.write_all(b"\x1b[?25h");
            let _ = self.out.flush();
        }
    }
}
