//! Work is put on a list over the day, some of it gets done; the last request is to finish the rest.

use super::ScriptedTask;
use super::context::AgentContext;
use super::scene::{SceneStep, TaskScene, tool_step};
use crate::random::Random;

const WORKS: [&str; 12] = [
    "rotate the signing keys of the staging cluster",
    "send Priya the list of failed imports",
    "rename the metric queue_depth to backlog_size",
    "add a retry to the nightly export",
    "write a test for leap-day invoices",
    "remove the feature flag new_checkout",
    "update the on-call handbook",
    "archive the audit logs of 2023",
    "ask legal about the cookie banner",
    "bump the postgres driver to 4.2",
    "clean up the orphaned upload folders",
    "measure the cold start of the worker image",
];

const ASKED: [fn(&str) -> String; 4] = [
    |work| format!("Please put this on the list for later: {work}."),
    |work| format!("One more for the to-do list: {work}."),
    |work| format!("When there is time, not now: {work}."),
    |work| format!("Still to do before we close the week: {work}."),
];

pub(super) fn write_task(random: &mut Random) -> ScriptedTask {
    let start = random.index(WORKS.len());
    let mut works = WORKS.iter().cycle().skip(start).step_by(5).take(5);
    let mut scenes = Vec::new();
    let mut open = Vec::new();
    for depth in [0.04, 0.12, 0.22, 0.32, 0.42] {
        let (Some(work), Some(ask)) = (works.next(), random.pick(&ASKED)) else {
            break;
        };
        let agreed = SceneStep::Agent("I have noted it.".into());
        scenes.push(TaskScene::new(depth, [SceneStep::User(ask(work)), agreed]));
        if open.len() < 3 && random.roll_percent(60) || depth > 0.4 && open.is_empty() {
            open.push(*work);
        } else {
            scenes.push(finished_scene(work, depth + 0.2));
        }
    }
    ScriptedTask {
        scenes,
        request: "Please finish everything that is still on the list.".into(),
        questions: [
            "put this on the list for later",
            "one more for the to-do list",
            "when there is time, not now",
            "still to do before we close the week",
            "done from the list, completed task",
        ]
        .map(str::to_owned)
        .to_vec(),
        succeeds: Box::new(move |context| believed_open(context) == sorted(open.clone())),
    }
}

fn finished_scene(work: &str, depth: f64) -> TaskScene {
    let result = format!("completed: {work}");
    TaskScene::new(
        depth,
        [
            SceneStep::User(format!("Do this from the list now: {work}.")),
            tool_step("complete_task", format!("{{\"task\": \"{work}\"}}"), result),
            SceneStep::Agent(format!("Done: {work}.")),
        ],
    )
}

/// Returns the work that the agent would do: all that it reads of, unless it also reads that it was done.
fn believed_open(context: &AgentContext) -> Vec<&'static str> {
    let is_open = |work: &&&str| {
        let mut mentions = context.lines_with(&[work]).peekable();
        mentions.peek().is_some() && !mentions.any(|line| line.is_finished())
    };
    sorted(WORKS.iter().filter(is_open).copied().collect())
}

fn sorted(mut works: Vec<&'static str>) -> Vec<&'static str> {
    works.sort_unstable();
    works
}
