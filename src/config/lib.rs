//! HTCondor's configuration language: macros, conditionals, templates, the knob table.
//!
//! ```
//! use condor_config::{Host, Reader, Source};
//!
//! let text = "HOURS = 2\nMAX = $(HOURS) * 3600\nSTART = $(START) && RequestCpus <= 8\n";
//! let config = Reader::new(Host::none()).subsystem("STARTD").read(&[Source::new("policy", text)]).into_config()?;
//! assert_eq!(config.value("MAX")?.as_deref(), Some("2 * 3600"));
//! assert_eq!(config.integer("MAX")?, Some(7200));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | part | is |
//! | --- | --- |
//! | `text` | text in which each byte knows where it comes from |
//! | `source`, `host` | what the caller gives: texts, and what there is to know of the world |
//! | `lines`, `statement` | text to lines, joined and trimmed; lines to statements |
//! | `condition` | `if`, `elif`, `else`, `endif` |
//! | `read`, `arguments` | statements to definitions; `include`; `use` and its arguments |
//! | `table` | the definitions, and the order in which a name is looked up |
//! | `scan`, `expand` | `$(NAME)` in a text, found and replaced, within bounds |
//! | `functions`, `format`, `paths` | `$INT()` and its kin |
//! | `value`, `slots` | values as text, numbers, lists, expressions; what a slot sees |
//! | `user_map` | maps of users |
//! | `knobs`, `templates` | what is compiled in |
//!
//! Reading is by daemon: a name with the prefix of the subsystem or of the local name stands above the plain
//! one already while reading (in conditions and self references), so a [`Config`] is for one [`Reader`]'s
//! subsystem and local name. Everything is pure: what the host knows comes in by [`Host`], and included files
//! by a function; commands are never run. Nothing that a text says costs more than the bounds in `expand` and
//! `read` allow. Answers are those of condor_config_val, and `tests/config_oracle.rs` holds us to that.

mod allowance;
mod arguments;
mod condition;
mod error;
mod expand;
mod format;
mod functions;
mod host;
pub mod knobs;
mod lines;
mod paths;
mod read;
mod scan;
mod slots;
mod source;
mod statement;
mod table;
pub mod templates;
mod text;
pub mod user_map;
mod value;

pub use error::{ExpandError, ExpandFault, ReadError, ValueError};
pub use host::{FileError, Host};
pub use read::{Reader, Reading};
pub use source::{Diagnostic, Position, Severity, Source};
pub use table::{Config, Definition, Origin};
pub use text::Text;
