import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { checkPage, openBrowser, openPage, tabTo, visit } from "./browser.mjs";
import { picture } from "./picture.mjs";
import { Scene, turns } from "./scene.mjs";

const compacted = "Session compacted. Conversation history has been summarized.";
const dead = "Context limit exceeded and compaction failed. Please start a new session.";
let scene, browser, address, answer;

// A summarizer of our own: `answer` decides how each request ends.
before(async () => {
  scene = new Scene();
  const summarizer = await scene.serve(async (_request, response, body) => {
    const [status, text] = await answer(body);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content: text }, finish_reason: "stop" }], usage: { prompt_tokens: Math.round(body.length / 4), completion_tokens: 9 } }));
  });
  scene.write("settings.yaml", `model: gpt-5\nmax_context_tokens: 6000\nsummarizer:\n  kind: openai\n  url: ${summarizer}/v1\n  model: m\n  retries: 0\n  api_key_env: CHAT_KEY\n`);
  address = await scene.dashboard(["--config", scene.path("settings.yaml")], { CHAT_KEY: "k" });
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await scene?.close();
});

const topics = ["the parser", "the lexer", "the printer", "the cache", "the index", "the reader"];
const words = (n) => `Message ${n}: ${topics.map((topic, at) => `In step ${n}.${at} ${topic} has to read line ${n * 7 + at} before it keeps the token, and its test says why: a line that ends early is no line, and what follows begins anew.`).join(" ")}`;

async function say(page, text) {
  await page.locator("#words:not([disabled])").waitFor();
  await page.fill("#words", text);
  await page.getByRole("button", { name: "Send" }).click();
}

// Talks until the next message must be compacted first.
async function fill(page, from = 1) {
  for (let n = from; n < from + 20; n += 1) {
    await say(page, words(n));
    const done = page.locator("li.assistant", { hasText: `Message ${n}:` });
    const noticed = page.locator(".notice, #compacting").first();
    await Promise.race([done.waitFor(), noticed.waitFor()]);
    if (await noticed.count()) return n;
  }
  assert.fail("nothing was compacted");
}

test("while it compacts, the page says so and takes no input; then it says what was done and counts", async () => {
  let release;
  const held = new Promise((done) => { release = done; });
  answer = async () => { await held; return [200, "They talk about the parser."]; };
  const page = await openPage(browser, address);
  await visit(page, "/chat?session=one");
  assert.equal(await page.locator("#compaction-count").innerText(), "0");
  await fill(page);
  await page.getByText("Compacting conversation…").waitFor();
  assert.ok(await page.locator("#words").isDisabled());
  assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled());
  await picture(page, "chat", page.locator("#words"));
  await checkPage(page);
  release();
  await page.getByText(compacted).waitFor();
  assert.equal(await page.locator("#compaction-count").innerText(), "1");
  assert.equal(await page.getByText("Compacting conversation…").count(), 0);
  assert.ok(await page.locator("#words").isEnabled());
  assert.ok(readdirSync(join(scene.store, "sessions")).some((name) => name.startsWith("transcript-one")));
  await checkPage(page);
  await visit(page, "/");
  const row = await page.locator("table.sessions tbody tr", { hasText: "one" }).innerText();
  assert.match(row, /^one\s+live session\s+gpt-5\s+.*of 6k\s+1\s+.*just now\s+compacted$/s);
  await page.getByRole("link", { name: "one", exact: true }).click();
  await page.locator("table.compactions tbody tr").waitFor();
  await checkPage(page);
});

test("a compaction that failed is a warning with a way to retry, and a retry that succeeds ends it", async () => {
  answer = async () => [500, "no"];
  const page = await openPage(browser, address);
  await visit(page, "/chat?session=two");
  await fill(page);
  const warning = page.locator(".notice.warning");
  await warning.waitFor();
  assert.match(await warning.innerText(), /Compaction failed/);
  assert.match(await page.locator("#context-metrics").innerText(), /of 6,000 tokens/);
  assert.ok(await page.locator("#words").isEnabled());
  await checkPage(page);
  await picture(page, "chat-retry", page.locator("#words"));
  answer = async () => [200, "They talk about the parser."];
  await warning.getByRole("button", { name: "Retry", exact: true }).waitFor();
  await page.getByRole("button", { name: "Retry compaction" }).click();
  await page.getByText(compacted).waitFor();
  assert.equal(await page.locator("#compaction-count").innerText(), "1");
  assert.equal(await page.getByRole("button", { name: /Retry/ }).count(), 0);
});

test("a real model of the configured server answers, with all that was said, and its count is shown", async () => {
  const asked = [];
  answer = async (body) => {
    const request = JSON.parse(body);
    asked.push(request);
    return request.model === "talker" ? [200, `Answer ${request.messages.length}.`] : [200, "They talk about the parser."];
  };
  const talking = await scene.dashboard(["--config", scene.path("settings.yaml"), "--chat-model", "talker"], { CHAT_KEY: "k" });
  const page = await openPage(browser, talking);
  await visit(page, "/chat?session=real");
  assert.match(await page.locator("main").innerText(), /You talk to openai talker\./);
  await say(page, "Which port?");
  await page.locator("li.assistant", { hasText: "Answer 2." }).waitFor();
  await say(page, "And the other?");
  await page.locator("li.assistant", { hasText: "Answer 4." }).waitFor();
  assert.deepEqual(asked.at(-1).messages.map((message) => message.role), ["system", "user", "assistant", "user"]);
  assert.equal(asked.at(-1).messages.at(-1).content, "And the other?");
  for (let n = 1; !(await page.getByText(compacted).count()); n += 1) {
    assert.ok(n < 20, "nothing was compacted");
    const said = await page.locator("li.assistant").count();
    await say(page, words(n));
    await page.locator("li.assistant").nth(said).waitFor();
  }
  assert.match(JSON.stringify(asked.at(-1).messages), /<summary>/);
  answer = async () => [500, "no"];
  await say(page, "Still there?");
  await page.locator(".notice.warning", { hasText: "The model did not answer" }).waitFor();
  assert.ok(await page.locator("#words").isEnabled());
  await checkPage(page);
});

test("the keyboard alone talks, and words that were typed outlive news from elsewhere", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/chat?session=keys");
  await page.locator("#live", { hasText: "live" }).waitFor();
  await page.focus("#words");
  await page.keyboard.type("Hello <b>you</b>.");
  await page.evaluate(() => document.activeElement.blur());
  const other = await openPage(browser, address);
  await visit(other, "/chat?session=keys");
  await say(other, "From elsewhere.");
  await page.locator("li.assistant", { hasText: "From elsewhere." }).waitFor();
  assert.equal(await page.locator("#words").inputValue(), "Hello <b>you</b>.");
  await page.focus("#words");
  await tabTo(page, "Send");
  await page.keyboard.press("Enter");
  await page.locator("li.assistant", { hasText: "You said: Hello <b>you</b>." }).waitFor();
  await checkPage(page);
});

test("looking at conversations that nobody began closes none that somebody did", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/chat?session=kept");
  await say(page, "Hello.");
  await page.locator("li.assistant", { hasText: "Hello." }).waitFor();
  for (let n = 0; n < 70; n += 1) assert.equal((await fetch(`${address}/chat?session=other-${n}`)).status, 200);
  await page.reload();
  await page.locator("li.assistant", { hasText: "Hello." }).waitFor();
});

test("no chat is begun under the name of what another program archived", async () => {
  scene.write("taken.json", JSON.stringify(turns(1, 60)));
  scene.run(["compact", "taken.json", "--session", "taken", "--budget", "3000", "--quiet"]);
  const refused = await fetch(`${address}/chat?session=taken`);
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /a session of this name is on record/);
});

test("a blank message is told so, and chats that go on stand in the list", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/chat?session=blank");
  await say(page, "   ");
  await page.locator("#notice", { hasText: "Nothing was sent: type a message first." }).waitFor();
  assert.ok(await page.locator("#words").isEnabled());
  await say(page, "Hello.");
  await page.locator("li.assistant", { hasText: "Hello." }).waitFor();
  await checkPage(page);
  await visit(page, "/");
  await page.locator("#chats a", { hasText: "blank" }).click();
  await page.locator("li.assistant", { hasText: "Hello." }).waitFor();
  assert.match(await page.locator("nav.others").innerText(), /one/);
  await checkPage(page);
});

test("a dead session takes no input and offers a new one", async () => {
  answer = async () => [500, "no"];
  const page = await openPage(browser, address);
  await visit(page, "/chat?session=three");
  await say(page, words(1));
  await page.locator("li.assistant").waitFor();
  await say(page, words(2).repeat(40));
  await page.getByText(dead).waitFor();
  assert.ok(await page.locator("#words").isDisabled());
  await checkPage(page);
  await picture(page, "chat-dead", page.getByRole("button", { name: "Start New Session" }));
  await page.getByRole("button", { name: "Start New Session" }).click();
  await page.locator("#words:not([disabled])").waitFor();
  assert.equal(await page.locator(".chat li").count(), 0);
  assert.equal(await page.getByText(dead).count(), 0);
  await say(page, "Hello again.");
  await page.locator("li.assistant", { hasText: "Hello again." }).waitFor();
});
