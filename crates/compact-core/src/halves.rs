//! Work on many things on two threads, for results that do not depend on how many there are.

use std::thread;

/// Maps things in order, the second half beside the first where there are at least so many.
pub(crate) fn map_in_halves<T: Sync, U: Send>(
    things: &[T],
    worth_a_thread: usize,
    map: impl Fn(&T) -> U + Sync,
) -> Vec<U> {
    if things.len() < worth_a_thread {
        return things.iter().map(map).collect();
    }
    let (head, tail) = things.split_at(things.len() / 2);
    let (mut mapped, later) = do_beside(
        || head.iter().map(&map).collect::<Vec<U>>(),
        || tail.iter().map(&map).collect::<Vec<U>>(),
    );
    mapped.extend(later);
    mapped
}

/// Does two things at a time: the first here, the other on a thread of its own, or behind the first where the system has
/// no thread to give.
pub fn do_beside<A, B: Send>(first: impl FnOnce() -> A, other: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, &other);
        let first = first();
        let other = match beside {
            Ok(beside) => beside
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => other(),
        };
        (first, other)
    })
}
