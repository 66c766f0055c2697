//! A tool gave an id early; the last request names only the thing.

use super::Task;
use super::context::Context;
use super::scene::{Said, Scene, tool};
use crate::random::Random;

const SERVICES: [&str; 5] = [
    "billing-edge",
    "login-relay",
    "search-front",
    "parcel-tracker",
    "image-resizer",
];

pub(super) fn write(random: &mut Random) -> Task {
    let start = random.index(SERVICES.len());
    let services = SERVICES.iter().cycle().skip(start).take(3);
    let mut scenes = Vec::new();
    let mut wanted = None;
    for (service, depth) in services.zip([0.03, 0.09, 0.15]) {
        let id = format!("dep-{}", random.hex(8));
        // Agents repeat an id as often as not.
        let told = match random.percent(50) {
            true => format!("The deployment of {service} has started, it is {id}."),
            false => format!("The deployment of {service} has started."),
        };
        scenes.push(deployed(service, &id, told, depth));
        wanted.get_or_insert((*service, id));
    }
    let (service, id) = wanted.unwrap_or_default();
    Task {
        scenes,
        request: format!("Something is wrong with {service}. Roll its deployment back by its id."),
        questions: vec![format!("deployment id of {service}")],
        succeeds: Box::new(move |context| found(context, service) == Some(id.clone())),
    }
}

fn deployed(service: &str, id: &str, told: String, depth: f64) -> Scene {
    let arguments = format!("{{\"service\": \"{service}\", \"region\": \"eu-north-1\"}}");
    let result = format!(
        "{{\"deployment\": \"{id}\", \"service\": \"{service}\", \"status\": \"started\"}}"
    );
    Scene::new(
        depth,
        [
            Said::User(format!("Deploy {service} as it is on main.")),
            tool("create_deployment", arguments, result),
            Said::Agent(told),
        ],
    )
}

/// The agent takes the id that stands on a line with the service.
fn found(context: &Context, service: &str) -> Option<String> {
    context.with(&["dep-", service]).rev().find_map(|line| {
        let (_, rest) = line.text.split_once("dep-")?;
        let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
        (digits.len() == 8).then(|| format!("dep-{digits}"))
    })
}
