//! A script as the rollout JSONL that Codex keeps: `session_meta`, `turn_context`, `response_item`
//! lines that make the context, and `event_msg` lines that repeat some of it for the interface.

use serde_json::{Value, json};

use super::clock::SessionClock;
use super::script::{
    ScriptCall, ScriptPosition, ScriptStep, SessionScript, StepPart, WrittenScript,
};
use crate::random::Random;

const INSTRUCTIONS: &str = "You are a research assistant that works in a terminal. Search before you \
answer, open what you cite, keep notes in files, and say how sure you are. Numbers carry their unit, \
their interval and their source.";

const ENVIRONMENT: &str = "<environment_context>\n  <cwd>/home/dev/heat-review</cwd>\n  \
<approval_policy>on-request</approval_policy>\n  <shell>bash</shell>\n</environment_context>";

struct RolloutLog {
    out: WrittenScript,
    random: Random,
    clock: SessionClock,
    context: usize,
}

/// Writes the script as a rollout of Codex.
pub(crate) fn write_transcript(script: &SessionScript, random: Random) -> WrittenScript {
    let mut rollout = RolloutLog {
        out: WrittenScript::default(),
        random,
        clock: SessionClock::new(),
        context: 9_000,
    };
    rollout.write_head();
    for (step, content) in script.steps.iter().enumerate() {
        let spot = ScriptPosition {
            step,
            part: StepPart::Said,
        };
        match content {
            ScriptStep::User(text) => rollout.write_user(spot, text),
            ScriptStep::Assistant {
                thinking,
                text,
                calls,
            } => {
                rollout.write_assistant(spot, thinking.as_deref(), text.as_deref(), calls);
            }
        }
    }
    rollout.out
}

impl RolloutLog {
    fn write_head(&mut self) {
        let meta = json!({
            "id": self.random.uuid(),
            "timestamp": self.clock.tick(1, &mut self.random),
            "cwd": "/home/dev/heat-review",
            "originator": "codex_cli_rs",
            "cli_version": "0.98.0",
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": INSTRUCTIONS},
            "git": {"commit_hash": self.random.hex(40), "branch": "main"},
        });
        self.write_line("session_meta", None, &meta);
        self.write_item(None, &message_item("user", "input_text", ENVIRONMENT));
    }

    fn write_user(&mut self, spot: ScriptPosition, text: &str) {
        let turn = self.random.uuid();
        let started =
            json!({"type": "task_started", "turn_id": turn, "model_context_window": 258_400});
        self.write_line("event_msg", None, &started);
        let context = json!({
            "turn_id": turn,
            "cwd": "/home/dev/heat-review",
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "workspace-write", "network_access": true},
            "model": "gpt-5.3-codex",
            "summary": "auto",
        });
        self.write_line("turn_context", None, &context);
        self.write_item(Some(spot), &message_item("user", "input_text", text));
        let event = json!({"type": "user_message", "message": text, "images": []});
        self.write_line("event_msg", None, &event);
    }

    fn write_assistant(
        &mut self,
        spot: ScriptPosition,
        thinking: Option<&str>,
        text: Option<&str>,
        calls: &[ScriptCall],
    ) {
        if thinking.is_some() {
            let sealed = self.random.base62(400);
            self.write_item(None, &json!({"type": "reasoning", "summary": [], "content": null, "encrypted_content": sealed}));
        }
        if let Some(text) = text {
            self.write_line(
                "event_msg",
                None,
                &json!({"type": "agent_message", "message": text}),
            );
            self.write_item(Some(spot), &message_item("assistant", "output_text", text));
        }
        let ids: Vec<String> = calls
            .iter()
            .map(|_| format!("call_{}", self.random.base62(24)))
            .collect();
        for (i, (call, id)) in calls.iter().zip(&ids).enumerate() {
            let arguments = call.input.to_string();
            let item = json!({"type": "function_call", "name": call.name, "arguments": arguments, "call_id": id});
            self.write_item(Some(spot.at_call(i)), &item);
        }
        for (i, (call, id)) in calls.iter().zip(&ids).enumerate() {
            let item =
                json!({"type": "function_call_output", "call_id": id, "output": call.output});
            self.write_item(Some(spot.at_result(i)), &item);
        }
        self.write_token_count();
    }

    fn write_token_count(&mut self) {
        let input = self.context as u64 / 4;
        let output = self.random.between(40, 900);
        let usage = json!({
            "input_tokens": input,
            "cached_input_tokens": input * 9 / 10,
            "output_tokens": output,
            "reasoning_output_tokens": output / 3,
            "total_tokens": input + output,
        });
        let info = json!({"last_token_usage": usage, "model_context_window": 258_400});
        self.write_line(
            "event_msg",
            None,
            &json!({"type": "token_count", "info": info, "rate_limits": null}),
        );
    }

    fn write_item(&mut self, spot: Option<ScriptPosition>, payload: &Value) {
        self.context += payload.to_string().len();
        self.write_line("response_item", spot, payload);
    }

    fn write_line(&mut self, kind: &str, spot: Option<ScriptPosition>, payload: &Value) {
        let time = self.clock.tick(20, &mut self.random);
        if let Some(spot) = spot {
            self.out
                .places
                .insert(spot, (self.out.entries, self.out.text.len()));
        }
        let line = json!({"timestamp": time, "type": kind, "payload": payload});
        self.out.text.push_str(&line.to_string());
        self.out.text.push('\n');
        self.out.entries += 1;
    }
}

fn message_item(role: &str, kind: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}
