//! Random streams: one for each subject and purpose. Draws from one stream never change another, so that a change of
//! policy never changes the workload.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A random stream. `ChaCha` gives the same numbers on every machine and in every version.
pub type Chance = ChaCha8Rng;

/// The stream of a subject for a purpose: a function of its three arguments.
pub fn stream(seed: u64, purpose: &str, subject: &str) -> Chance {
    let mut key = [0_u8; 32];
    let words = [seed, fnv1a(purpose), fnv1a(subject), 0];
    for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    Chance::from_seed(key)
}

/// FNV-1a: the same in every build, unlike the standard library's hash.
fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
