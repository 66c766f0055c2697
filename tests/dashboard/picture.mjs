// A picture of a page for the documentation, where a person asks for new ones (COMPACT_PICTURES=1).
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { root } from "./scene.mjs";

// `shown` is what the picture is about, where that may be below the first screen.
export async function picture(page, name, shown) {
  if (!process.env.COMPACT_PICTURES) return;
  await shown?.scrollIntoViewIfNeeded();
  const folder = join(root, "docs/dashboard");
  mkdirSync(folder, { recursive: true });
  const taken = await page.screenshot({ path: join(folder, `${name}.png`) });
  const others = readdirSync(folder).filter((file) => file !== `${name}.png`);
  const same = others.filter((file) => readFileSync(join(folder, file)).equals(taken));
  assert.deepEqual(same, [], `${name}.png shows what others show`);
}
