//! The generated sessions are what they claim to be.

mod examples;
mod session;
