//! The conversation as Claude Code hands it to a function hook, and the view in the same shape.
//!
//! The engine reads and writes request bodies, so rows become messages of one and messages become rows.
//! The agent has a row for each block of an answer and for each result of a tool; those that belong
//! together are one message here and stay one row in the view, or the agent would lose results of calls
//! that were made side by side. Rows of the agent's own are named by their place only where they hold
//! what cannot be written anew: pictures of a person, and the thinking of a tool loop that still runs.
//! Nothing is compacted here.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What the plugin says of a compaction that is about to happen.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CompactEvent {
    /// Where the session is at work.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The agent's name of the session.
    pub session_id: String,
    /// The sub-agent, if it is one's conversation.
    #[serde(default)]
    pub agent_id: Option<String>,
    #[serde(default)]
    model: Value,
    /// What the person who asked for it wants the summary to emphasise.
    #[serde(default)]
    pub instructions: Option<String>,
    messages: Vec<AgentRow>,
}

/// One message of the agent's own list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRow {
    role: String,
    text: String,
    #[serde(default)]
    tool_uses: Vec<RowCall>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_results: Vec<RowResult>,
}

/// A call of a tool in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RowCall {
    tool_use_id: String,
    tool: String,
    input: Value,
}

/// A result of a tool in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RowResult {
    #[serde(rename = "tool_use_id")]
    tool_use_id: String,
    text: String,
    #[serde(default)]
    is_error: bool,
}

/// A row of the view: one of the agent's own, or a new one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ViewRow {
    /// The agent's row at this place.
    Kept {
        /// From 0.
        kept: usize,
    },
    /// A row that was written or shortened.
    New(AgentRow),
}

/// The member of a message that says which row it was; the provider never sees it.
const PLACE: &str = "row";

/// Rows that are one message.
struct RowGroup {
    rows: Range<usize>,
    /// What they say together.
    row: AgentRow,
}

impl CompactEvent {
    /// The name of the session; a sub-agent has one of its own.
    pub(crate) fn session_name(&self) -> String {
        match &self.agent_id {
            Some(agent) => format!("{}/{agent}", self.session_id),
            None => self.session_id.clone(),
        }
    }

    /// The model, which some versions name alone and some with more about it.
    pub(crate) fn model(&self) -> Option<&str> {
        let names = ["/id", "/model", "/name", ""];
        names
            .iter()
            .find_map(|name| self.model.pointer(name)?.as_str())
    }

    /// The conversation as a request body. Rows that show nothing, which hold thinking or pictures alone,
    /// are left out.
    pub(crate) fn to_request_body(&self) -> Value {
        let groups = self.groups();
        let shown = groups.iter().filter(|group| !group.row.is_blank());
        let messages: Vec<Value> = shown
            .map(|group| {
                let (role, content) = (&group.row.role, group.row.to_content());
                json!({"role": role, "content": content, PLACE: group.rows.start})
            })
            .collect();
        json!({"model": self.model(), "messages": messages})
    }

    /// The messages of a view as rows. `None` when one of them has no place in the agent's list.
    pub(crate) fn read_view(&self, messages: &[Value]) -> Option<Vec<ViewRow>> {
        let groups = self.groups();
        let running = self.running_from();
        let mut rows = Vec::new();
        for message in messages {
            let message = message.as_object()?;
            let own = find_unchanged(&groups, message);
            match own.filter(|own| own.row.is_prompt() || own.rows.start >= running) {
                Some(own) => rows.extend(own.rows.clone().map(|kept| ViewRow::Kept { kept })),
                None => rows.push(ViewRow::New(AgentRow::from_message(message)?)),
            }
        }
        Some(rows)
    }

    /// The rows by message: blocks of one answer, and the results of its calls.
    fn groups(&self) -> Vec<RowGroup> {
        let mut groups: Vec<RowGroup> = Vec::new();
        for (place, row) in self.messages.iter().enumerate() {
            match groups.last_mut() {
                Some(last) if last.row.goes_on_with(row) => last.add(place, row),
                _ => groups.push(RowGroup {
                    rows: place..place + 1,
                    row: row.clone(),
                }),
            }
        }
        groups
    }

    /// The first row of the tool loop that still runs; beyond the end where none does.
    fn running_from(&self) -> usize {
        let is_running = |row: &AgentRow| !row.tool_results.is_empty();
        if !self.messages.last().is_some_and(is_running) {
            return self.messages.len();
        }
        let prompt = self.messages.iter().rposition(AgentRow::is_prompt);
        prompt.map_or(0, |place| place + 1)
    }
}

/// The rows behind a message that says what they say.
fn find_unchanged<'g>(
    groups: &'g [RowGroup],
    message: &Map<String, Value>,
) -> Option<&'g RowGroup> {
    let place = message.get(PLACE)?.as_u64()?;
    let found = groups
        .iter()
        .find(|group| group.rows.start as u64 == place)?;
    (message.get("content") == Some(&found.row.to_content())).then_some(found)
}

impl RowGroup {
    fn add(&mut self, place: usize, row: &AgentRow) {
        self.rows.end = place + 1;
        self.row.add_text(&row.text);
        self.row.tool_uses.extend(row.tool_uses.iter().cloned());
        self.row
            .tool_results
            .extend(row.tool_results.iter().cloned());
    }
}

impl AgentRow {
    /// Whether a person or the host says something here.
    fn is_prompt(&self) -> bool {
        self.role == "user" && self.tool_results.is_empty()
    }

    /// Whether the next row is part of the same message. A prompt is always one of its own.
    fn goes_on_with(&self, next: &AgentRow) -> bool {
        self.role == next.role && !self.is_prompt() && !next.is_prompt()
    }

    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty() && self.tool_uses.is_empty() && self.tool_results.is_empty()
    }

    /// Results come first, as the provider wants them.
    fn to_content(&self) -> Value {
        let results = self.tool_results.iter().map(RowResult::to_block);
        let text = (!self.text.is_empty()).then(|| json!({"type": "text", "text": self.text}));
        let calls = self.tool_uses.iter().map(RowCall::to_block);
        Value::Array(results.chain(text).chain(calls).collect())
    }

    fn from_message(message: &Map<String, Value>) -> Option<AgentRow> {
        let mut row = AgentRow {
            role: message.get("role")?.as_str()?.to_owned(),
            text: String::new(),
            tool_uses: Vec::new(),
            tool_results: Vec::new(),
        };
        let blocks = match message.get("content")? {
            Value::String(text) => {
                return Some(AgentRow {
                    text: text.clone(),
                    ..row
                });
            }
            Value::Array(blocks) => blocks,
            _ => return None,
        };
        for block in blocks {
            row.add_block(block)?;
        }
        Some(row)
    }

    fn add_block(&mut self, block: &Value) -> Option<()> {
        let member = |name: &str| block.get(name)?.as_str().map(str::to_owned);
        match block.get("type")?.as_str()? {
            "text" => self.add_text(&member("text")?),
            "tool_use" => self.tool_uses.push(RowCall {
                tool_use_id: member("id")?,
                tool: member("name")?,
                input: block.get("input")?.clone(),
            }),
            "tool_result" => self.tool_results.push(RowResult {
                tool_use_id: member("tool_use_id")?,
                text: read_result_text(block.get("content")?)?,
                is_error: block.get("is_error").and_then(Value::as_bool) == Some(true),
            }),
            _ => return None,
        }
        Some(())
    }
}

impl RowCall {
    fn to_block(&self) -> Value {
        json!({"type": "tool_use", "id": self.tool_use_id, "name": self.tool, "input": self.input})
    }
}

impl RowResult {
    fn to_block(&self) -> Value {
        let (id, text) = (&self.tool_use_id, &self.text);
        let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        if let (true, Some(members)) = (self.is_error, block.as_object_mut()) {
            members.insert("is_error".to_owned(), Value::Bool(true));
        }
        block
    }
}

/// The text of a result, which an edit may have made a list of blocks.
fn read_result_text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let texts = content.as_array()?.iter();
    let texts: Option<Vec<&str>> = texts.map(|block| block.get("text")?.as_str()).collect();
    Some(texts?.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prompt, thinking, words, two calls side by side with their results, and an answer.
    fn event() -> CompactEvent {
        let call =
            |id: &str| json!({"tool_use_id": id, "tool": "Read", "input": {"file_path": "a.txt"}});
        let result =
            |id: &str, bad: bool| json!({"tool_use_id": id, "text": "a line", "isError": bad});
        serde_json::from_value(json!({
            "session_id": "s1",
            "model": {"id": "claude-sonnet-4-5"},
            "messages": [
                {"role": "user", "text": "Look at a.txt.", "toolUses": []},
                {"role": "assistant", "text": "", "toolUses": []},
                {"role": "assistant", "text": "I read it.", "toolUses": []},
                {"role": "assistant", "text": "", "toolUses": [call("t1")]},
                {"role": "assistant", "text": "", "toolUses": [call("t2")]},
                {"role": "user", "text": "", "toolUses": [], "toolResults": [result("t1", true)]},
                {"role": "user", "text": "", "toolUses": [], "toolResults": [result("t2", false)]},
                {"role": "assistant", "text": "Done.", "toolUses": []},
            ],
        }))
        .unwrap()
    }

    fn messages(event: &CompactEvent) -> Vec<Value> {
        let body = event.to_request_body();
        body["messages"].as_array().unwrap().clone()
    }

    fn view_json(event: &CompactEvent, messages: &[Value]) -> Value {
        serde_json::to_value(event.read_view(messages).unwrap()).unwrap()
    }

    #[test]
    fn rows_that_belong_together_are_one_message() {
        let block = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "a.txt"}});
        let expected = json!({
            "model": "claude-sonnet-4-5",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look at a.txt."}], "row": 0},
                {"role": "assistant", "row": 1, "content": [
                    {"type": "text", "text": "I read it."}, block("t1"), block("t2"),
                ]},
                {"role": "user", "row": 5, "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "a line", "is_error": true},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "a line"},
                ]},
                {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "row": 7},
            ],
        });
        assert_eq!(event().to_request_body(), expected);
    }

    #[test]
    fn a_view_has_one_row_for_each_message_and_prompts_are_the_agents_own() {
        let event = event();
        let mut view = messages(&event);
        view[2]["content"][0]["content"] = json!([{"type": "text", "text": "a"}]);
        view.insert(1, json!({"role": "user", "content": "A summary."}));
        let call =
            |id: &str| json!({"tool_use_id": id, "tool": "Read", "input": {"file_path": "a.txt"}});
        let expected = json!([
            {"kept": 0},
            {"role": "user", "text": "A summary.", "toolUses": []},
            {"role": "assistant", "text": "I read it.", "toolUses": [call("t1"), call("t2")]},
            {"role": "user", "text": "", "toolUses": [], "toolResults": [
                {"tool_use_id": "t1", "text": "a", "isError": true},
                {"tool_use_id": "t2", "text": "a line", "isError": false},
            ]},
            {"role": "assistant", "text": "Done.", "toolUses": []},
        ]);
        assert_eq!(view_json(&event, &view), expected);
    }

    #[test]
    fn a_tool_loop_that_still_runs_keeps_its_thinking() {
        let mut event = event();
        event.messages.pop();
        let places: Vec<Value> = (0..7).map(|kept| json!({"kept": kept})).collect();
        assert_eq!(view_json(&event, &messages(&event)), Value::Array(places));
    }

    /// The next compaction must find the view that this one left.
    #[test]
    fn the_rows_of_a_view_are_read_again_as_they_were_written() {
        let event = event();
        let first = messages(&event);
        let rows = event.read_view(&first).unwrap().into_iter();
        let rows = rows.map(|row| match row {
            ViewRow::Kept { kept } => event.messages[kept].clone(),
            ViewRow::New(row) => row,
        });
        let again = CompactEvent {
            messages: rows.collect(),
            ..event.clone()
        };
        let content = |messages: Vec<Value>| -> Vec<Value> {
            messages.into_iter().map(|m| m["content"].clone()).collect()
        };
        assert_eq!(content(messages(&again)), content(first));
    }

    #[test]
    fn a_view_with_what_a_row_cannot_hold_is_none() {
        let image = json!({"role": "user", "content": [{"type": "image", "source": {}}]});
        assert_eq!(event().read_view(&[image]), None);
    }

    #[test]
    fn a_sub_agent_has_a_session_of_its_own() {
        let mut event = event();
        assert_eq!(event.session_name(), "s1");
        event.agent_id = Some("a7".to_owned());
        assert_eq!(event.session_name(), "s1/a7");
    }
}
