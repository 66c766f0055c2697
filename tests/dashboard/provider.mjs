// A provider with a cache, and an agent that talks to it through a gateway.
import assert from "node:assert/strict";

const tokens = (length) => Math.round(length / 4);

// What a prompt shares with the one before it is read from the cache, the rest is written.
export class Provider {
  constructor() {
    this.prompts = [];
    this.bills = [];
  }

  bill(body) {
    const prompt = JSON.stringify([body.tools, body.system]) + body.messages.map((message) => JSON.stringify(message)).join("");
    const last = this.prompts.at(-1) ?? "";
    const shared = prompt.startsWith(last) ? last.length : 0;
    this.prompts.push(prompt);
    const usage = { input_tokens: 12, cache_read_input_tokens: tokens(shared), cache_creation_input_tokens: tokens(prompt.length) - tokens(shared), output_tokens: 60 };
    this.bills.push(usage);
    return usage;
  }

  async start(scene) {
    return scene.serve((_request, response, body) => {
      const usage = this.bill(JSON.parse(body));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "m", type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [{ type: "text", text: `Done ${this.bills.length}.` }], stop_reason: "end_turn", usage }));
    });
  }
}

export const system = (day) => `You are a careful engineer.\n # Environment\n - Primary working directory: /home/me/shop\n Today is ${day}.`;
const words = (n) => `Step ${n}: ${Array.from({ length: 60 }, (_, i) => `src/file_${n}_${i}.rs costs ${n * i} cents`).join("; ")}`;

// An agent that sends all of its history again.
export class Agent {
  constructor(gateway, session, key = "k") {
    Object.assign(this, { gateway, session, key, history: [], said: 0 });
  }

  async talk(count, day = "Monday") {
    for (let n = 0; n < count; n += 1) {
      this.said += 1;
      this.history.push({ role: "user", content: words(this.said) });
      const response = await fetch(`${this.gateway}/v1/messages`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": this.key, "anthropic-version": "2023-06-01", "x-compact-session": this.session },
        body: JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 500, system: system(day), messages: this.history, tools: [{ name: "read", input_schema: { type: "object" } }] }),
      });
      assert.equal(response.status, 200, await response.clone().text());
      const answer = await response.json();
      this.history.push({ role: "assistant", content: answer.content[0].text });
    }
  }
}
