//! Whole numbers in as few bytes as they need: seven bits to a byte, the lowest first; all but the last have the eighth.

/// Writes a number behind what is there.
pub(super) fn write(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the beginning; `None` where none stands.
pub(super) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let numbers = [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX,
        ];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| write(&mut bytes, *number));
        let mut rest = &bytes[..];
        for number in numbers {
            assert_eq!(read(&mut rest), Some(number));
        }
        assert_eq!(read(&mut rest), None);
        assert_eq!(read(&mut &[0xFF; 20][..]), None);
    }
}
