//! A rule is given early, in half of the tasks replaced later; the last request must obey it.

use super::ScriptedTask;
use super::context::AgentContext;
use super::scene::{SceneStep, TaskScene};
use crate::random::Random;

/// A rule: how it is given, how it is replaced, and the words around its value in both.
struct ConstraintRule {
    given: fn(&str) -> String,
    replaced: fn(&str) -> String,
    about: &'static [&'static str],
    around: (&'static str, &'static str),
    values: &'static [&'static str],
    request: &'static str,
}

const RULES: [ConstraintRule; 3] = [
    ConstraintRule {
        given: |n| format!("House rule: a line in the release notes has at most {n} characters."),
        replaced: |n| {
            format!(
                "About the release notes again: a line has at most {n} characters from now on, the old limit is gone."
            )
        },
        about: &["release notes", "characters"],
        around: ("at most ", " characters"),
        values: &["64", "72", "78", "88", "96", "104"],
        request: "Write the release notes now.",
    },
    ConstraintRule {
        given: |p| format!("When you open a branch, its name always begins with `{p}/`."),
        replaced: |p| {
            format!(
                "New naming, this replaces the old one: a branch begins with `{p}/` from today."
            )
        },
        about: &["branch", "begins with"],
        around: ("begins with `", "/`"),
        values: &["kestrel", "otter", "juniper", "basalt", "copper", "lagoon"],
        request: "Open a branch for this.",
    },
    ConstraintRule {
        given: |d| format!("Never deploy on a {d}, please, whatever happens."),
        replaced: |d| {
            format!("The freeze has moved, forget the old day: never deploy on a {d} any more.")
        },
        about: &["never deploy on a"],
        around: ("eploy on a ", "day"),
        values: &["Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur"],
        request: "Plan the deployments of next week.",
    },
];

pub(super) fn write_task(random: &mut Random) -> ScriptedTask {
    let rule = RULES.get(random.index(RULES.len()));
    let Some(rule) = rule.or(RULES.first()) else {
        return empty_task();
    };
    let first = random.index(rule.values.len());
    let second = (first + 1 + random.index(rule.values.len() - 1)) % rule.values.len();
    let value = |at: usize| rule.values.get(at).copied().unwrap_or_default();
    let spoken = |value: &str| {
        if rule.around.1 == "day" {
            format!("{value}day")
        } else {
            value.to_owned()
        }
    };
    let mut scenes = vec![TaskScene::new(
        0.05,
        [
            SceneStep::User((rule.given)(&spoken(value(first)))),
            SceneStep::Agent("Understood, I will keep to that.".into()),
        ],
    )];
    let is_replaced = random.roll_percent(50);
    if is_replaced {
        let said = SceneStep::User((rule.replaced)(&spoken(value(second))));
        scenes.push(TaskScene::new(
            0.45,
            [said, SceneStep::Agent("Noted.".into())],
        ));
    }
    let live = value(if is_replaced { second } else { first }).to_owned();
    ScriptedTask {
        scenes,
        request: rule.request.to_owned(),
        questions: vec![rule.request.to_owned()],
        succeeds: Box::new(move |context| obeys_rule(context, rule, &live)),
    }
}

/// Returns whether the agent, which obeys what it read last about the subject, obeys the live rule.
fn obeys_rule(context: &AgentContext, rule: &ConstraintRule, live: &str) -> bool {
    let (start, end) = rule.around;
    let mut told = context.lines_with(rule.about).rev();
    told.find_map(|line| line.text_between(start, end)) == Some(live)
}

fn empty_task() -> ScriptedTask {
    ScriptedTask {
        scenes: Vec::new(),
        request: String::new(),
        questions: Vec::new(),
        succeeds: Box::new(|_| false),
    }
}
