//! A script as the body of an OpenAI chat request: `model`, `messages` with a system prompt, `tools`.

use serde_json::{Value, json};

use super::script::{
    ScriptCall, ScriptPosition, ScriptStep, SessionScript, StepPart, WrittenScript,
};
use crate::random::Random;

/// The instructions and tools around the conversation.
pub(crate) struct ChatSetup {
    pub(crate) system: String,
    pub(crate) tools: Vec<Value>,
}

/// Writes the script, one message per line so that a diff of two sessions can be read.
pub(crate) fn write_transcript(
    script: &SessionScript,
    frame: &ChatSetup,
    mut random: Random,
) -> WrittenScript {
    let mut out = WrittenScript {
        text: "{\"model\": \"gpt-4.1\", \"messages\": [".into(),
        ..WrittenScript::default()
    };
    write_message(
        &mut out,
        None,
        &json!({"role": "system", "content": frame.system}),
    );
    for (step, content) in script.steps.iter().enumerate() {
        let spot = ScriptPosition {
            step,
            part: StepPart::Said,
        };
        match content {
            ScriptStep::User(text) => write_message(
                &mut out,
                Some(&[spot]),
                &json!({"role": "user", "content": text}),
            ),
            ScriptStep::Assistant { text, calls, .. } => {
                write_assistant(&mut out, spot, text.as_deref(), calls, &mut random);
            }
        }
    }
    out.text.push_str("\n], \"tools\": [");
    for (i, tool) in frame.tools.iter().enumerate() {
        out.text.push_str(if i == 0 { "\n" } else { ",\n" });
        out.text.push_str(&tool.to_string());
    }
    out.text.push_str("\n], \"temperature\": 0.2}\n");
    out
}

fn write_assistant(
    out: &mut WrittenScript,
    spot: ScriptPosition,
    text: Option<&str>,
    calls: &[ScriptCall],
    random: &mut Random,
) {
    let ids: Vec<String> = calls
        .iter()
        .map(|_| format!("call_{}", random.base62(24)))
        .collect();
    let mut said = json!({"role": "assistant", "content": text});
    if let (false, Some(said)) = (calls.is_empty(), said.as_object_mut()) {
        let calls = calls.iter().zip(&ids).map(|(call, id)| {
            let arguments = call.input.to_string();
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
        });
        said.insert("tool_calls".into(), calls.collect());
    }
    let spots: Vec<ScriptPosition> = std::iter::once(spot)
        .chain((0..calls.len()).map(|i| spot.at_call(i)))
        .collect();
    write_message(out, Some(&spots), &said);
    for (i, (call, id)) in calls.iter().zip(&ids).enumerate() {
        let result = json!({"role": "tool", "tool_call_id": id, "content": call.output});
        write_message(out, Some(&[spot.at_result(i)]), &result);
    }
}

fn write_message(out: &mut WrittenScript, spots: Option<&[ScriptPosition]>, message: &Value) {
    out.text
        .push_str(if out.entries == 0 { "\n" } else { ",\n" });
    for spot in spots.unwrap_or_default() {
        out.places.insert(*spot, (out.entries, out.text.len()));
    }
    out.text.push_str(&message.to_string());
    out.entries += 1;
}
