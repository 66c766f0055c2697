import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { checkEverywhere, checkPage, openBrowser, openPage, tabTo, visit } from "./browser.mjs";
import { picture } from "./picture.mjs";
import { Scene } from "./scene.mjs";

const session = "shop-agent";
let scene, browser, address, gateway, bodies, bills;

// A provider with a cache: what a prompt shares with the one before it is read, the rest is written.
function bill(body) {
  const prompt = JSON.stringify([body.tools, body.system]) + body.messages.map((message) => JSON.stringify(message)).join("");
  const last = bodies.at(-1) ?? "";
  const shared = prompt.startsWith(last) ? last.length : 0;
  bodies.push(prompt);
  const tokens = (length) => Math.round(length / 4);
  const usage = { input_tokens: 12, cache_read_input_tokens: tokens(shared), cache_creation_input_tokens: tokens(prompt.length) - tokens(shared), output_tokens: 60 };
  bills.push(usage);
  return usage;
}

const system = (day) => `You are a careful engineer.\n # Environment\n - Primary working directory: /home/me/shop\n Today is ${day}.`;
const words = (n) => `Step ${n}: ${Array.from({ length: 60 }, (_, i) => `src/file_${n}_${i}.rs costs ${n * i} cents`).join("; ")}`;

// Talks through the gateway as an agent does that sends all of its history again.
async function talk(from, count, day) {
  for (let n = from; n < from + count; n += 1) {
    history.push({ role: "user", content: words(n) });
    const response = await fetch(`${gateway}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01", "x-compact-session": session },
      body: JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 500, system: system(day), messages: history, tools: [{ name: "read", input_schema: { type: "object" } }] }),
    });
    assert.equal(response.status, 200);
    const answer = await response.json();
    history.push({ role: "assistant", content: answer.content[0].text });
  }
}

const history = [];

before(async () => {
  scene = new Scene();
  bodies = [];
  bills = [];
  const upstream = await scene.serve((_request, response, body) => {
    const usage = bill(JSON.parse(body));
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: "m", type: "message", role: "assistant", model: "claude-sonnet-4-5", content: [{ type: "text", text: `Done ${bills.length}.` }], stop_reason: "end_turn", usage }));
  });
  scene.write("gateway.yaml", `max_context_tokens: 9000\ngateway:\n  anthropic_url: ${upstream}\n`);
  const served = await scene.start(["serve", "--listen", "127.0.0.1:0", "--config", scene.path("gateway.yaml")], /listening on (http:\/\/\S+)/);
  gateway = served.address;
  await talk(1, 4, "Monday");
  await talk(5, 2, "Tuesday");
  await talk(7, 16, "Tuesday");
  assert.ok(bodies.some((body) => body.includes("COMPACT-SUMMARY")), "the gateway compacted nothing");
  address = await scene.dashboard();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await scene?.close();
});

// List prices of the model, in dollars for a million tokens.
function cost(usage) {
  return (usage.input_tokens * 3 + usage.cache_read_input_tokens * 0.3 + usage.cache_creation_input_tokens * 3.75 + usage.output_tokens * 15) / 1e6;
}

test("the page says what the last hour cost, by project and week, and what was cached", async () => {
  const page = await openPage(browser, address, { height: 1350 });
  await visit(page, "/");
  await tabTo(page, "Money");
  await page.keyboard.press("Enter");
  await page.waitForURL(/money/);
  const hour = await page.locator("#last-hour").innerText();
  const [, dollars, requests] = hour.match(/^\$(\S+) in the last hour, (\d+) requests$/);
  assert.equal(Number(requests), bills.length);
  const paid = bills.map(cost).reduce((a, b) => a + b);
  assert.ok(Math.abs(Number(dollars) - paid) < 0.005, `${dollars} is not ${paid}`);
  const row = await page.locator("table.money").first().locator("tbody tr").first().innerText();
  assert.match(row, /\/home\/me\/shop\s+\d{4}-W\d\d\s+22\s/);
  const read = bills.map((usage) => usage.cache_read_input_tokens).reduce((a, b) => a + b);
  assert.ok((await page.locator(".legend").innerText()).includes(`${read.toLocaleString("en-US")} tokens from a cache`));
  await picture(page, "money");
  await checkPage(page);
});

test("a cache that missed is told with the first byte that changed and who changed it", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/money");
  const misses = await page.locator("ol.misses li").allInnerTexts();
  const at = JSON.stringify(system("Monday")).indexOf("Monday");
  assert.ok(misses.some((text) => text.includes(`The agent changed what it had sent: the first byte that changed is byte ${at} of its instructions.`)), misses.join("\n"));
  assert.ok(misses.some((text) => /A compaction replaced the history: the first byte that changed is byte \d+ of message 1\./.test(text)), misses.join("\n"));
  assert.ok(misses.every((text) => /\$0\.\d+ more/.test(text)));
  await checkPage(page);
});

test("what it costs to go on is told before somebody does", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/money");
  const row = page.locator("table.money").nth(1).locator("tbody tr").first();
  const text = await row.innerText();
  const last = bills.at(-1);
  const tokens = last.input_tokens + last.cache_read_input_tokens + last.cache_creation_input_tokens + last.output_tokens;
  assert.ok(text.includes(tokens.toLocaleString("en-US")), text);
  assert.match(text, /warm for [0-5]:\d\d/);
  const [warm, cold] = [await row.locator("td[data-label=Warm]").innerText(), await row.locator("td[data-label=Cold]").innerText()];
  assert.equal(cold, `$0.${Math.round((tokens * 3.75) / 100).toString().padStart(4, "0")}`);
  assert.ok(Number(warm.slice(1)) < Number(cold.slice(1)));
  await row.locator("a").click();
  await page.waitForURL(/session\?/);
});

test("a session's compactions have a reason, a cost and what came of it", async () => {
  const page = await openPage(browser, address);
  await visit(page, `/session?name=${session}`);
  const row = page.locator("table.compactions tbody tr").last();
  const cell = async (label) => (await row.locator(`td[data-label=${label}]`).innerText()).trim();
  assert.match(await cell("Why"), /trigger|ahead|few tokens/);
  assert.equal(await cell("Cache"), "warm");
  assert.match(await cell("Cost"), /^\$0\.\d+$/);
  assert.match(await cell("Saved"), /^−?\$0\.\d+ in \d+ requests?$/);
  await checkPage(page);
});

test("the pages are clean in every size and scheme", async () => {
  for (const path of ["/money", `/session?name=${session}`]) await checkEverywhere(browser, address, path);
});

test("a terminal shows the list until Ctrl-C, and is left as it was", async () => {
  const typed = scene.open(["top", "--seconds", "0.2"]);
  await typed.saw(session);
  typed.write("\x03");
  const [code, text] = await typed.ended;
  assert.equal(code, 0, text);
  for (const [opened, closed] of [["\x1b[?1049h", "\x1b[?1049l"], ["\x1b[?25l", "\x1b[?25h"], ["\x1b[?7l", "\x1b[?7h"]]) {
    assert.equal(text.split(opened).length, 2);
    assert.ok(text.indexOf(opened) < text.indexOf(session) && text.lastIndexOf(session) < text.indexOf(closed), JSON.stringify(text));
  }
});

test("the list in a terminal says the same", () => {
  const text = scene.run(["top"]);
  assert.match(text, /^ {2}\d+ sessions?, \$\d\.\d\d in the last hour \(22 requests\)\n/);
  assert.ok(text.includes(session), text);
});
