//! The bodies of requests while they are read and wait: bounded together, since any pod of the cluster reaches the port.
//!
//! All bodies share [`MOST_HELD`] bytes. If another chunk does not fit, the oldest body that has more than its [`SHARE`] is let go. The API
//! server sends a body at once, so that its body is not among the oldest, and most of its bodies are far smaller than a share. A stranger
//! who sends much and then waits loses what was sent to the next who comes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use crate::review::MOST_BYTES;

/// How many connections are open at most. Each has one body.
pub(crate) const MOST_CONNECTIONS: usize = 64;
/// How many bytes all bodies have together at most.
const MOST_HELD: usize = 16 << 20;
/// The size up to which a body is never let go: if each connection has as much, all bodies fit.
const SHARE: usize = MOST_HELD / MOST_CONNECTIONS;
/// The first size of a buffer.
const FIRST: usize = 4 << 10;

/// Why a body is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum NotHeld {
    /// The body is longer than a review can be.
    #[error("the body has more than {MOST_BYTES} bytes")]
    TooLong,
    /// The body was let go, so that others have room.
    #[error("too many large requests at once; try again")]
    LetGo,
}

/// The bodies that are read, or wait to be judged.
#[derive(Debug, Default)]
pub(crate) struct Bodies(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// By age, the oldest first.
    bodies: BTreeMap<u64, Vec<u8>>,
    /// The capacity of all buffers.
    bytes: usize,
    /// The number of the next body.
    next: u64,
}

/// A body that is being read. If this value is dropped, the body is let go.
#[derive(Debug)]
pub(crate) struct Reading {
    all: Arc<Bodies>,
    number: u64,
}

impl Bodies {
    /// Begins a body, which is empty.
    pub(crate) fn begin(self: &Arc<Self>) -> Reading {
        let number = self.held(|held| {
            held.next += 1;
            held.bodies.insert(held.next, Vec::new());
            held.next
        });
        Reading { all: Arc::clone(self), number }
    }

    fn held<T>(&self, act: impl FnOnce(&mut Held) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reading {
    /// Adds a chunk.
    ///
    /// # Errors
    /// When the body becomes too long, or was let go, or has to be.
    pub(crate) fn push(&self, chunk: &[u8]) -> Result<(), NotHeld> {
        self.all.held(|held| held.push(self.number, chunk))
    }

    /// The size of the body's buffer.
    pub(crate) fn size(&self) -> usize {
        self.all.held(|held| held.bodies.get(&self.number).map_or(0, Vec::capacity))
    }

    /// Takes the body out: others may have its room.
    ///
    /// # Errors
    /// When the body was let go.
    pub(crate) fn take(self) -> Result<Vec<u8>, NotHeld> {
        self.all.held(|held| held.remove(self.number)).ok_or(NotHeld::LetGo)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.all.held(|held| held.remove(self.number));
    }
}

impl Held {
    fn push(&mut self, number: u64, chunk: &[u8]) -> Result<(), NotHeld> {
        let body = self.bodies.get(&number).ok_or(NotHeld::LetGo)?;
        let (length, before) = (body.len() + chunk.len(), body.capacity());
        if length > MOST_BYTES {
            self.remove(number);
            return Err(NotHeld::TooLong);
        }
        if length > before {
            let size = length.next_power_of_two().clamp(FIRST, MOST_BYTES);
            self.make_room(number, size)?;
            let body = self.bodies.get_mut(&number).ok_or(NotHeld::LetGo)?;
            body.reserve_exact(size - body.len());
            self.bytes += body.capacity() - before;
        }
        self.bodies.get_mut(&number).ok_or(NotHeld::LetGo)?.extend_from_slice(chunk);
        Ok(())
    }

    /// Lets go the oldest bodies that have more than their share, until the buffer of a body can have this size.
    fn make_room(&mut self, number: u64, size: usize) -> Result<(), NotHeld> {
        loop {
            let before = self.bodies.get(&number).ok_or(NotHeld::LetGo)?.capacity();
            if self.bytes - before + size <= MOST_HELD {
                return Ok(());
            }
            let is_large = |(one, body): &(&u64, &Vec<u8>)| {
                let size = if **one == number { size } else { body.capacity() };
                size > SHARE
            };
            // A connection that was just closed may still have its body, so that all bodies may be small: then this body is let go.
            let oldest = self.bodies.iter().find(is_large).map_or(number, |(one, _)| *one);
            self.remove(oldest);
        }
    }

    fn remove(&mut self, number: u64) -> Option<Vec<u8>> {
        let body = self.bodies.remove(&number)?;
        self.bytes -= body.capacity();
        Some(body)
    }
}

#[cfg(test)]
#[path = "tests/bodies.rs"]
pub(crate) mod tests;
