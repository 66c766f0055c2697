import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { checkEverywhere, checkPage, openBrowser, openPage, tabTo, visit } from "./browser.mjs";
import { picture } from "./picture.mjs";
import { Agent, Provider, system } from "./provider.mjs";
import { Scene } from "./scene.mjs";

const session = "shop-agent";
const begun = "just-begun";
let scene, browser, address, bodies, bills;

before(async () => {
  scene = new Scene();
  const provider = new Provider();
  ({ prompts: bodies, bills } = provider);
  scene.write("gateway.yaml", `max_context_tokens: 9000\ngateway:\n  anthropic_url: ${await provider.start(scene)}\n`);
  const served = await scene.start(["serve", "--listen", "127.0.0.1:0", "--config", scene.path("gateway.yaml")], /listening on (http:\/\/\S+)/);
  const agent = new Agent(served.address, session);
  await agent.talk(4, "Monday");
  await agent.talk(18, "Tuesday");
  assert.ok(bodies.some((body) => body.includes("COMPACT-SUMMARY")), "the gateway compacted nothing");
  await new Agent(served.address, begun).talk(2);
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
  assert.match(row, /\/home\/me\/shop\s+\d{4}-W\d\d\s+24\s/);
  const read = bills.map((usage) => usage.cache_read_input_tokens).reduce((a, b) => a + b);
  assert.ok((await page.locator(".legend").innerText()).includes(`${read.toLocaleString("en-US")} tokens from a cache`));
  const answered = bills.map((usage) => usage.output_tokens).reduce((a, b) => a + b);
  assert.ok((await page.locator("dl.facts").innerText()).includes(`${answered.toLocaleString("en-US")} tokens`));
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
  const row = page.locator("table.money").nth(1).locator("tbody tr", { hasText: session });
  const text = await row.innerText();
  const last = bills[21];
  const tokens = last.input_tokens + last.cache_read_input_tokens + last.cache_creation_input_tokens + last.output_tokens;
  assert.ok(text.includes(tokens.toLocaleString("en-US")), text);
  assert.match(text, /warm for [0-5]:\d\d/);
  const [warm, cold] = [await row.locator("td[data-label=Warm]").innerText(), await row.locator("td[data-label=Cold]").innerText()];
  assert.equal(cold, `$0.${Math.round((tokens * 3.75) / 100).toString().padStart(4, "0")}`);
  assert.ok(Number(warm.slice(1)) < Number(cold.slice(1)));
  await row.locator("a").click();
  await page.waitForURL(/session\?/);
  assert.match(await page.locator("#next-message").innerText(), new RegExp(`costs \\${warm} while .* warm, for [0-5]:\\d\\d min, and \\${cold} once it is cold`));
});

test("a session that was only asked is in the list, and how full its window is now", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/");
  const rows = await page.locator("table.sessions tbody tr").allInnerTexts();
  assert.match(rows[0], /just-begun\s+live session\s+claude-sonnet-4-5\s+[\d.]+k of 9k\s+0\s+–\s+just now\s+request/);
  assert.match(rows[1], /shop-agent\s+anthropic\s+claude-sonnet-4-5\s+[\d.]+k of 9k\s+\d\s/);
  await page.getByRole("link", { name: begun }).click();
  const last = bills[23];
  const tokens = last.input_tokens + last.cache_read_input_tokens + last.cache_creation_input_tokens + last.output_tokens;
  assert.match(await page.locator(".gauge").innerText(), new RegExp(`^${tokens.toLocaleString("en-US")} of 9,000 tokens`));
  assert.match(await page.locator("main").innerText(), /Nothing was compacted in it yet, and so nothing of what it says is archived/);
  await checkPage(page);
});

test("the curve goes on to the last request", async () => {
  const page = await openPage(browser, address);
  await visit(page, `/session?name=${session}`);
  const said = await page.locator(".wide svg.curve").getAttribute("aria-label");
  const prompts = bills.slice(0, 22).map((usage) => usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens);
  assert.ok(said.startsWith(`Tokens sent with each of 22 calls; the most was ${Math.max(...prompts).toLocaleString("en-US")} of a window of 9,000 `), said);
  assert.match(await page.locator("figcaption").innerText(), /^As the provider reported it\./);
});

test("a session's compactions have a reason, a cost and what came of it", async () => {
  const page = await openPage(browser, address);
  await visit(page, `/session?name=${session}`);
  const row = page.locator("table.compactions tbody tr").last();
  const cell = async (label) => (await row.locator(`td[data-label="${label}"]`).innerText()).trim();
  assert.match(await cell("When and why"), /trigger|ahead|few tokens/);
  assert.match(await cell("Writing its view"), /^\$0\.\d+\s+cache warm$/);
  assert.match(await cell("Saved, net"), /^−?\$0\.\d+\s+in \d+ requests?$/);
  await checkPage(page);
});

test("the pages are clean in every size and scheme", async () => {
  for (const path of ["/money", `/session?name=${session}`, `/session?name=${begun}`]) await checkEverywhere(browser, address, path);
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
  assert.match(text, /^ {2}\d+ sessions?, \$\d\.\d\d in the last hour \(24 requests\)\n/);
  assert.ok(text.includes(session), text);
});
