import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { checkPage, openBrowser, openPage, unfold, visit } from "./browser.mjs";
import { Agent, Provider } from "./provider.mjs";
import { Scene, turns } from "./scene.mjs";

const markup = `<script>window.broken = 1</script><img src=x onerror="window.broken = 1"><svg onload="window.broken = 1">"'></pre></main> \u202e gnp.exe \u0007 javascript:alert(1)`;
const session = `${markup.slice(0, 40)}\u202e\u200b`;
let scene, browser, address, receipt;

before(async () => {
  scene = new Scene();
  const messages = turns(1, 60);
  messages[0].content += markup;
  messages[2].content = markup.repeat(40);
  messages[6].content = "x<y ".repeat(2_500_000);
  messages[9].tool_calls[0].function.name = "read_<b>file";
  messages[9].tool_calls[0].function.arguments = JSON.stringify({ path: markup });
  const provider = await new Provider().start(scene);
  scene.write("gateway.yaml", `gateway:\n  anthropic_url: ${provider}\n`);
  const gateway = await scene.start(["serve", "--listen", "127.0.0.1:0", "--config", scene.path("gateway.yaml")], /listening on (http:\/\/\S+)/);
  await new Agent(gateway.address, "<img src=x onerror=window.broken=1>").talk(1, "<b>Monday</b>");
  [receipt] = scene.compactTwice(session, messages, turns(61, 20));
  address = await scene.dashboard();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await scene?.close();
});

test("markup, turned text and a line of ten megabytes are text on every page", async () => {
  const name = encodeURIComponent(session);
  const compaction = `name=${name}&receipt=${receipt.receipt_id}`;
  for (const path of ["/", "/?q=window.broken", `/chat?session=${name}chat`, "/money", `/session?name=${name}`, `/compaction?${compaction}`, `/entry?${compaction}&at=1`, `/entry?${compaction}&at=7`, `/ledger?name=${name}`, `/new?name=${name}`]) {
    const page = await openPage(browser, address, { width: 390, scheme: "dark" });
    const answer = await visit(page, path);
    assert.equal(answer.status(), 200, path);
    const weight = (await answer.body()).length;
    assert.ok(weight <= 250_000, `${path} weighs ${weight} bytes`);
    await unfold(page);
    await checkPage(page);
    assert.equal(await page.evaluate(() => window.broken), undefined, path);
    const raw = await page.evaluate(() => [document.title, document.body.textContent, ...[...document.querySelectorAll("[title], [aria-label]")].flatMap((element) => [element.title, element.ariaLabel ?? ""])].filter((text) => /[\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f]/.test(text)));
    assert.deepEqual(raw, [], path);
    assert.equal(await page.locator("main img, main script, main svg[onload]").count(), 0, path);
    await page.context().close();
  }
  const page = await openPage(browser, address);
  await visit(page, `/entry?${compaction}&at=1`);
  assert.ok((await page.locator("pre.entry").innerText()).includes("<script>window.broken = 1</script>"));
  assert.ok((await page.locator("pre.entry").innerText()).includes("⟨U+202E⟩ gnp.exe ⟨U+0007⟩"));
  await visit(page, `/entry?${compaction}&at=7`);
  assert.match(await page.locator("nav.pages").innerText(), /of 10,000,000/);
  await page.getByText("After →").click();
  assert.match(await page.locator("nav.pages").innerText(), /60,001–120,000/);
  await checkPage(page);
});
