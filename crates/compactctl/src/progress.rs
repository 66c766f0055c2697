//! A sign of life on stderr while long work goes on, for people only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::GlobalArgs;

/// Inputs below this size are done before anyone wonders.
const LONG_BYTES: usize = 4 << 20;

/// A bar that is cleared when it is dropped.
#[derive(Debug)]
pub(crate) struct TerminalProgress(Option<ProgressBar>);

impl TerminalProgress {
    /// A spinner over `bytes` of input.
    pub(crate) fn over_bytes(global: &GlobalArgs, bytes: usize, message: &str) -> TerminalProgress {
        TerminalProgress::show_if_long(global, bytes >= LONG_BYTES, || {
            let bar = ProgressBar::new_spinner().with_message(message.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        })
    }

    /// A bar over a number of steps.
    pub(crate) fn over_steps(global: &GlobalArgs, steps: usize, message: &str) -> TerminalProgress {
        TerminalProgress::show_if_long(global, steps >= 16, || {
            let bar = ProgressBar::new(steps as u64).with_message(message.to_owned());
            match ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        })
    }

    fn show_if_long(
        global: &GlobalArgs,
        long: bool,
        bar: impl FnOnce() -> ProgressBar,
    ) -> TerminalProgress {
        let watched = std::io::stderr().is_terminal() && !global.quiet;
        TerminalProgress((watched && long).then(bar))
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }
}

impl Drop for TerminalProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
