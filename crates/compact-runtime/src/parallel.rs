//! The same work on many things, on all cores, answers in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maps every item, here and on as many threads as there are cores beside this one and the system has to give; a panic of the
/// work is the caller's.
pub fn map_on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    let take_all = || {
        while let Some((at, item)) = take(items, &next) {
            let result = (at, work(item));
            done.lock().unwrap_or_else(|e| e.into_inner()).push(result);
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let mut beside = (1..cores.min(items.len()))
            .map(|_| thread::Builder::new().spawn_scoped(scope, take_all));
        while let Some(Ok(_)) = beside.next() {}
        take_all();
    });
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn take<'t, T>(items: &'t [T], next: &AtomicUsize) -> Option<(usize, &'t T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

#[cfg(test)]
mod tests {
    #[test]
    fn answers_come_in_order() {
        let items: Vec<u64> = (0..500).collect();
        assert_eq!(
            super::map_on_all_cores(&items, |n| n * 2),
            items.iter().map(|n| n * 2).collect::<Vec<_>>()
        );
    }
}
