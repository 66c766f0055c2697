// A real browser, and what every page is held to: nothing in the console, nothing from elsewhere, nothing that axe finds,
// and nothing wider than a phone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const packages = process.env.COMPACT_BROWSER_PACKAGES;
if (!packages) throw new Error("COMPACT_BROWSER_PACKAGES names no folder: run `cargo xtask dashboard`");
const require = createRequire(join(packages, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(join(packages, "node_modules/axe-core/axe.min.js"), "utf8");

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function openBrowser() {
  return chromium.launch({ executablePath: process.env.COMPACT_CHROMIUM ?? "/usr/bin/chromium", args: flags });
}

// A page that fails the test for what the browser complains about; `faults` is asserted empty when it is checked.
export async function openPage(browser, address, { width = 1280, height = 900, scheme = "light", ...more } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, bypassCSP: false, ...more });
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) page.faults.push(message.text()); });
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(address)) page.faults.push(`asks ${request.url()}`); });
  page.on("dialog", (dialog) => { page.faults.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.address = address;
  return page;
}

export async function visit(page, path) {
  const answer = await page.goto(page.address + path);
  return answer;
}

// axe runs through the debugger, which the page's policy does not bind.
export async function checkPage(page) {
  assert.deepEqual(page.faults, []);
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  const said = found.violations.map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(said, []);
  const [content, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= seen, `the page is ${content} wide in a window of ${seen}`);
  assert.deepEqual(await findSmallTargets(page), []);
}

// What a finger must hit has 24 pixels each way, but for links within a sentence.
function findSmallTargets(page) {
  return page.evaluate(() => {
    const targets = [...document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), textarea")];
    const isSmall = (element) => {
      const { width, height, right } = element.getBoundingClientRect();
      const isInSentence = getComputedStyle(element).display === "inline" && element.parentElement.textContent.trim().length > element.textContent.trim().length + 10;
      return element.checkVisibility() && right > 0 && !isInSentence && (width < 24 || height < 24);
    };
    return targets.filter(isSmall).map((element) => `${element.outerHTML} is ${element.getBoundingClientRect().width} by ${element.getBoundingClientRect().height}`);
  });
}

// Opens everything that folds.
export function unfold(page) {
  return page.evaluate(() => { for (const part of document.querySelectorAll("details")) part.open = true; });
}

// Looks at a page in every size and scheme that people have.
export async function checkEverywhere(browser, address, path, more = {}) {
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]]) {
    const page = await openPage(browser, address, { width, scheme, ...more });
    const answer = await visit(page, path);
    assert.equal(answer.status(), 200, path);
    const weight = (await answer.body()).length;
    assert.ok(weight <= 250_000, `${path} weighs ${weight} bytes`);
    await checkPage(page);
    await unfold(page);
    await checkPage(page);
    await page.context().close();
  }
}

// Walks with the tab key until something of that name has the focus.
export async function tabTo(page, name) {
  for (let step = 0; step < 400; step += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      return element.getAttribute("aria-label") ?? element.textContent.trim() ?? "";
    });
    if (focused === name || (name instanceof RegExp && name.test(focused))) return;
  }
  assert.fail(`the tab key never reaches ${name}`);
}
