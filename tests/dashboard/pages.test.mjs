import assert from "node:assert/strict";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { checkEverywhere, checkPage, openBrowser, openPage, tabTo, unfold, visit } from "./browser.mjs";
import { picture } from "./picture.mjs";
import { Scene, root, turns } from "./scene.mjs";

const session = "checkout-service";
const named = (name) => `/session?name=${encodeURIComponent(name)}`;
let scene, browser, address, receipts;

before(async () => {
  scene = new Scene();
  receipts = scene.compactTwice(session);
  copyFileSync(join(root, "examples/coding-session.jsonl"), scene.path("coding.jsonl"));
  scene.run(["compact", "coding.jsonl", "-o", "smaller.jsonl"]);
  scene.callHook("hooked-session", scene.path("coding.jsonl"));
  scene.runAgent("parser-run");
  address = await scene.dashboard();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await scene?.close();
});

const compaction = (number) => `/compaction?name=${session}&receipt=${receipts[number].receipt_id}`;

test("every page is clean in every size and scheme", async () => {
  for (const path of ["/", "/?q=billing_events", named(session), named("hooked-session"), named("parser-run"), compaction(1), `${compaction(1)}&show=gone`, `/ledger?name=${session}`, `/new?name=${session}`, `/entry?name=${session}&receipt=${receipts[1].receipt_id}&at=3`, `/entry?pointer=${encodeURIComponent(`${receipts[1].receipt_id}#5`)}`, "/money", "/chat"]) {
    await checkEverywhere(browser, address, path);
  }
});

test("the list has sessions of the command, a hook and a run, the newest first", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/");
  const rows = await page.locator("table.sessions tbody tr").allInnerTexts();
  assert.equal(rows.length, 4);
  assert.match(rows[0], /parser-run\s+run/);
  assert.match(rows[1], /hooked-session\s+hook/);
  assert.match(rows[3], new RegExp(`${session}\\s+openai chat\\s+gpt-5`));
  await picture(page, "list");
  await page.fill("#q", "SHOP-1003 E0303");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=SHOP/);
  assert.match(await page.locator("ol.hits li").first().innerText(), /checkout-service[\s\S]*SHOP-1003/);
  await picture(page, "search");
  assert.equal(await page.locator(".gap").count(), 0, "an entry has all of these words");
  await page.locator("ol.hits a", { hasText: "whole entry" }).first().click();
  assert.match(await page.locator("pre.entry").innerText(), /Step 3 is done/);
  await checkPage(page);
});

test("a search without an exact match says so, and what each hit lacks", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/");
  await page.fill("#q", "SHOP-1003 unicorn");
  await page.keyboard.press("Enter");
  await page.getByText("No entry has all of these words. These come closest.").waitFor();
  await page.getByText("Nothing archived says “unicorn”.").waitFor();
  assert.match(await page.locator("ol.hits li").first().innerText(), /without “unicorn”[\s\S]*SHOP-1003/);
  await checkPage(page);
  await page.fill("#q", "unicorn");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing archived answers these words.").waitFor();
  await page.getByRole("link", { name: "Sessions" }).first().click();
  assert.equal(await page.locator("table.sessions tbody tr").count(), 4);
});

test("a session says what filled the window, and each compaction what it kept", async () => {
  const page = await openPage(browser, address);
  await visit(page, named(session));
  assert.match(await page.locator(".gauge").innerText(), /^≈ [\d,]+ of 272,000 tokens/);
  await page.getByText("those with ≈ are estimated").waitFor();
  const parts = await page.locator("div.parts").innerText();
  for (const part of ["tool results", "read_file", "run_tests", "src/checkout/cart.rs", "Never touch the table billing_events."]) assert.ok(parts.includes(part), parts);
  assert.ok((await page.locator("ol.large li").count()) >= 10);
  assert.equal(await page.locator(".wide svg.curve a").count(), 2);
  const rows = await page.locator("table.compactions tbody tr").allInnerTexts();
  assert.equal(rows.length, 2);
  const tokens = (n) => n.toLocaleString("en-US");
  for (const [row, receipt] of [[rows[1], receipts[0]], [rows[0], receipts[1]]]) {
    assert.ok(row.includes(`${tokens(receipt.tokens_before)} → ${tokens(receipt.tokens_after)}`), row);
    assert.ok(row.includes(`${tokens(receipt.retention.kept)} of ${tokens(receipt.retention.anchors)}`), row);
  }
  await picture(page, "session");
  await checkPage(page);
});

test("a compaction shows the original beside the view, and every piece that left is a click away", async () => {
  const page = await openPage(browser, address);
  await visit(page, named(session));
  await page.locator("table.compactions tbody th a", { hasText: "2" }).click();
  await page.waitForURL(/compaction/);
  assert.match(await page.locator("pre.summary").innerText(), /COMPACT-SUMMARY v2/);
  await picture(page, "compaction");
  const left = page.locator("#left-out");
  const { recoverable } = receipts[1].retention;
  assert.ok(recoverable > 0);
  const inPaths = (await left.innerText()).match(/(\d+) names? more stands? in the view/);
  assert.equal((await left.locator("ul.names li").count()) + Number(inPaths?.[1] ?? 0), recoverable, "none is missing without a word");
  const own = left.locator(":scope > ul.names a");
  const name = await own.last().textContent();
  await own.last().click();
  await page.waitForURL(/entry/);
  assert.ok((await page.locator("pre.entry").innerText()).includes(name), name);
  await picture(page, "entry");
  await page.goBack();
  await page.getByText("Only what was cut or left").click();
  const gone = page.locator("ol.diff li.dropped");
  assert.ok((await gone.count()) > 20);
  assert.equal(await page.locator("ol.diff li.kept").count(), 0);
  await gone.first().getByText("whole entry").click();
  assert.match(await page.locator("pre.entry").innerText(), /\w/);
  await checkPage(page);
});

test("what is not there is said so, on a page like the others", async () => {
  const page = await openPage(browser, address, { width: 390 });
  for (const path of ["/session?name=nobody", `/compaction?name=${session}&receipt=none`, "/entry?pointer=none%231"]) {
    const answer = await visit(page, path);
    assert.equal(answer.status(), 404, path);
    page.faults = page.faults.filter((fault) => !fault.includes("404"));
    await page.getByRole("link", { name: "All sessions" }).waitFor();
    await checkPage(page);
  }
});

test("receipts are verified on a click", async () => {
  const page = await openPage(browser, address);
  await visit(page, named(session));
  const rows = page.locator("table.compactions tbody tr");
  await rows.nth(1).getByRole("button", { name: "Verify" }).click();
  await page.waitForURL(/session\?.*done=/);
  const told = rows.nth(1).locator("#notice");
  assert.match(await told.innerText(), /^Verified [0-9a-f]{12}: the engine made the same view/);
  await page.waitForFunction(() => { const notice = document.getElementById("notice"); return notice === document.activeElement && notice.getBoundingClientRect().bottom <= innerHeight; });
  await checkPage(page);
  await visit(page, compaction(1));
  await page.getByRole("button", { name: "Verify the receipt" }).click();
  await page.waitForURL(/compaction\?.*done=/);
  assert.match(await page.locator("#notice").innerText(), /^Verified/);
  await checkPage(page);
});

test("the original comes back byte for byte", async () => {
  const page = await openPage(browser, address);
  await visit(page, compaction(0));
  const waits = page.waitForEvent("download");
  await page.getByText("Download what went in").click();
  const file = await (await waits).path();
  assert.deepEqual(readFileSync(file), readFileSync(scene.path(`${session}.json`)));
});

test("a replay draws the same chart on a page that needs nothing else", async () => {
  scene.run(["replay", "coding.jsonl", "--html", "replay.html", "--window", "60000"]);
  const page = await openPage(browser, "file://");
  await page.goto(`file://${scene.path("replay.html")}`);
  const chart = page.locator("svg.compact-curve").first();
  assert.match(await chart.getAttribute("aria-label"), /^Tokens sent with each of 309 calls/);
  assert.ok((await chart.getByRole("img", { name: /^Compaction \d+: / }).count()) > 0);
  await picture(page, "replay", chart);
  assert.deepEqual(page.faults, []);
});

test("the keyboard alone leads from the list to a piece that left", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/");
  await tabTo(page, session);
  await page.keyboard.press("Enter");
  await page.waitForURL(/session\?/);
  await tabTo(page, /^Compaction 2: /);
  await page.keyboard.press("Enter");
  await page.waitForURL(/compaction\?/);
  await tabTo(page, "Only what was cut or left");
  await page.keyboard.press("Enter");
  await page.waitForURL(/show=gone/);
  await tabTo(page, "whole entry");
  await page.keyboard.press("Enter");
  await page.waitForURL(/entry\?/);
  assert.match(await page.locator("h1").innerText(), /^(Entry #\d+|A summary)$/);
  await tabTo(page, /^After it →/);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  await tabTo(page, "Compaction 2");
  await page.keyboard.press("Enter");
  await page.waitForURL(/compaction\?/);
});

test("an entry leads to its neighbours, its compaction and its session, and is pinned there", async () => {
  const page = await openPage(browser, address);
  await visit(page, `/entry?name=${session}&receipt=${receipts[1].receipt_id}&at=7`);
  const heading = await page.locator("h1").innerText();
  assert.match(heading, /^Entry #\d+$/);
  const text = await page.locator("pre.entry").innerText();
  await page.locator("nav.neighbours a[rel=next]").click();
  await page.waitForURL(/at=8/);
  const [next, before] = [await page.locator("pre.entry").innerText(), page.locator("nav.neighbours a[rel=prev]")];
  assert.notEqual(next, text);
  assert.ok((await before.innerText()).includes(text.trim().slice(0, 20)), "the neighbour says how it begins");
  await before.click();
  await page.waitForURL(/at=7/);
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.waitForURL(/at=7&done=/);
  assert.match(await page.locator("#notice").innerText(), /^Pinned/);
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.locator("#notice", { hasText: "Unpinned" }).waitFor();
  await checkPage(page);
  await page.getByRole("link", { name: "Among the others of Compaction 2" }).click();
  await page.waitForURL(/#entry-7$/);
  assert.ok(await page.locator("#entry-7").evaluate((row) => row.getBoundingClientRect().top < innerHeight && row.matches(":target")));
  await page.locator("nav.trail a", { hasText: session }).click();
  await page.waitForURL(/session\?/);
  assert.equal(await page.locator("h1").innerText(), session);
  // The number is the one that pointers have.
  await visit(page, `/entry?pointer=${encodeURIComponent(receipts[1].receipt_id + heading.replace("Entry ", ""))}`);
  assert.equal(await page.locator("h1").innerText(), heading);
  // A pointer leads to the same page.
  await visit(page, `/entry?pointer=${encodeURIComponent(`${receipts[1].receipt_id}#5`)}`);
  await page.locator("nav.trail a", { hasText: "Compaction 1" }).waitFor();
  await checkPage(page);
});

test("the rows of a compaction add up to its receipt", async () => {
  const page = await openPage(browser, address);
  await visit(page, compaction(1));
  const cells = await page.locator("table.sums tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("td")].map((cell) => Number(cell.textContent.replaceAll(",", "")))));
  const sum = (column) => cells.slice(0, -1).map((row) => row[column]).reduce((a, b) => a + b);
  const instructions = cells.pop();
  assert.deepEqual(cells.at(-1), [0, 1, 2].map(sum));
  assert.deepEqual(cells.at(-1).slice(1), [receipts[1].tokens_before, receipts[1].tokens_after]);
  await page.getByText(/Tokens on this page are estimated by \S+\. Instructions and tools, [\d,]+ tokens together/).waitFor();
  const [kept, cut, left] = cells.map((row) => row[0]);
  await visit(page, named(session));
  const fates = await page.locator("table.compactions tbody tr").first().locator("td[data-label=Entries]").innerText();
  assert.ok(fates.startsWith(`${kept + instructions[0]} kept, ${cut} cut, ${left} left`), fates);
});

test("on a telephone sections fold, a choice is remembered, and what an address points at is open", async () => {
  const page = await openPage(browser, address, { width: 390, height: 844 });
  const height = () => page.evaluate(() => document.documentElement.scrollHeight);
  for (const [path, screens] of [["/", 4], [named(session), 3], [compaction(1), 3], ["/money", 3], [`/ledger?name=${session}`, 4]]) {
    await visit(page, path);
    assert.ok((await height()) <= 844 * screens, `${path} is ${await height()} pixels long`);
  }
  await visit(page, named(session));
  const filled = page.locator("#filled");
  assert.equal(await filled.getAttribute("open"), null);
  await filled.locator("summary").first().click();
  await page.getByText("The largest entries").waitFor();
  await page.reload();
  await page.getByText("The largest entries").waitFor();
  await unfold(page);
  await checkPage(page);
  await visit(page, `${named(session)}#compactions`);
  await page.getByRole("button", { name: "Verify" }).first().click();
  await page.locator("#compactions #notice", { hasText: "Verified" }).waitFor();
  await page.waitForFunction(() => { const { top, bottom } = document.getElementById("notice").getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; });
  await checkPage(page);
  await picture(page, "phone");
  // On a screen all are open from the beginning.
  const wide = await openPage(browser, address);
  await visit(wide, named(session));
  assert.equal(await wide.locator("details.section:not([open])").count(), 0);
});

test("an open page shows what happens meanwhile", async () => {
  const page = await openPage(browser, address);
  await visit(page, "/");
  await page.locator("#live", { hasText: "live" }).waitFor();
  await tabTo(page, session);
  const later = new Scene();
  later.store = scene.store;
  later.compactTwice("meanwhile", turns(200, 50), turns(250, 50));
  await page.locator("table.sessions th a", { hasText: "meanwhile" }).waitFor({ timeout: 10_000 });
  assert.equal(await page.evaluate(() => document.activeElement.textContent), session, "the focus stays where it was");
  await later.close();
  await checkPage(page);
});
