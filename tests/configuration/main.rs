//! HTCondor's configuration language: what HTCondor answers, and what no text can do.

mod docs;
mod knobs;
mod language;
mod oracle;
mod templates;
