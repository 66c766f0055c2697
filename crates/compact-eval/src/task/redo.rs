//! Migrations are announced together and run one by one; the last request is to run those that
//! were not.

use super::ScriptedTask;
use super::context::AgentContext;
use super::scene::{SceneStep, TaskScene, tool_step};
use crate::random::Random;

const SUBJECTS: [&str; 6] = [
    "split_accounts",
    "drop_legacy_tokens",
    "index_events",
    "merge_tenants",
    "widen_amounts",
    "backfill_regions",
];

pub(super) fn write_task(random: &mut Random) -> ScriptedTask {
    let start = random.index(SUBJECTS.len());
    let first = random.between(11, 940);
    let names: Vec<String> = (first..)
        .zip(SUBJECTS.iter().cycle().skip(start))
        .take(4)
        .map(|(number, subject)| format!("{number:04}_{subject}"))
        .collect();
    let left_out = random.index(names.len());
    let list = names.join(", ");
    let announced = format!("We need these migrations over the day: {list}. I say when.");
    let mut scenes = vec![TaskScene::new(
        0.02,
        [
            SceneStep::User(announced),
            SceneStep::Agent("I wait for your word.".into()),
        ],
    )];
    let depths = [0.08, 0.18, 0.3, 0.4];
    let run = names
        .iter()
        .zip(depths)
        .enumerate()
        .filter(|(i, _)| *i != left_out);
    scenes.extend(run.map(|(_, (name, depth))| migration_scene(name, depth)));
    let missing: Vec<String> = names.get(left_out).cloned().into_iter().collect();
    ScriptedTask {
        scenes,
        request: format!("Make sure that each of these was run, once: {list}."),
        questions: names.iter().map(|name| format!("{name} applied")).collect(),
        succeeds: Box::new(move |context| believed_missing(context, &names) == missing),
    }
}

fn migration_scene(name: &str, depth: f64) -> TaskScene {
    let result = format!("{name} applied, 0 rows skipped");
    TaskScene::new(
        depth,
        [
            SceneStep::User(format!("Run {name} now.")),
            tool_step("run_migration", format!("{{\"name\": \"{name}\"}}"), result),
            SceneStep::Agent(format!("{name} is done.")),
        ],
    )
}

/// Returns the migrations that the agent would run: those whose success it does not read of.
fn believed_missing(context: &AgentContext, names: &[String]) -> Vec<String> {
    let is_missing = |name: &&String| !context.lines_with(&[name]).any(|line| line.is_finished());
    names.iter().filter(is_missing).cloned().collect()
}
