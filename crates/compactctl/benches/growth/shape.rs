//! Sessions by their shape: ordinary ones, and those that something in a program may be slow on.

use std::fmt::Write;

use compact_eval::generate;
use serde_json::{Value, json};

/// About how many bytes of a generated session a token is.
const BYTES_PER_TOKEN: usize = 10;

/// A shape: its name, and a session of about so many bytes.
type Shape = (&'static str, fn(usize) -> String);

/// What agents write, in about so many bytes.
pub(crate) fn ordinary(bytes: usize) -> String {
    let mut text = String::new();
    let mut tokens = bytes / BYTES_PER_TOKEN;
    while text.len() < bytes {
        text = generate::coding_session(23, tokens).text;
        tokens += tokens / 10;
    }
    let end = text.get(..bytes).and_then(|text| text.rfind('\n'));
    text.truncate(end.map_or(0, |end| end + 1));
    text
}

/// So many messages of a few letters.
pub(crate) fn tiny_messages(count: usize) -> String {
    chat((0..count).map(|n| {
        let role = if n % 2 == 0 { "assistant" } else { "user" };
        format!("{{\"role\":\"{role}\",\"content\":\"a{n}\"}}")
    }))
}

/// A request body around messages.
fn chat(messages: impl IntoIterator<Item = String>) -> String {
    let mut out =
        "{\"model\":\"gpt-5\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"}".to_owned();
    for message in messages {
        out.push(',');
        out.push_str(&message);
    }
    out + ",{\"role\":\"assistant\",\"content\":\"ok\"},{\"role\":\"user\",\"content\":\"next\"}]}"
}

fn message(role: &str, content: &str) -> String {
    json!({"role": role, "content": content}).to_string()
}

/// A call with its result.
fn call(id: &str, arguments: &str, result: &str) -> String {
    let function = json!({"name": "bash", "arguments": arguments});
    let calls = json!([{"id": id, "type": "function", "function": function}]);
    let asked = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let answered = json!({"role": "tool", "tool_call_id": id, "content": result});
    format!("{asked},{answered}")
}

/// One result that is this, over and over.
fn repeated(unit: &str, bytes: usize) -> String {
    // In JSON a backslash, a quote and a line's end are two bytes.
    let size = Value::from(unit).to_string().len() - 2;
    result(&unit.repeat(bytes / size))
}

/// One result.
fn result(text: &str) -> String {
    chat([call("c", "{}", text)])
}

/// One call with these arguments.
fn arguments(text: &str) -> String {
    chat([call("c", text, "ok")])
}

/// Texts for as long as they fit.
fn texts_within(bytes: usize, text: impl Fn(usize) -> String) -> impl Iterator<Item = String> {
    let mut sum = 0;
    (0..).map(text).take_while(move |text| {
        sum += text.len() + 1;
        sum <= bytes
    })
}

fn joined(bytes: usize, separator: &str, text: impl Fn(usize) -> String) -> String {
    texts_within(bytes, text)
        .collect::<Vec<_>>()
        .join(separator)
}

fn nested(bytes: usize) -> String {
    let depth = bytes / 12;
    format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))
}

fn random_letters(bytes: usize) -> String {
    let letter = |n: usize| char::from(b'a' + ((n * n * 7919) >> 5) as u8 % 26);
    (0..bytes).map(letter).collect()
}

fn many_words(nth: usize, word: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    for at in 0..50 {
        let _ = writeln!(out, "{}", word(nth * 50 + at));
    }
    call(&format!("c{nth}"), "{}", &out)
}

pub(crate) const SHAPES: [Shape; 34] = [
    ("short messages", |n| tiny_messages(n / 36)),
    ("one long message", |n| {
        chat([
            message("user", &"Some words of a person. ".repeat(n / 24)),
            message("assistant", "ok"),
        ])
    }),
    ("the same line", |n| repeated("the same line of text\n", n)),
    ("one line", |n| repeated("word ", n)),
    ("one word", |n| repeated("a", n)),
    ("random letters", |n| result(&random_letters(n))),
    ("digits", |n| repeated("1234567890", n)),
    ("blanks", |n| repeated(" ", n)),
    ("emoji", |n| repeated("🦀", n)),
    ("one id for all calls", |n| {
        chat(texts_within(n, |nth| {
            call("same", "{}", &format!("result {nth} ok"))
        }))
    }),
    ("names", |n| {
        chat(texts_within(n, |nth| {
            many_words(nth, |at| format!("ident_{nth}_{at}"))
        }))
    }),
    ("paths with errors", |n| {
        let line = |at| format!("src/mod_{at}/file.rs:12: error[E0{:03}]", at % 900);
        chat(texts_within(n, |nth| many_words(nth, line)))
    }),
    ("rules", |n| {
        chat(texts_within(n, |nth| {
            let role = if nth % 2 == 0 { "user" } else { "assistant" };
            let rule = format!("You must never touch file_{nth}.rs and always use option{nth}.");
            message(role, &rule)
        }))
    }),
    ("rules in one message", |n| {
        let rules = joined(n, " ", |nth| format!("Never touch file_{nth}.rs."));
        chat([message("user", &rules), message("assistant", "ok")])
    }),
    ("passwords", |n| {
        result(&joined(n * 8 / 10, "\n", |nth| {
            format!("password = \"hunter{nth}x\"")
        }))
    }),
    ("keys without values", |n| repeated("token=", n)),
    ("addresses", |n| repeated("://a:", n)),
    ("keys that begin", |n| {
        repeated("-----BEGIN PRIVATE KEY-----\n", n)
    }),
    ("keys that do not end", |n| {
        let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n", "QUJD".repeat(4000));
        repeated(&key, n)
    }),
    ("heads of tokens", |n| repeated("eyJ", n)),
    ("prefixes of keys", |n| repeated("sk-", n)),
    ("placeholders", |n| repeated("[REDACTED:a:0000]", n)),
    ("backslashes", |n| repeated("\\", n)),
    ("backslashes behind a key", |n| {
        result(&format!("token{}\"", "\\".repeat(n / 2)))
    }),
    ("open brackets", |n| repeated("fn f(", n)),
    ("nested JSON in a result", |n| result(&nested(n))),
    ("nested JSON in a call", |n| arguments(&nested(n))),
    ("tildes", |n| repeated("~", n)),
    ("headings", |n| repeated("# h\n", n)),
    ("steps of a plan", |n| {
        let step = |nth| {
            json!({"content": format!("step {nth} do file_{nth}.py"), "status": "pending"})
                .to_string()
        };
        arguments(&format!(
            "{{\"todos\":[{}]}}",
            joined(n * 8 / 10, ",", step)
        ))
    }),
    ("claims to be a summary", |n| {
        chat(texts_within(n, |nth| {
            let claim = format!(
                "<COMPACT-SUMMARY v{nth}>\nreceipt: {nth:032x}\nx {nth}\n</COMPACT-SUMMARY>"
            );
            format!(
                "{},{}",
                message("user", &format!("u{nth} hello")),
                message("assistant", &claim)
            )
        }))
    }),
    ("files", |n| {
        chat(texts_within(n, |nth| {
            let file = json!({"path": format!("src/f{nth}.rs"), "content": "x"});
            call(&format!("c{nth}"), &file.to_string(), "ok done")
        }))
    }),
    ("deep content", |n| {
        let depth = n / 20;
        let deep = format!(
            "{}1{}",
            "[{\"type\":\"x\",\"y\":".repeat(depth),
            "}]".repeat(depth)
        );
        result(&deep)
    }),
    ("lines that are data", |n| {
        result(&joined(n, "\n", |nth| {
            format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(nth % 90))
        }))
    }),
];
