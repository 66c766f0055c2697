//! A tool gave an id early; the last request names only the thing.

use super::ScriptedTask;
use super::context::AgentContext;
use super::scene::{SceneStep, TaskScene, tool_step};
use crate::random::Random;

const SERVICES: [&str; 5] = [
    "billing-edge",
    "login-relay",
    "search-front",
    "parcel-tracker",
    "image-resizer",
];

pub(super) fn write_task(random: &mut Random) -> ScriptedTask {
    let start = random.index(SERVICES.len());
    let services = SERVICES.iter().cycle().skip(start).take(3);
    let mut scenes = Vec::new();
    let mut wanted = None;
    for (service, depth) in services.zip([0.03, 0.09, 0.15]) {
        let id = format!("dep-{}", random.hex(8));
        // Agents repeat an id as often as not.
        let told = match random.roll_percent(50) {
            true => format!("The deployment of {service} has started, it is {id}."),
            false => format!("The deployment of {service} has started."),
        };
        scenes.push(deployment_scene(service, &id, told, depth));
        wanted.get_or_insert((*service, id));
    }
    let (service, id) = wanted.unwrap_or_default();
    ScriptedTask {
        scenes,
        request: format!("Something is wrong with {service}. Roll its deployment back by its id."),
        questions: vec![format!("deployment id of {service}")],
        succeeds: Box::new(move |context| find_deployment(context, service) == Some(id.clone())),
    }
}

fn deployment_scene(service: &str, id: &str, told: String, depth: f64) -> TaskScene {
    let arguments = format!("{{\"service\": \"{service}\", \"region\": \"eu-north-1\"}}");
    let result = format!(
        "{{\"deployment\": \"{id}\", \"service\": \"{service}\", \"status\": \"started\"}}"
    );
    TaskScene::new(
        depth,
        [
            SceneStep::User(format!("Deploy {service} as it is on main.")),
            tool_step("create_deployment", arguments, result),
            SceneStep::Agent(told),
        ],
    )
}

/// Returns the id that the agent would use: the one on a line with the service.
fn find_deployment(context: &AgentContext, service: &str) -> Option<String> {
    context
        .lines_with(&["dep-", service])
        .rev()
        .find_map(|line| {
            let (_, rest) = line.text.split_once("dep-")?;
            let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
            (digits.len() == 8).then(|| format!("dep-{digits}"))
        })
}
