//! `eval`: what is retained, in numbers. Measures and changes nothing.

mod retention;
mod sheet;

use crate::answer::Answer;
use crate::args::{Eval, Global};
use crate::failure::Failure;
use crate::world::World;

/// Measures.
pub fn run(args: &Eval, world: &World, global: &Global) -> Result<Answer, Failure> {
    sheet::deliver(&args.sheets, global, || retention::run(args, world, global))
}
