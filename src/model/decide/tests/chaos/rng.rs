//! Noise: what is slow, lost or out of order, from a seed.

/// A small generator of its own, so that each action's noise stays as it is while others are taken away.
pub struct Rng {
    state: u64,
    calm: bool,
}

impl Rng {
    /// Noise of this seed; 0 is calm: nothing fails, nothing is late.
    pub fn new(seed: u16) -> Self {
        Self { state: u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15), calm: seed == 0 }
    }

    pub fn calm(&self) -> bool {
        self.calm
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A fault, once in `n` times; never while it is calm.
    pub fn fault(&mut self, n: u64) -> bool {
        !self.calm && self.one_in(n)
    }
}
