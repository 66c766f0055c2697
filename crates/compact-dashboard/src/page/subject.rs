//! What an entry is about, on its line: the tools that it calls or that answer in it, each named once.

use compact::overview::EntrySubject;
use maud::{Markup, html};

use crate::text::foreign;

/// How many calls of an entry its line names.
const NAMED: usize = 3;

/// Shows the tools.
pub(crate) fn render_tools(subject: &EntrySubject) -> Markup {
    let tools = subject.calls.iter().map(|call| (call.tool.as_str(), None));
    render_distinct(tools)
}

/// Shows the tools, each with the file that it was called for.
pub(crate) fn render_calls(subject: &EntrySubject) -> Markup {
    let calls = subject.calls.iter();
    render_distinct(calls.map(|call| (call.tool.as_str(), call.path.as_deref())))
}

fn render_distinct<'a>(calls: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> Markup {
    let mut named: Vec<(&str, Option<&str>)> = Vec::new();
    for call in calls {
        if !named.contains(&call) {
            named.push(call);
        }
    }
    html! {
        @for (tool, path) in named.iter().take(NAMED) {
            " · " (foreign(tool))
            @if let Some(path) = path { " · " code { (foreign(path)) } }
        }
        @if named.len() > NAMED { " and " (named.len() - NAMED) " more" }
    }
}
