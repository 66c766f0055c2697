// The types of docs/events.d.ts, judged by the compiler with events of the real program.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Scene, root, turns } from "./scene.mjs";

const compiler = join(process.env.COMPACT_BROWSER_PACKAGES ?? "", "node_modules/typescript/lib/tsc.js");
const golden = readFileSync(join(root, "crates/compact-core/src/event/testdata/events.jsonl"), "utf8");
const logged = { RUST_LOG: "info", COMPACT_TELEMETRY_FORMAT: "json" };
let scene, events;

const parse = (text) => text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));

// What a command says on stderr.
function listen(args, input, more = {}) {
  const ended = scene.spawn(args, { input, env: scene.environment({ ...logged, ...more }) });
  assert.equal(ended.status, 0, ended.stderr);
  return parse(ended.stderr);
}

// Events of a compaction, a search, a hook, a run, and of resets that end well, badly and worse.
function collectEvents() {
  scene.write("chat.json", JSON.stringify({ model: "gpt-5", messages: turns(1, 60) }));
  const compacted = listen(["compact", "chat.json", "--session", "chat", "--budget", "9000", "-o", "less.json"]);
  const recalled = listen(["recall", "SHOP-1003"]);
  copyFileSync(join(root, "examples/coding-session.jsonl"), scene.path("coding.jsonl"));
  const payload = { session_id: "hooked", transcript_path: scene.path("coding.jsonl"), cwd: scene.folder, hook_event_name: "PreCompact", trigger: "auto" };
  const hooked = listen(["hook"], JSON.stringify(payload));
  scene.writeAgent();
  const run = listen(["run", "--session", "r", "--agent", "./agent", "--prompt", "task.md", "--until", "READY"]);
  return [...compacted, ...recalled, ...hooked, ...run, ...reset()];
}

// A session that is reset, and one whose summarizer does not answer until it is over its limit.
function reset() {
  const long = "the parser reads a line and keeps a token ".repeat(60);
  const send = (count) => Array.from({ length: count }, (_, n) => JSON.stringify({ do: "send", message: `${n}: ${long}` })).join("\n");
  const said = (args) => parse(scene.run(["reset", "--model", "gpt-5", ...args], { input: send(16) })).filter((line) => line.event);
  scene.write("small.yaml", "model: gpt-5\nmax_context_tokens: 6000\n");
  scene.write("deaf.yaml", "model: gpt-5\nmax_context_tokens: 6000\nsummarizer:\n  kind: openai\n  url: http://127.0.0.1:9/v1\n  model: m\n  retries: 0\n  api_key_env: PATH\n");
  return [...said(["--session", "well", "--config", "small.yaml"]), ...said(["--session", "badly", "--config", "deaf.yaml"])];
}

// Lets the compiler judge a program that has these events as values.
function compile(values, more = "") {
  copyFileSync(join(root, "docs/events.d.ts"), scene.path("events.d.ts"));
  scene.write("reader.ts", `import type { CompactEvent, EventOf } from "./events.js";\nexport const events: CompactEvent[] = [\n${values.map((value) => `${JSON.stringify(value)},\n`).join("")}];\n${more}`);
  const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2022"];
  const ended = spawnSync(process.execPath, [compiler, ...flags, scene.path("reader.ts")], { encoding: "utf8", cwd: scene.folder });
  return ended.stdout;
}

before(() => {
  scene = new Scene();
  events = collectEvents();
});

after(() => scene.close());

test("events of the program, and a sample of every kind, have the types that are published", () => {
  const names = new Set(events.map((event) => event.event));
  for (const name of ["compact.completed", "compact.recalled", "hook_archived", "run_finished", "context_compaction_started", "context_compacted", "context_compaction_failed"]) {
    assert.ok(names.has(name), `no ${name} among ${[...names].join(", ")}`);
  }
  assert.equal(compile([...events, ...parse(golden)]), "");
});

test("a reader of events is told what each kind has", () => {
  const reader = `
export function show(event: CompactEvent): string {
  switch (event.event) {
    case "context_compacted": return \`\${event.tokens_before} → \${event.tokens_after} of \${event.max_tokens}, the \${event.compaction_count}th\`;
    case "context_compaction_failed": return event.context_exceeded ? "dead" : event.error;
    case "run_finished": return event.run_id + event.counters.usage.input_tokens.toFixed();
    case "hook_archived": return event.path;
    default: return event.session_id;
  }
}
export const done = (event: EventOf<"compact.completed">): number => event.duration_ms;
`;
  assert.equal(compile(events.slice(0, 3), reader), "");
  const wrong = compile([], `export const no = (event: EventOf<"context_compacted">) => event.error;
export const gone: CompactEvent["event"] = "context_pruned";
`);
  assert.match(wrong, /TS2339.*error/);
  assert.match(wrong, /TS2322.*context_pruned/);
});

test("a wrong type is found", () => {
  const one = events.find((event) => event.event === "context_compacted");
  const without = ({ tokens_after: _, ...rest }) => rest;
  const wrong = [without(one), { ...one, tokens_after: "9" }, { ...one, more: 1 }, { ...one, event: "context_pruned" }, { ...one, severity: "fatal" }];
  // Two lines come before the values.
  const lines = [...compile([one, ...wrong]).matchAll(/reader\.ts\((\d+),\d+\): error TS2/g)].map((found) => Number(found[1]) - 3);
  assert.deepEqual([...new Set(lines)].sort(), wrong.map((_, at) => at + 1));
});
