use compact_core::message::{Block, Entry, EntryId, Meta, Role};
use compact_formats::stream::{About, Activity, End};

use super::{Scripted, Step, Told, conformance};

fn said(role: Role, block: Block) -> Step {
    Step::Tells(Activity::Said(Entry {
        id: EntryId(String::new()),
        role,
        blocks: vec![block],
        meta: Meta::default(),
    }))
}

fn polite(told: &Told) -> Vec<Step> {
    let named = Step::Tells(Activity::Session(About {
        id: Some(format!("s{}", told.session)),
        ..About::default()
    }));
    let call = Block::ToolCall {
        id: "c".to_owned(),
        name: "t".to_owned(),
        arguments: "{}".to_owned(),
    };
    let result = Block::ToolResult {
        call: "c".to_owned(),
        content: String::new(),
        is_error: false,
    };
    let work = [said(Role::Assistant, call), said(Role::Tool, result)];
    let end = Step::Tells(Activity::Ended(End::Done(None)));
    let rest = match told.prompt.as_str() {
        "go on" => work.into_iter().chain([Step::Hangs]).collect(),
        "work" => work.into_iter().chain([end]).collect(),
        prompt => vec![
            said(Role::Assistant, Block::Text(prompt.to_uppercase())),
            end,
        ],
    };
    [named].into_iter().chain(rest).collect()
}

#[tokio::test]
async fn a_scripted_agent_conforms() {
    conformance::suite(&Scripted::new(polite)).await;
}
