//! A script as the JSONL that Claude Code keeps: one line per block, chained by `parentUuid`.
//!
//! Lines of one message share `message.id` and `requestId`; the result of a call hangs off the line
//! of that call, so parallel calls branch; `toolUseResult` says the answer again in the client's shape.

use serde_json::{Map, Value, json};

use super::clock::SessionClock;
use super::script::{
    ScriptCall, ScriptPosition, ScriptStep, SessionScript, StepPart, WrittenScript,
};
use crate::random::Random;

/// Tokens of the system prompt and tools, which the log leaves out but the usage counts.
const UNLOGGED_TOKENS: usize = 16_800;

struct ClaudeCodeLog {
    out: WrittenScript,
    random: Random,
    clock: SessionClock,
    common: Map<String, Value>,
    parent: Option<String>,
    context: usize,
    message: Map<String, Value>,
}

/// The folder and branch of a session.
pub(crate) struct WorkLocation<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) branch: &'a str,
}

/// Writes the script as a transcript of Claude Code.
pub(crate) fn write_transcript(
    script: &SessionScript,
    place: &WorkLocation<'_>,
    random: Random,
) -> WrittenScript {
    let mut session = ClaudeCodeLog::new(place, random);
    for (step, content) in script.steps.iter().enumerate() {
        let spot = ScriptPosition {
            step,
            part: StepPart::Said,
        };
        match content {
            ScriptStep::User(text) => session.write_user(spot, text),
            ScriptStep::Assistant {
                thinking,
                text,
                calls,
            } => {
                session.write_assistant(spot, thinking.as_deref(), text.as_deref(), calls);
            }
        }
    }
    session.out
}

impl ClaudeCodeLog {
    fn new(place: &WorkLocation<'_>, mut random: Random) -> ClaudeCodeLog {
        let common = into_object(json!({
            "isSidechain": false,
            "userType": "external",
            "cwd": place.cwd,
            "sessionId": random.uuid(),
            "version": "2.1.7",
            "gitBranch": place.branch,
        }));
        ClaudeCodeLog {
            out: WrittenScript::default(),
            random,
            clock: SessionClock::new(),
            common,
            parent: None,
            context: UNLOGGED_TOKENS * 4,
            message: Map::new(),
        }
    }

    fn write_user(&mut self, spot: ScriptPosition, text: &str) {
        if self.parent.is_some() {
            self.write_turn_duration();
        }
        let uuid = self.random.uuid();
        self.write_snapshot(&uuid);
        self.context += text.len();
        let line = json!({
            "type": "user",
            "message": {"role": "user", "content": text},
            "thinkingMetadata": {"level": "high", "disabled": false, "triggers": []},
            "todos": [],
        });
        self.write_chained(Some(spot), line, uuid, 240);
    }

    fn write_assistant(
        &mut self,
        spot: ScriptPosition,
        thinking: Option<&str>,
        text: Option<&str>,
        calls: &[ScriptCall],
    ) {
        self.open_message(calls);
        if let Some(thinking) = thinking {
            let signature = self.random.base62(180);
            self.write_block(
                None,
                json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            );
        }
        if let Some(text) = text {
            self.write_block(Some(spot), json!({"type": "text", "text": text}));
        }
        let ids: Vec<String> = calls
            .iter()
            .map(|_| format!("toolu_01{}", self.random.base62(22)))
            .collect();
        let mut lines = Vec::new();
        for (i, (call, id)) in calls.iter().zip(&ids).enumerate() {
            let block =
                json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input});
            lines.push(self.write_block(Some(spot.at_call(i)), block));
        }
        for (i, ((call, id), line)) in calls.iter().zip(&ids).zip(lines).enumerate() {
            self.write_result(spot.at_result(i), call, id, line);
        }
    }

    fn open_message(&mut self, calls: &[ScriptCall]) {
        let fresh = self.random.between(120, 3800);
        let cached = (self.context / 4) as u64;
        let asked: usize = calls.iter().map(|call| call.input.to_string().len()).sum();
        self.message = into_object(json!({
            "model": "claude-sonnet-4-5-20250929",
            "id": format!("msg_01{}", self.random.base62(22)),
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {
                "input_tokens": self.random.between(1, 12),
                "cache_creation_input_tokens": fresh,
                "cache_read_input_tokens": cached.saturating_sub(fresh),
                "output_tokens": asked as u64 / 4 + self.random.between(20, 90),
                "service_tier": "standard",
            },
        }));
        self.common.insert(
            "requestId".into(),
            format!("req_011C{}", self.random.base62(20)).into(),
        );
    }

    fn write_block(&mut self, spot: Option<ScriptPosition>, block: Value) -> String {
        self.context += block.to_string().len();
        let mut message = self.message.clone();
        message.insert("content".into(), Value::Array(vec![block]));
        let uuid = self.random.uuid();
        let line = json!({"type": "assistant", "message": message});
        self.write_chained(spot, line, uuid.clone(), 9);
        uuid
    }

    fn write_result(
        &mut self,
        spot: ScriptPosition,
        call: &ScriptCall,
        id: &str,
        asked_by: String,
    ) {
        self.context += call.output.len();
        self.common.remove("requestId");
        let mut content = json!({"tool_use_id": id, "type": "tool_result", "content": call.output});
        if let (true, Some(content)) = (call.failed, content.as_object_mut()) {
            content.insert("is_error".into(), true.into());
        }
        let line = json!({
            "type": "user",
            "message": {"role": "user", "content": [content]},
            "toolUseResult": call.detail,
            "sourceToolAssistantUUID": asked_by,
        });
        self.parent = Some(asked_by);
        let uuid = self.random.uuid();
        self.write_chained(Some(spot), line, uuid, 14);
    }

    fn write_turn_duration(&mut self) {
        self.common.remove("requestId");
        let line = json!({
            "type": "system",
            "subtype": "turn_duration",
            "durationMs": self.random.between(9_000, 400_000),
            "isMeta": false,
        });
        let uuid = self.random.uuid();
        self.write_chained(None, line, uuid, 2);
    }

    fn write_snapshot(&mut self, message: &str) {
        let time = self.clock.tick(2, &mut self.random);
        let line = json!({
            "type": "file-history-snapshot",
            "messageId": message,
            "snapshot": {"messageId": message, "trackedFileBackups": {}, "timestamp": time},
            "isSnapshotUpdate": false,
        });
        self.write_line(None, &line);
    }

    /// Writes a line that follows the one before it.
    fn write_chained(
        &mut self,
        spot: Option<ScriptPosition>,
        content: Value,
        uuid: String,
        seconds: u64,
    ) {
        let mut line = Map::new();
        line.insert("parentUuid".into(), self.parent.take().into());
        line.extend(self.common.clone());
        line.extend(into_object(content));
        line.insert("uuid".into(), uuid.clone().into());
        line.insert(
            "timestamp".into(),
            self.clock.tick(seconds, &mut self.random).into(),
        );
        self.parent = Some(uuid);
        self.write_line(spot, &Value::Object(line));
    }

    fn write_line(&mut self, spot: Option<ScriptPosition>, line: &Value) {
        if let Some(spot) = spot {
            self.out
                .places
                .insert(spot, (self.out.entries, self.out.text.len()));
        }
        self.out.text.push_str(&line.to_string());
        self.out.text.push('\n');
        self.out.entries += 1;
    }
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
