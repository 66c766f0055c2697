//! `eval`: what is retained, in numbers. Measures and changes nothing.

mod answer_key;
mod decay;
mod generated;
mod probe;
mod qa;
mod retention;
mod task;

use compact_eval::compaction::{EvalEngine, EvalError};
use compact_eval::method::Method;

use super::results::{self, ResultDocuments};
use crate::answer::CommandAnswer;
use crate::app::App;
use crate::args::{EvalArgs, GlobalArgs};
use crate::failure::{Failure, FailureCode};

/// Measures.
pub(super) fn run(
    args: &EvalArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<CommandAnswer, Failure> {
    results::measure_and_write(&args.sheets, global, || measure_all(args, app, global))
}

fn measure_all(
    args: &EvalArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<ResultDocuments, Failure> {
    let engine = build_engine(args, app)?;
    let mut findings = run_benchmark(args, &engine, global)?;
    if let Some(tally) = engine.prose_counts() {
        findings.human.push_str(&format!(
            "compact_llm: the model was asked for {} summaries and told {}.\n",
            tally.asked, tally.answered
        ));
    }
    Ok(findings)
}

/// The engine, with a model to ask if one is to be compared.
fn build_engine(args: &EvalArgs, app: &App) -> Result<EvalEngine, Failure> {
    let engine = EvalEngine::new(app.base_policy().clone())?;
    if !args.methods.contains(&Method::CompactLlm) {
        return Ok(engine);
    }
    match app.compact().summarizer(None)? {
        Some(summarizer) => Ok(engine.with_summarizer(summarizer)?),
        None => Err(Failure::usage(
            "compact_llm needs a model",
            "choose one with --summarizer and --summarizer-model, or in the configuration",
        )),
    }
}

fn run_benchmark(
    args: &EvalArgs,
    engine: &EvalEngine,
    global: &GlobalArgs,
) -> Result<ResultDocuments, Failure> {
    match args {
        EvalArgs { qa: Some(file), .. } => qa::run(file, args, engine),
        EvalArgs {
            probes: Some(folder),
            ..
        } => probe::run(folder, args, engine, global),
        EvalArgs {
            generated: true, ..
        } => generated::run(args, engine, global),
        EvalArgs { examples: true, .. } => answer_key::run(engine, global),
        EvalArgs { decay: true, .. } => decay::run(args, engine, global),
        EvalArgs { tasks: true, .. } => task::run(args, engine, global),
        _ => retention::run(args, engine, global),
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Failure {
        match error {
            EvalError::Compact(error) => error.into(),
            EvalError::Format(error) => error.into(),
            other => Failure::from_error(FailureCode::Usage, &other),
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
