//! A script as the JSONL that Claude Code keeps: one line per block, chained by `parentUuid`.
//!
//! Lines of one message share `message.id` and `requestId`; the result of a call hangs off the line
//! of that call, so parallel calls branch; `toolUseResult` says the answer again in the client's shape.

use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::script::{Call, Part, Script, Spot, Step, Written};
use crate::random::Random;

/// Tokens of the system prompt and tools, which the log leaves out but the usage counts.
const UNLOGGED_TOKENS: usize = 16_800;

struct Session {
    out: Written,
    random: Random,
    clock: Clock,
    common: Map<String, Value>,
    parent: Option<String>,
    context: usize,
    message: Map<String, Value>,
}

/// Where the session took place.
pub(crate) struct Place<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) branch: &'a str,
}

/// Writes the script.
pub(crate) fn write(script: &Script, place: &Place<'_>, random: Random) -> Written {
    let mut session = Session::new(place, random);
    for (step, content) in script.steps.iter().enumerate() {
        let spot = Spot {
            step,
            part: Part::Said,
        };
        match content {
            Step::User(text) => session.user(spot, text),
            Step::Assistant {
                thinking,
                text,
                calls,
            } => {
                session.assistant(spot, thinking.as_deref(), text.as_deref(), calls);
            }
        }
    }
    session.out
}

impl Session {
    fn new(place: &Place<'_>, mut random: Random) -> Session {
        let common = object(json!({
            "isSidechain": false,
            "userType": "external",
            "cwd": place.cwd,
            "sessionId": random.uuid(),
            "version": "2.1.7",
            "gitBranch": place.branch,
        }));
        Session {
            out: Written::default(),
            random,
            clock: Clock::new(),
            common,
            parent: None,
            context: UNLOGGED_TOKENS * 4,
            message: Map::new(),
        }
    }

    fn user(&mut self, spot: Spot, text: &str) {
        if self.parent.is_some() {
            self.turn_duration();
        }
        let uuid = self.random.uuid();
        self.snapshot(&uuid);
        self.context += text.len();
        let line = json!({
            "type": "user",
            "message": {"role": "user", "content": text},
            "thinkingMetadata": {"level": "high", "disabled": false, "triggers": []},
            "todos": [],
        });
        self.chained(Some(spot), line, uuid, 240);
    }

    fn assistant(
        &mut self,
        spot: Spot,
        thinking: Option<&str>,
        text: Option<&str>,
        calls: &[Call],
    ) {
        self.open_message(calls);
        if let Some(thinking) = thinking {
            let signature = self.random.base62(180);
            self.block(
                None,
                json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            );
        }
        if let Some(text) = text {
            self.block(Some(spot), json!({"type": "text", "text": text}));
        }
        let ids: Vec<String> = calls
            .iter()
            .map(|_| format!("toolu_01{}", self.random.base62(22)))
            .collect();
        let mut lines = Vec::new();
        for (i, (call, id)) in calls.iter().zip(&ids).enumerate() {
            let block =
                json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input});
            lines.push(self.block(Some(spot.call(i)), block));
        }
        for (i, ((call, id), line)) in calls.iter().zip(&ids).zip(lines).enumerate() {
            self.result(spot.result(i), call, id, line);
        }
    }

    fn open_message(&mut self, calls: &[Call]) {
        let fresh = self.random.between(120, 3800);
        let cached = (self.context / 4) as u64;
        let asked: usize = calls.iter().map(|call| call.input.to_string().len()).sum();
        self.message = object(json!({
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

    fn block(&mut self, spot: Option<Spot>, block: Value) -> String {
        self.context += block.to_string().len();
        let mut message = self.message.clone();
        message.insert("content".into(), Value::Array(vec![block]));
        let uuid = self.random.uuid();
        let line = json!({"type": "assistant", "message": message});
        self.chained(spot, line, uuid.clone(), 9);
        uuid
    }

    fn result(&mut self, spot: Spot, call: &Call, id: &str, asked_by: String) {
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
        self.chained(Some(spot), line, uuid, 14);
    }

    fn turn_duration(&mut self) {
        self.common.remove("requestId");
        let line = json!({
            "type": "system",
            "subtype": "turn_duration",
            "durationMs": self.random.between(9_000, 400_000),
            "isMeta": false,
        });
        let uuid = self.random.uuid();
        self.chained(None, line, uuid, 2);
    }

    fn snapshot(&mut self, message: &str) {
        let time = self.clock.tick(2, &mut self.random);
        let line = json!({
            "type": "file-history-snapshot",
            "messageId": message,
            "snapshot": {"messageId": message, "trackedFileBackups": {}, "timestamp": time},
            "isSnapshotUpdate": false,
        });
        self.line(None, &line);
    }

    /// Writes a line that follows the one before it.
    fn chained(&mut self, spot: Option<Spot>, content: Value, uuid: String, seconds: u64) {
        let mut line = Map::new();
        line.insert("parentUuid".into(), self.parent.take().into());
        line.extend(self.common.clone());
        line.extend(object(content));
        line.insert("uuid".into(), uuid.clone().into());
        line.insert(
            "timestamp".into(),
            self.clock.tick(seconds, &mut self.random).into(),
        );
        self.parent = Some(uuid);
        self.line(spot, &Value::Object(line));
    }

    fn line(&mut self, spot: Option<Spot>, line: &Value) {
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

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
