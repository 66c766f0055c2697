//! Reading a long transcript in two halves at a time.

use std::ops::Range;

use compact_core::halves::do_beside;

use crate::error::FormatError;

/// What is shorter is read before a second thread has begun, in bytes.
const WORTH_A_THREAD: usize = 256 * 1024;

/// Reads things up to `middle` and those from there on, of so many bytes together, side by side if they are many. The
/// first error is the one that reading in order would have met.
pub(crate) fn read_halves<T: Send>(
    things: Range<usize>,
    middle: usize,
    bytes: usize,
    read: impl Fn(Range<usize>) -> Result<T, FormatError> + Sync,
) -> Result<Vec<T>, FormatError> {
    if bytes < WORTH_A_THREAD || !things.contains(&middle) {
        return Ok(vec![read(things)?]);
    }
    let (first, later) = do_beside(|| read(things.start..middle), || read(middle..things.end));
    Ok(vec![first?, later?])
}
