import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { checkPage, openBrowser, openPage, tabTo, visit } from "./browser.mjs";
import { picture } from "./picture.mjs";
import { Scene, turns } from "./scene.mjs";

let scene, browser, address, receipts;
const named = (name) => `/session?name=${encodeURIComponent(name)}`;

before(async () => {
  scene = new Scene();
  receipts = scene.compactTwice("shop");
  scene.compactTwice("pins", turns(1, 40), turns(41, 40));
  address = await scene.dashboard();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await scene?.close();
});

const shown = (name) => scene.json(["archive", "show", name]);

test("compact now makes a view of the size that is asked for", async () => {
  const page = await openPage(browser, address);
  await visit(page, named("shop"));
  await page.getByLabel("to at most").fill("4,000");
  await page.getByRole("button", { name: "Compact now" }).click();
  await page.waitForURL(/done=/);
  assert.match(await page.locator(".notice").innerText(), /^Compacted: ≈ [\d,]+ → [\d,]+ tokens\.$/);
  const { compactions } = shown("shop");
  assert.equal(compactions.length, 3);
  assert.ok(compactions[2].tokens_after <= 4000);
  assert.equal(compactions[2].tokens_before, compactions[1].tokens_after, "it begins where the session stands");
  await checkPage(page);
  const held = await page.locator(".figure strong").innerText();
  await page.getByRole("button", { name: "Compact now" }).click();
  await page.waitForURL(/done=/);
  assert.match(await page.locator(".notice").innerText(), /^Nothing was compacted: it fits as it is/);
  assert.equal(await page.locator(".figure strong").innerText(), held);
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "Compaction 3", exact: true }) });
  await row.getByRole("link", { name: "Compaction 3", exact: true }).click();
  await page.waitForURL(/compaction\?/);
  // What the compaction before had taken is told apart from what this one took.
  const earlier = page.locator("#earlier-names");
  assert.match(await earlier.locator("summary").innerText(), /^\d+ names? that an earlier compaction had left out already$/);
  const taken = await earlier.locator("ul.names a").allTextContents();
  const own = await page.locator("#left-out > ul.names a, #more-names ul.names a").allTextContents();
  assert.ok(own.length > 0 && taken.length > 0 && !own.some((name) => taken.includes(name)));
  const waits = page.waitForEvent("download");
  await page.getByText("Download what came out").click();
  assert.match(readFileSync(await (await waits).path(), "utf8"), /COMPACT-SUMMARY v3/);
});

test("undo makes a session that stands before the compaction, and changes nothing of the first", async () => {
  const before = shown("shop");
  const original = scene.run(["restore", receipts[1].receipt_id], { encoding: "buffer" });
  const page = await openPage(browser, address);
  await visit(page, named("shop"));
  await page.getByRole("row").filter({ has: page.getByRole("link", { name: "Compaction 2", exact: true }) }).getByRole("button", { name: "Undo" }).click();
  await page.waitForURL(/name=shop&done=/);
  const told = page.getByRole("row").filter({ has: page.getByRole("link", { name: "Compaction 2", exact: true }) }).locator("#notice");
  assert.match(await told.innerText(), /as this one did before compaction 2/);
  await checkPage(page);
  await told.getByRole("link", { name: "Open shop~before-2" }).click();
  await page.waitForURL(/shop~before-2/);
  const state = shown("shop~before-2").compactions;
  assert.equal(state.length, 2);
  const held = Number((await page.locator(".figure strong").innerText()).replace(/[≈, ]/g, ""));
  assert.equal(held, receipts[1].tokens_before + receipts[1].tokens_fixed, "with instructions and tools");
  assert.match(await page.locator("dl.facts").innerText(), /Calls archived\s+240/);
  const all = page.waitForEvent("download");
  await page.getByText("Download the original").click();
  const whole = readFileSync(await (await all).path(), "utf8");
  assert.ok(whole.includes("Step 1:") && whole.includes("Step 120 is done"));
  const waits = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the state before" }).click();
  assert.deepEqual(readFileSync(await (await waits).path()), original);
  assert.deepEqual(shown("shop"), before);
  await checkPage(page);
  await picture(page, "undo");
  scene.run(["archive", "verify"]);
  const phone = await openPage(browser, address, { width: 390 });
  await visit(phone, `/entry?name=shop~before-2&receipt=${state[1].receipt_id}&at=8`);
  await phone.getByRole("link", { name: /Among the others of Copy of/ }).waitFor();
  await checkPage(phone);
  await phone.context().close();
  await visit(page, "/");
  const branch = page.locator("table.sessions tbody tr", { hasText: "shop~before-2" });
  assert.equal((await branch.locator("td[data-label=Compactions]").innerText()).trim(), "1", "what was undone is not counted");
  await visit(page, named("shop~before-2"));
  await page.getByLabel("Search what was said in this session").fill("SHOP-1119");
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator("ol.hits li", { hasText: "SHOP-1119" }).first().waitFor();
  scene.run(["verify", state[1].receipt_id]);
  await visit(page, named("shop~before-2"));
  // What another one was made from stays while that one is there.
  await page.getByRole("row").filter({ has: page.getByRole("link", { name: "Compaction 1", exact: true }) }).getByRole("button", { name: "Undo" }).click();
  await page.waitForURL(/done=/);
  assert.equal(await page.getByRole("button", { name: "Remove this session" }).count(), 0);
  await visit(page, named("shop~before-2~before-1"));
  await page.getByRole("button", { name: "Remove this session" }).click();
  await page.waitForURL(/\/\?page=0&done=/);
  await visit(page, named("shop~before-2"));
  await page.getByRole("button", { name: "Remove this session" }).click();
  await page.waitForURL(/\/\?page=0&done=/);
  assert.match(await page.locator("#notice").innerText(), /^Removed shop~before-2\./);
  assert.equal(await page.locator("table.sessions tbody tr", { hasText: "shop~before-2" }).count(), 0);
  await checkPage(page);
  scene.run(["archive", "verify"]);
  assert.deepEqual(shown("shop"), before);
});

test("a pinned entry stands in the next view, and an unpinned one need not", async () => {
  const page = await openPage(browser, address);
  await visit(page, named("pins"));
  const large = page.locator("ol.large li", { hasText: "read_file" }).first();
  const opening = (await large.locator(".opening").innerText()).slice(0, 60);
  await large.getByRole("button", { name: "Pin", exact: true }).click();
  await page.waitForURL(/done=/);
  assert.match(await page.locator(".notice").innerText(), /^Pinned/);
  await page.getByLabel("to at most").fill("14000");
  await page.getByRole("button", { name: "Compact now" }).click();
  await page.locator("table.compactions tbody tr").nth(2).waitFor();
  await page.locator("table.compactions tbody th a").first().click();
  await page.waitForURL(/compaction/);
  const kept = page.locator("ol.diff li.kept", { hasText: opening });
  while (!(await kept.count())) await page.getByText("Later →").click({ timeout: 5_000 });
  await visit(page, named("pins"));
  await page.getByRole("button", { name: "Unpin" }).first().click();
  await page.waitForURL(/done=/);
  assert.match(await page.locator(".notice").innerText(), /^Unpinned/);
  await checkPage(page);
});

test("an entry that has left says so, comes back when it is pinned, and goes along to a new session", async () => {
  // Each call asks for a file of its own: results of the same call are pinned together.
  const ofOwnFile = (message) => message.tool_calls ? { ...message, tool_calls: message.tool_calls.map((call) => ({ ...call, function: { ...call.function, arguments: JSON.stringify({ path: `src/${call.id}.rs` }) } })) } : message;
  const [first] = scene.compactTwice("back", turns(1, 40).map(ofOwnFile), turns(41, 40).map(ofOwnFile));
  const page = await openPage(browser, address);
  await visit(page, `/compaction?name=back&receipt=${first.receipt_id}&show=gone`);
  await page.locator("ol.diff li.dropped", { hasText: "tool results" }).first().getByText("whole entry").click();
  const text = await page.locator("pre.entry").textContent();
  await page.getByText("The session does not show it whole any more.").waitFor();
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.waitForURL(/done=/);
  assert.match(await page.locator("#notice").innerText(), /^Pinned\. It has left the view: “Compact now” brings it back/);
  await checkPage(page);
  await visit(page, "/new?name=back");
  assert.ok((await page.locator("pre.summary").textContent()).includes(text.trim()));
  await page.goBack();
  const before = shown("back").compactions.at(-1).tokens_after;
  await page.getByRole("button", { name: "Compact now" }).click();
  await page.waitForURL(/entry\?.*done=/);
  await page.getByText("It is pinned: it stands in every view as it is").waitFor();
  assert.ok(shown("back").compactions.at(-1).tokens_after <= before, "nothing grew");
  await checkPage(page);
});

test("a new session shows first what it will be given", async () => {
  const page = await openPage(browser, address);
  await visit(page, named("shop"));
  await page.getByText("Start New Session…").click();
  await page.waitForURL(/\/new\?/);
  const carried = await page.locator("pre.summary").innerText();
  assert.match(carried, /Never touch the table billing_events/);
  assert.match(carried, /What was said last[^]*\nassistant: Step \d+ is done/);
  await picture(page, "new");
  await page.getByLabel("Its name").fill("shop, second week");
  await page.getByRole("button", { name: "Start New Session" }).click();
  await page.waitForURL(/second/);
  const waits = page.waitForEvent("download");
  await page.getByText("Download the first message").click();
  const text = readFileSync(await (await waits).path(), "utf8");
  assert.match(text, /Never touch the table billing_events/);
  await checkPage(page);
  await visit(page, "/");
  await page.locator("table.sessions th a", { hasText: "shop, second week" }).waitFor();
});

test("a compaction that failed is told in the list and on its page, and Retry makes it", async () => {
  scene.compactTwice("failing", turns(1, 30), turns(31, 30));
  scene.write("deaf.yaml", "policy:\n  on_summary_failure: fail\nsummarizer:\n  kind: openai\n  url: http://127.0.0.1:9/v1\n  model: m\n  retries: 0\n  api_key_env: PATH\n");
  scene.write("longer.json", JSON.stringify({ model: "gpt-5", messages: [...JSON.parse(readFileSync(scene.path("failing-3.json"), "utf8")).messages, ...turns(61, 30)] }));
  const ended = scene.spawn(["compact", "longer.json", "--session", "failing", "--budget", "6000", "--config", "deaf.yaml", "-o", "never.json"]);
  assert.equal(ended.status, 6, ended.stderr);
  // What is larger than its window is compacted, and what is not need not be.
  scene.write("small.yaml", "max_context_tokens: 16000\n");
  const page = await openPage(browser, await scene.dashboard(["--config", scene.path("small.yaml")]));
  await visit(page, "/");
  const row = page.locator("table.sessions tbody tr", { hasText: "failing" });
  assert.match(await row.innerText(), /compaction failed/);
  await row.getByRole("link").click();
  await page.waitForURL(/session\?/);
  const warning = page.locator(".notice.warning");
  assert.match(await warning.innerText(), /The last compaction failed, just now, at ≈ [\d,]+ tokens: the summarizer failed: unreachable\. Nothing was changed\./);
  await checkPage(page);
  await picture(page, "retry");
  await warning.getByRole("button", { name: "Retry", exact: true }).click();
  await page.waitForURL(/done=/);
  assert.match(await page.locator(".notice").innerText(), /^Compacted: ≈ [\d,]+ → [\d,]+ tokens\.$/);
  assert.equal(await warning.count(), 0);
  assert.equal(shown("failing").compactions.length, 3);
});

test("the keyboard alone compacts, verifies, pins, undoes and starts anew", async () => {
  scene.compactTwice("keys", turns(1, 30), turns(31, 30));
  const page = await openPage(browser, address);
  const press = async (name, words) => {
    await visit(page, named("keys"));
    await tabTo(page, name);
    await page.keyboard.press("Enter");
    await page.waitForURL(words);
  };
  await press("Verify", /done=/);
  assert.match(await page.locator(".notice").innerText(), /^Verified/);
  await press("Pin", /done=/);
  assert.match(await page.locator(".notice").innerText(), /^Pinned/);
  await press("Undo", /done=/);
  await tabTo(page, "Open keys~before-2");
  await page.keyboard.press("Enter");
  await page.waitForURL(/keys~before-2/);
  await press("Start New Session…", /new\?/);
  await tabTo(page, "Start New Session");
  await page.keyboard.press("Enter");
  await page.waitForURL(/keys~next/);
  await visit(page, named("keys"));
  await tabTo(page, "Compact now");
  await page.keyboard.press("Tab");
  await page.keyboard.type("9000");
  await page.keyboard.press("Enter");
  await page.waitForURL(/done=/);
  assert.match(await page.locator(".notice").innerText(), /^Compacted/);
  assert.deepEqual(page.faults, []);
});

test("the ledger says who said what, and leads there", async () => {
  const page = await openPage(browser, address);
  await visit(page, named("shop"));
  await page.getByText("What it remembers").click();
  await page.waitForURL(/ledger/);
  const rule = page.locator("#rules li").first();
  assert.match(await rule.innerText(), /Never touch the table billing_events\.[\s\S]*user · entry #\d+/);
  await picture(page, "ledger");
  await rule.getByRole("link").click();
  assert.match(await page.locator("pre.entry").innerText(), /billing_events/);
  await checkPage(page);
});

test("pages that only show have no buttons, and take no forms", async () => {
  const only = await scene.dashboard(["--read-only"]);
  const page = await openPage(browser, only);
  await visit(page, named("shop"));
  assert.equal(await page.locator("form[method=post]").count(), 0);
  const answer = await fetch(`${only}/do/compact`, { method: "POST", headers: { origin: only }, body: new URLSearchParams({ name: "shop" }) });
  assert.equal(answer.status, 403);
  await checkPage(page);
});
