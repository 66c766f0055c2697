//! A session read and written back, and to every provider's body and back: every text, call and
//! result must come along, and the provider must accept the body.

use std::collections::{HashMap, VecDeque};

use anyhow::{Context, Result, bail};
use compact_core::message::{Block, Conversation};
use compact_core::view::View;
use compact_eval::fuzz::HistoryEnd;
use compact_formats::validate::{Provider, Strictness, check as violations};
use compact_formats::{Format, TranscriptScope, convert, parse};
use serde_json::Value;

/// Checks all conversions of a session.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    for scope in [TranscriptScope::Whole, TranscriptScope::Live] {
        let parsed = parse(bytes.to_vec(), None, scope)?;
        let identity = View::identity(&parsed.conversation);
        if parsed.document.emit(&parsed.conversation, &identity)? != bytes {
            bail!("parse, emit: not the bytes that were read");
        }
    }
    let parsed = parse(bytes.to_vec(), None, TranscriptScope::Live)?;
    let own = parsed.document.format();
    if spoken_parts(&parsed.conversation).is_empty() {
        // There is no request that says nothing.
        return Ok(());
    }
    for provider in Provider::ALL {
        check_round_trip(&parsed.conversation, own, provider)
            .with_context(|| format!("convert from {own} to {provider}"))?;
    }
    Ok(())
}

fn check_round_trip(said: &Conversation, own: Format, provider: Provider) -> Result<()> {
    let there = convert(said, provider.format())?.bytes;
    let read = parse(
        there.clone(),
        Some(provider.format()),
        TranscriptScope::Whole,
    )?
    .conversation;
    check_accepted(&read, provider, &there)?;
    check_kept(said, &read)?;
    let back = convert(&read, own).context("back")?;
    let back = parse(back.bytes, Some(own), TranscriptScope::Whole).context("back")?;
    check_kept(said, &back.conversation).context("back")
}

/// Fails when a provider refuses a body for more than how it ends.
pub(super) fn check_accepted(read: &Conversation, provider: Provider, body: &[u8]) -> Result<()> {
    let end = HistoryEnd::of_conversation(read);
    let messages = super::command::count_messages(body)?;
    let found = violations(provider, Strictness::Vendor, body)?;
    match found.iter().find(|v| !end.excuses(v, messages)) {
        Some(broken) => bail!(
            "{} {}: {}",
            broken.rule.id,
            broken.rule.name,
            broken.message
        ),
        None => Ok(()),
    }
}

/// Fails when something said before is not said after.
fn check_kept(before: &Conversation, after: &Conversation) -> Result<()> {
    let mut left: HashMap<ConversationPart, usize> = HashMap::new();
    for said in spoken_parts(after) {
        *left.entry(said).or_default() += 1;
    }
    for said in spoken_parts(before) {
        match left.get_mut(&said) {
            Some(count) if *count > 0 => *count -= 1,
            _ => bail!("lost {}", said.describe()),
        }
    }
    Ok(())
}

#[derive(PartialEq, Eq, Hash)]
enum ConversationPart {
    Text(String),
    Call(String, String),
    /// The answer to a call, which is named by what it asked and not by an id.
    Result(Option<(String, String)>, String),
}

impl ConversationPart {
    /// Returns what it is, without what it says.
    fn describe(&self) -> String {
        match self {
            ConversationPart::Text(text) => format!("a text of {} bytes", text.len()),
            ConversationPart::Call(name, arguments) => {
                format!("a call of {name} with {} bytes", arguments.len())
            }
            ConversationPart::Result(call, text) => format!(
                "a result of {} bytes of {}",
                text.len(),
                call.as_ref().map_or("no call", |(name, _)| name)
            ),
        }
    }
}

/// Returns everything that is said; blank texts say nothing.
fn spoken_parts(conversation: &Conversation) -> Vec<ConversationPart> {
    let mut said = Vec::new();
    // Some agents use an id again: the call that waits longest is answered first.
    let mut calls: HashMap<&str, VecDeque<(String, String)>> = HashMap::new();
    for block in conversation.entries.iter().flat_map(|e| &e.blocks) {
        match block {
            Block::Text(text) if text.trim().is_empty() => {}
            Block::Text(text) => said.push(ConversationPart::Text(text.clone())),
            Block::ToolCall {
                id,
                name,
                arguments,
            } => {
                let arguments = as_object(arguments);
                let open = calls.entry(id).or_default();
                open.push_back((name.clone(), arguments.clone()));
                said.push(ConversationPart::Call(name.clone(), arguments));
            }
            Block::ToolResult { call, content, .. } => {
                let call = calls.get_mut(call.as_str()).and_then(VecDeque::pop_front);
                said.push(ConversationPart::Result(call, content.clone()));
            }
            Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => {}
        }
    }
    said
}

/// Arguments without the white space between their tokens. Free text is wrapped where a provider
/// wants an object.
fn as_object(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(object @ Value::Object(_)) => object.to_string(),
        _ => serde_json::json!({ "input": arguments }).to_string(),
    }
}
