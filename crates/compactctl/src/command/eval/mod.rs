//! `eval`: what is retained, in numbers. Measures and changes nothing.

mod decay;
mod generated;
mod key;
mod qa;
mod retention;
mod task;

use compact_eval::compaction::{Engine, EngineError};
use compact_eval::method::Method;

use super::sheet::{self, Findings};
use crate::answer::Answer;
use crate::args::{Eval, Global};
use crate::failure::{Code, Failure};
use crate::world::World;

/// Measures.
pub fn run(args: &Eval, world: &World, global: &Global) -> Result<Answer, Failure> {
    sheet::deliver(&args.sheets, global, || measure(args, world, global))
}

fn measure(args: &Eval, world: &World, global: &Global) -> Result<Findings, Failure> {
    let engine = engine(args, world)?;
    let mut findings = findings(args, &engine, global)?;
    if let Some(tally) = engine.told() {
        findings.human.push_str(&format!(
            "compact_llm: the model was asked for {} summaries and told {}.\n",
            tally.asked, tally.answered
        ));
    }
    Ok(findings)
}

/// The engine, with a model to ask if one is to be compared.
fn engine(args: &Eval, world: &World) -> Result<Engine, Failure> {
    let engine = Engine::new(world.base_policy().clone())?;
    if !args.methods.contains(&Method::CompactLlm) {
        return Ok(engine);
    }
    match world.summarizer(None)? {
        Some(summarizer) => Ok(engine.with_summarizer(summarizer)?),
        None => Err(Failure::usage(
            "compact_llm needs a model",
            "choose one with --summarizer and --summarizer-model, or in the configuration",
        )),
    }
}

fn findings(args: &Eval, engine: &Engine, global: &Global) -> Result<Findings, Failure> {
    match args {
        Eval { qa: Some(file), .. } => qa::run(file, args, engine),
        Eval {
            generated: true, ..
        } => generated::run(args, engine, global),
        Eval { examples: true, .. } => key::run(engine, global),
        Eval { decay: true, .. } => decay::run(args, engine, global),
        Eval { tasks: true, .. } => task::run(args, engine, global),
        _ => retention::run(args, engine, global),
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        match error {
            EngineError::Compact(error) => error.into(),
            EngineError::Format(error) => error.into(),
            other => Failure::of(Code::Usage, &other),
        }
    }
}

/// A share with its interval: `0.985 0.97-1.00`.
fn interval_cells(interval: compact_eval::interval::Interval) -> [String; 2] {
    [
        format!("{:.3}", interval.mean),
        format!("{:.2}-{:.2}", interval.low, interval.high),
    ]
}
