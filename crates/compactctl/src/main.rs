//! compactctl
fn main() {}
