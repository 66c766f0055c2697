//! `compactctl` as people and scripts run it: the real binary, in a place of its own.

mod archive;
mod chain;
mod compact;
mod diff;
mod hostile;
mod inspect;
mod place;
mod settings;
mod verify;
