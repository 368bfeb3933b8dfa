//! Randomness from the operating system, for uids, name suffixes and spread deadlines.

use std::cell::RefCell;

use crate::resource::Mint;

thread_local! {
    /// A pool, because asking the system costs more than the rest of a small write.
    static POOL: RefCell<(Vec<u8>, usize)> = const { RefCell::new((Vec::new(), 0)) };
}

const POOL_BYTES: usize = 4096;

fn draw<const N: usize>() -> [u8; N] {
    POOL.with_borrow_mut(|(bytes, used)| {
        if bytes.len() - *used < N {
            bytes.resize(POOL_BYTES, 0);
            getrandom::fill(bytes).expect("the operating system has randomness");
            *used = 0;
        }
        let mut drawn = [0; N];
        drawn.copy_from_slice(&bytes[*used..*used + N]);
        bytes[*used..*used + N].fill(0);
        *used += N;
        drawn
    })
}

/// A random number.
pub(crate) fn roll() -> u64 {
    u64::from_le_bytes(draw())
}

/// A version 4 uid.
pub(crate) fn uid() -> String {
    let mut bits = u128::from_be_bytes(draw());
    bits = bits & !(0xf << 76) | (4 << 76);
    bits = bits & !(0b11 << 62) | (0b10 << 62);
    let text = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

/// What only dice can give a new object.
pub(crate) fn mint() -> Mint {
    Mint { uid: uid(), random: roll() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_uid_is_a_random_one_of_version_four() {
        let (one, other) = (super::uid(), super::uid());
        assert_ne!(one, other);
        assert_eq!(one.len(), 36);
        assert_eq!(one.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&one.as_bytes()[19]));
        assert_eq!(one.matches('-').count(), 4);
    }
}
