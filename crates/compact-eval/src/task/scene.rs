//! Scenes: short exchanges that a task weaves into a session.

use compact_core::message::{Block, Entry, EntryId, EntryMeta, Role};

/// Something said at a depth of the session: 0 at the start, 1 at the end.
pub(super) struct TaskScene {
    pub(super) depth: f64,
    pub(super) said: Vec<SceneStep>,
}

/// One thing said in a scene.
pub(super) enum SceneStep {
    User(String),
    Agent(String),
    Tool {
        name: &'static str,
        arguments: String,
        result: String,
        is_error: bool,
    },
}

impl TaskScene {
    pub(super) fn new(depth: f64, said: impl IntoIterator<Item = SceneStep>) -> TaskScene {
        TaskScene {
            depth,
            said: said.into_iter().collect(),
        }
    }
}

/// Returns a tool that answers well.
pub(super) fn tool_step(name: &'static str, arguments: String, result: String) -> SceneStep {
    SceneStep::Tool {
        name,
        arguments,
        result,
        is_error: false,
    }
}

/// Returns the session with the scenes in it, each before the first request at or after its depth.
pub(super) fn weave_scenes(session: Vec<Entry>, scenes: &[TaskScene]) -> Vec<Entry> {
    let count = session.len().max(1) as f64;
    let mut open: Vec<(usize, &TaskScene)> = scenes.iter().enumerate().collect();
    open.sort_by(|(_, a), (_, b)| a.depth.total_cmp(&b.depth));
    let mut open = open.into_iter().peekable();
    let mut out = Vec::new();
    for (at, entry) in session.into_iter().enumerate() {
        if entry.is_user_message() {
            let due = |(_, scene): &(usize, &TaskScene)| scene.depth <= at as f64 / count;
            while let Some((number, scene)) = open.next_if(due) {
                out.extend(scene_entries(scene, number));
            }
        }
        out.push(entry);
    }
    out.extend(open.flat_map(|(number, scene)| scene_entries(scene, number)));
    out
}

fn scene_entries(scene: &TaskScene, number: usize) -> Vec<Entry> {
    let mut out = Vec::new();
    for (i, said) in scene.said.iter().enumerate() {
        let id = format!("scene-{number}-{i}");
        match said {
            SceneStep::User(text) => out.push(Entry::from_text(id, Role::User, text.as_str())),
            SceneStep::Agent(text) => {
                out.push(Entry::from_text(id, Role::Assistant, text.as_str()))
            }
            SceneStep::Tool {
                name,
                arguments,
                result,
                is_error,
            } => {
                let call = Block::ToolCall {
                    id: id.clone(),
                    name: (*name).to_owned(),
                    arguments: arguments.clone(),
                };
                let result = Block::ToolResult {
                    call: id.clone(),
                    content: result.clone(),
                    is_error: *is_error,
                };
                out.push(block_entry(format!("{id}-call"), Role::Assistant, call));
                out.push(block_entry(format!("{id}-result"), Role::Tool, result));
            }
        }
    }
    out
}

fn block_entry(id: String, role: Role, block: Block) -> Entry {
    Entry {
        id: EntryId(id),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    }
}
