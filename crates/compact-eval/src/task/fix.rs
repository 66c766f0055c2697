//! Errors with a code are met and mended early; the last one to come back must be mended the same
//! way.

use super::ScriptedTask;
use super::context::AgentContext;
use super::scene::{SceneStep, TaskScene};
use crate::random::Random;

/// What fails, and the command that mends it.
const FAULTS: [(&str, &str); 5] = [
    ("relay handshake refused", "chronyc makestep relay"),
    ("cache shard is read-only", "shardctl promote --shard"),
    (
        "worker cannot open its socket",
        "chgrp relay-ops /run/worker",
    ),
    ("artifact checksum differs", "registry purge --artifact"),
    (
        "lease of the scheduler is held",
        "leasectl release --holder",
    ),
];

pub(super) fn write_task(random: &mut Random) -> ScriptedTask {
    let start = random.index(FAULTS.len());
    let faults = FAULTS.iter().cycle().skip(start).take(3);
    let mut scenes = Vec::new();
    let mut wanted = None;
    for ((fault, command), depth) in faults.zip([0.05, 0.14, 0.26]) {
        let code = format!("RLY-{}", random.between(1000, 9999));
        let command = format!("{command}-{}", random.between(10, 99));
        scenes.push(repair_scene(fault, &code, &command, depth));
        wanted.get_or_insert((*fault, code, command));
    }
    let (fault, code, command) = wanted.unwrap_or_default();
    ScriptedTask {
        scenes,
        request: format!("It failed again: {fault} ({code}). Mend it as before."),
        questions: vec![format!("{fault} {code} fix")],
        succeeds: Box::new(move |context| known_fix(context, &code) == Some(command.clone())),
    }
}

fn repair_scene(fault: &str, code: &str, command: &str, depth: f64) -> TaskScene {
    let failed = SceneStep::Tool {
        name: "deploy_check",
        arguments: "{\"verbose\": true}".into(),
        result: format!("Error: {fault} ({code})\nexit status 1"),
        is_error: true,
    };
    let passed = SceneStep::Tool {
        name: "deploy_check",
        arguments: "{\"verbose\": true}".into(),
        result: "all checks passed".into(),
        is_error: false,
    };
    TaskScene::new(
        depth,
        [
            SceneStep::User("Run the deploy check.".into()),
            failed,
            SceneStep::Agent(format!(
                "{code} is fixed by `{command}`. I run it and check again."
            )),
            passed,
            SceneStep::Agent("The check passes now.".into()),
        ],
    )
}

/// Returns the command that the agent would run: the one behind the error code on a line.
fn known_fix(context: &AgentContext, code: &str) -> Option<String> {
    context.lines_with(&[code, "`"]).rev().find_map(|line| {
        let (_, behind) = line.text.split_once(code)?;
        behind.split('`').nth(1).map(str::to_owned)
    })
}
