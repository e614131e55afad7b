//! The hash of names and marks that leave the process.

/// The FNV-1a hash of these bytes, of 64 bits. Objects contain the hash, so that it must be the same in every build.
pub fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let prime = 0x0100_0000_01b3;
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(prime))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of the hash's authors.
    #[test]
    fn the_hash_is_fnv_1a() {
        let hashes = ["", "a", "foobar"].map(|text| fnv(text.bytes()));
        assert_eq!(hashes, [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]);
    }
}
