// A picture of a page for the documentation, where a person asks for new ones (COMPACT_PICTURES=1).
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { root } from "./scene.mjs";

// `shown` is what the picture is about, where that may be below the first screen.
export async function picture(page, name, shown) {
  if (!process.env.COMPACT_PICTURES) return;
  await shown?.scrollIntoViewIfNeeded();
  mkdirSync(join(root, "docs/dashboard"), { recursive: true });
  await page.screenshot({ path: join(root, `docs/dashboard/${name}.png`) });
}
