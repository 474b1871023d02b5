// Looks pages over with axe-core at three widths, light and dark; see README.md.
//
//   node axe.mjs PAGE[#STATE] ...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let n = 0;
for (const spec of process.argv.slice(2)) {
  const [path, state = ""] = spec.split("#");
  for (const colorScheme of ["light", "dark"]) for (const width of [1440, 768, 390]) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    page.on("pageerror", error => { n++; console.error(`${spec}: ${error.message}`); });
    page.on("request", request => { if (!/^(file|data|blob):/.test(request.url())) { n++; console.error(`${spec} asks for ${request.url()}`); } });
    await page.goto(`file://${resolve(path)}#${state}`);
    await page.waitForTimeout(400);
    await page.evaluate(axe);
    for (const { id, help, nodes } of (await page.evaluate(() => axe.run())).violations) {
      n += nodes.length;
      console.error(`${spec}, ${colorScheme}, ${width}: ${id}: ${help}: ${nodes.slice(0, 3).map(node => node.target).join("; ")}`);
    }
    await context.close();
  }
}
await browser.close();
console.log(n === 0 ? "no violation" : `${n} faults`);
process.exit(n === 0 ? 0 : 1);
