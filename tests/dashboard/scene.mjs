// A place of its own with archives that the real command, hook, run and gateway made, and a dashboard over them.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const program = process.env.COMPACT_PROGRAM ?? join(root, "target/debug/compactctl");

const files = ["src/checkout/cart.rs", "src/checkout/tax.rs", "src/payment/stripe.rs", "migrations/0042_orders.sql"];

// Turns of an agent at work on a shop: requests, tool calls with long answers, conclusions.
export function turns(from, count) {
  const messages = [];
  for (let n = from; n < from + count; n += 1) {
    const path = files[n % files.length];
    const lines = Array.from({ length: 18 + (n % 7) * 9 }, (_, i) => `${i + 1}: let total_${n}_${i} = cart.sum() + ${n * i};`);
    messages.push(
      { role: "user", content: `Step ${n}: make ${path} round to cents. Never touch the table billing_events.` },
      { role: "assistant", content: null, tool_calls: [{ id: `call_${n}`, type: "function", function: { name: n % 3 ? "read_file" : "run_tests", arguments: JSON.stringify({ path }) } }] },
      { role: "tool", tool_call_id: `call_${n}`, content: lines.join("\n") },
      { role: "assistant", content: `Step ${n} is done: ${path} rounds half to even. The failure was E0${300 + n} in line ${n + 7}; ticket SHOP-${1000 + n}.` },
    );
  }
  return messages;
}

export class Scene {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "compact-dashboard-"));
    this.store = join(this.folder, "store");
    this.children = [];
    this.servers = [];
  }

  environment(more = {}) {
    return { PATH: process.env.PATH, HOME: this.folder, XDG_CONFIG_HOME: join(this.folder, "config"), COMPACT_STORAGE_PATH: this.store, NO_COLOR: "1", ...more };
  }

  path(name) {
    return join(this.folder, name);
  }

  write(name, text) {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), text);
    return this.path(name);
  }

  run(args, options = {}) {
    return execFileSync(program, args, { cwd: this.folder, env: this.environment(), encoding: "utf8", maxBuffer: 1 << 28, stdio: ["pipe", "pipe", "pipe"], ...options });
  }

  // The same with what it says on stderr.
  spawn(args, options = {}) {
    return spawnSync(program, args, { cwd: this.folder, env: this.environment(), encoding: "utf8", maxBuffer: 1 << 28, ...options });
  }

  json(args) {
    return JSON.parse(this.run([...args, "--json"]));
  }

  // Compacts a chat twice: the second time what the first one left, with new turns behind it.
  compactTwice(session, first = turns(1, 60), second = turns(61, 60)) {
    const system = { role: "system", content: "You are a careful engineer." };
    const body = (messages) => JSON.stringify({ model: "gpt-5", messages });
    const file = session.replace(/[^\w-]/g, "_");
    this.write(`${file}.json`, body([system, ...first]));
    const one = this.json(["compact", `${file}.json`, "--session", session, "--budget", "9000", "-o", `${file}-1.json`]);
    const left = JSON.parse(readFileSync(this.path(`${file}-1.json`), "utf8"));
    this.write(`${file}-2.json`, body([...left.messages, ...second]));
    const two = this.json(["compact", `${file}-2.json`, "--session", session, "--budget", "9000", "-o", `${file}-3.json`]);
    return [one, two];
  }

  // What Claude Code sends before it compacts by itself.
  callHook(session, transcript) {
    const payload = { session_id: session, transcript_path: transcript, cwd: this.folder, hook_event_name: "PreCompact", trigger: "auto" };
    this.run(["hook"], { input: JSON.stringify(payload) });
  }

  // An agent that speaks the small protocol, and a task for it.
  writeAgent() {
    this.write("task.md", "Fix the parser. Never touch the table billing_events.");
    this.write("agent", `#!/bin/sh
while read -r line; do
  printf '%s\\n' '{"type":"tool_call","id":"c","name":"Bash","arguments":{"command":"make parser"}}'
  printf '%s\\n' '{"type":"tool_result","id":"c","content":"ok"}'
  printf '%s\\n' '{"type":"text","text":"All of it is READY."}'
  printf '%s\\n' '{"type":"result"}'
done
`);
    chmodSync(this.path("agent"), 0o755);
  }

  runAgent(session) {
    this.writeAgent();
    this.run(["run", "--session", session, "--agent", "./agent", "--prompt", "task.md", "--until", "READY"]);
  }

  // Starts a program that says where it listens.
  async start(args, words, more = {}) {
    const child = spawn(program, args, { cwd: this.folder, env: this.environment(more), stdio: ["ignore", "ignore", "pipe"] });
    this.children.push(child);
    const address = await new Promise((resolve, reject) => {
      let said = "";
      child.stderr.on("data", (text) => {
        said += text;
        const found = said.match(words);
        if (found) resolve(found[1]);
      });
      child.on("exit", (code) => reject(new Error(`${args.join(" ")} ended with ${code}: ${said}`)));
    });
    return { child, address };
  }

  // Opens the program on a terminal of its own.
  open(args) {
    // The shell would answer Ctrl-C as well.
    const command = `exec ${[program, ...args].map((word) => `'${word}'`).join(" ")}`;
    const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], { cwd: this.folder, env: this.environment({ TERM: "xterm" }), stdio: ["pipe", "pipe", "inherit"] });
    this.children.push(child);
    let text = "";
    const waiting = [];
    child.stdout.on("data", (part) => {
      text += part;
      for (const [words, done] of waiting) if (text.includes(words)) done();
    });
    const saw = (words) => new Promise((done) => { waiting.push([words, done]); if (text.includes(words)) done(); });
    const ended = new Promise((done) => child.on("exit", (code) => done([code, text])));
    return { saw, ended, write: (keys) => child.stdin.write(keys) };
  }

  async dashboard(args = [], more = {}) {
    const { address } = await this.start(["dashboard", "--listen", "127.0.0.1:0", ...args], /(http:\/\/\S+?)\/\n/, more);
    return address;
  }

  // A server of our own that answers as a test wants.
  async serve(answer) {
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (part) => { body += part; });
      request.on("end", () => answer(request, response, body));
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    this.servers.push(server);
    return `http://127.0.0.1:${server.address().port}`;
  }

  async close() {
    for (const child of this.children) {
      const ended = child.exitCode === null ? new Promise((done) => child.once("exit", done)) : null;
      child.kill("SIGTERM");
      await ended;
    }
    for (const server of this.servers) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
