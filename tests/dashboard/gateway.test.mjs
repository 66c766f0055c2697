// The same pages from a real gateway, behind its keys.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { checkEverywhere, checkPage, openBrowser, openPage, visit } from "./browser.mjs";
import { picture } from "./picture.mjs";
import { Agent, Provider } from "./provider.mjs";
import { Scene } from "./scene.mjs";

let scene, browser, gateway, address, alice, bob, provider, shop;

function makeKey(name) {
  const [, key, entry] = scene.run(["serve", "--new-key", name]).match(/(cgw_\w+)[\s\S]*?(\w+=\w+)/);
  return { key, entry, login: { httpCredentials: { username: "me", password: key } } };
}

before(async () => {
  scene = new Scene();
  [alice, bob] = [makeKey("alice"), makeKey("bob")];
  provider = new Provider();
  scene.write("gateway.yaml", `max_context_tokens: 9000\ngateway:\n  anthropic_url: ${await provider.start(scene)}\n  keys: ["${alice.entry}", "${bob.entry}"]\n  upstream_keys: ["anthropic=UPSTREAM_KEY"]\n`);
  const served = await scene.start(["serve", "--listen", "127.0.0.1:0", "--config", scene.path("gateway.yaml")], /listening on (http:\/\/\S+)/, { UPSTREAM_KEY: "u" });
  gateway = served.address;
  address = `${gateway}/dashboard`;
  shop = new Agent(gateway, "shop-agent", alice.key);
  await shop.talk(20);
  await new Agent(gateway, "bank-agent", bob.key).talk(2);
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await scene?.close();
});

async function openList(who) {
  const page = await openPage(browser, address, who.login);
  await visit(page, "/");
  return page;
}

test("without a key a browser is asked for one, with one it sees its own sessions", async () => {
  assert.equal((await fetch(`${address}/`)).status, 401);
  const page = await openList(alice);
  assert.match((await page.locator("table.sessions tbody tr").allInnerTexts()).join(), /^\S*shop-agent\s[^,]*$/);
  const other = await openList(bob);
  const [name] = await other.locator("table.sessions th a").allInnerTexts();
  assert.match(name, /bank-agent$/);
  for (const path of ["session", "ledger", "new", "original", "chat"]) {
    const value = encodeURIComponent(name);
    const answer = await page.context().request.get(`${address}/${path}?name=${value}&session=${value}`);
    assert.equal(answer.status(), 404, path);
  }
  await visit(page, "/money");
  assert.match(await page.locator("#last-hour").innerText(), /20 requests$/);
  await checkPage(page);
});

test("every page is clean in every size and scheme", async () => {
  const page = await openList(alice);
  const name = encodeURIComponent(await page.locator("table.sessions th a").first().innerText());
  await page.locator("table.sessions th a").first().click();
  await page.waitForURL(/session\?/);
  await picture(page, "gateway");
  const compaction = await page.locator("table.compactions tbody th a").first().getAttribute("href");
  for (const path of ["/", `/session?name=${name}`, compaction.replace("/dashboard", ""), `/ledger?name=${name}`, `/new?name=${name}`, "/money", "/chat"]) {
    await checkEverywhere(browser, address, path, alice.login);
  }
});

test("an open page shows the requests of an agent as they come, and compacts its session", async () => {
  const page = await openList(bob);
  await page.locator("#live", { hasText: "live" }).waitFor();
  await new Agent(gateway, "later-agent", bob.key).talk(1);
  await page.getByRole("link", { name: /later-agent/ }).waitFor({ timeout: 10_000 });
  const mine = await openList(alice);
  await mine.getByRole("link", { name: /shop-agent/ }).click();
  await mine.getByLabel("to at most").fill("2500");
  await mine.getByRole("button", { name: "Compact now" }).click();
  await mine.waitForURL(/done=/);
  assert.match(await mine.locator(".notice").innerText(), /^Compacted: .* goes on from it when its next compaction is due/);
  // The agent keeps its whole history, and goes on from the view that was made.
  const asked = provider.prompts.length;
  await shop.talk(5);
  const versions = provider.prompts.slice(asked).map((prompt) => prompt.match(/COMPACT-SUMMARY v(\d)/)?.[1]);
  // Its own next compaction is the third: without that view it would be the second.
  assert.equal(versions.at(-1), "3", versions.join());
  await checkPage(mine);
  await checkPage(page);
});

test("a chat is there for everybody by themselves", async () => {
  const page = await openList(alice);
  await page.getByRole("link", { name: "Chat" }).click();
  await page.fill("#words", "Hello.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("li.assistant", { hasText: "Hello." }).waitFor();
  const other = await openList(bob);
  await other.getByRole("link", { name: "Chat" }).click();
  await other.waitForURL(/chat/);
  assert.equal(await other.locator(".chat li").count(), 0);
  await checkPage(page);
});
