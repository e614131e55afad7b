//! A watcher.
