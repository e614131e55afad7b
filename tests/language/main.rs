//! The ClassAd language: what HTCondor answers, and what no expression can do.

mod hostile;
mod language;
mod patterns;
mod roster;
mod safety;
mod seeds;
