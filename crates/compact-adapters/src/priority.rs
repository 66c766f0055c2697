//! The priority of work that nobody waits for.

/// How much nicer it is to others than what people wait for.
#[cfg(target_os = "linux")]
const NICER: i32 = 10;

/// Lets everything else on this machine go first from now on. On Linux this is the calling thread's own affair; elsewhere
/// it would be the whole process's, and is left alone.
pub fn yield_to_others() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICER);
}
