use compact_core::message::{Block, Entry, EntryId, EntryMeta, Role};
use compact_formats::stream::{AgentActivity, SessionDetails, TurnEnd};

use super::{AgentStep, ScriptedAgent, ScriptedPrompt, conformance};

fn said(role: Role, block: Block) -> AgentStep {
    AgentStep::Tells(AgentActivity::Said(Entry {
        id: EntryId(String::new()),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    }))
}

fn polite(told: &ScriptedPrompt) -> Vec<AgentStep> {
    let named = AgentStep::Tells(AgentActivity::Session(SessionDetails {
        id: Some(format!("s{}", told.session)),
        ..SessionDetails::default()
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
    let end = AgentStep::Tells(AgentActivity::Ended(TurnEnd::Done(None)));
    let rest = match told.prompt.as_str() {
        "go on" => work.into_iter().chain([AgentStep::Hangs]).collect(),
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
    conformance::suite(&ScriptedAgent::new(polite)).await;
}
