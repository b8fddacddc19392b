//! The same work on many things at once, for the first load of large folders.

use std::{num::NonZero, thread};

/// Fewer items than this are not worth a thread.
const LEAST_PER_THREAD: usize = 256;

/// Applies `work` to every item, on as many threads as there are cores; results stand in the order of the items.
pub(super) fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(items.len() / LEAST_PER_THREAD).max(1);
    if threads == 1 {
        return items.into_iter().map(work).collect();
    }
    let size = items.len().div_ceil(threads);
    let mut items = items.into_iter();
    let work = &work;
    thread::scope(|scope| {
        let share = |_| {
            let share: Vec<T> = items.by_ref().take(size).collect();
            scope.spawn(move || share.into_iter().map(work).collect::<Vec<R>>())
        };
        let running: Vec<_> = (0..threads).map(share).collect();
        let finished = running.into_iter().map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        finished.flatten().collect()
    })
}
