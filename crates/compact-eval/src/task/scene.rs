//! Scenes: short exchanges that a task weaves into a session.

use compact_core::message::{Block, Entry, EntryId, Meta, Role};

/// Something said at a depth of the session: 0 at the start, 1 at the end.
pub(super) struct Scene {
    pub(super) depth: f64,
    pub(super) said: Vec<Said>,
}

/// One thing said in a scene.
pub(super) enum Said {
    User(String),
    Agent(String),
    Tool {
        name: &'static str,
        arguments: String,
        result: String,
        is_error: bool,
    },
}

impl Scene {
    pub(super) fn new(depth: f64, said: impl IntoIterator<Item = Said>) -> Scene {
        Scene {
            depth,
            said: said.into_iter().collect(),
        }
    }
}

/// A tool that answers well.
pub(super) fn tool(name: &'static str, arguments: String, result: String) -> Said {
    Said::Tool {
        name,
        arguments,
        result,
        is_error: false,
    }
}

/// The session with the scenes in it, each before the first request at or after its depth.
pub(super) fn woven(session: Vec<Entry>, scenes: &[Scene]) -> Vec<Entry> {
    let count = session.len().max(1) as f64;
    let mut open: Vec<(usize, &Scene)> = scenes.iter().enumerate().collect();
    open.sort_by(|(_, a), (_, b)| a.depth.total_cmp(&b.depth));
    let mut open = open.into_iter().peekable();
    let mut out = Vec::new();
    for (at, entry) in session.into_iter().enumerate() {
        if entry.is_user_message() {
            let due = |(_, scene): &(usize, &Scene)| scene.depth <= at as f64 / count;
            while let Some((number, scene)) = open.next_if(due) {
                out.extend(entries(scene, number));
            }
        }
        out.push(entry);
    }
    out.extend(open.flat_map(|(number, scene)| entries(scene, number)));
    out
}

fn entries(scene: &Scene, number: usize) -> Vec<Entry> {
    let mut out = Vec::new();
    for (i, said) in scene.said.iter().enumerate() {
        let id = format!("scene-{number}-{i}");
        match said {
            Said::User(text) => out.push(Entry::text(id, Role::User, text.as_str())),
            Said::Agent(text) => out.push(Entry::text(id, Role::Assistant, text.as_str())),
            Said::Tool {
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
                out.push(block(format!("{id}-call"), Role::Assistant, call));
                out.push(block(format!("{id}-result"), Role::Tool, result));
            }
        }
    }
    out
}

fn block(id: String, role: Role, block: Block) -> Entry {
    Entry {
        id: EntryId(id),
        role,
        blocks: vec![block],
        meta: Meta::default(),
    }
}
