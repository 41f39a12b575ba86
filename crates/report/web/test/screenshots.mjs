// Pictures of a page: node screenshots.mjs PAGE.html DIRECTORY
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [, , file, directory] = process.argv;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox", "--force-color-profile=srgb"],
});
const pictures = [
  ["overview", "#view=overview"],
  ["steps", "#view=steps"],
  ["heatmap", "#view=heatmap&t=0-5500000000"],
  ["timeline", "#view=timeline&t=200000000-1150000000"],
  ["tree", "#view=tree"],
];
for (const [view, hash] of pictures)
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme });
    await page.goto(pathToFileURL(file).href + hash);
    await page.waitForSelector("html[data-ready]");
    await page.waitForTimeout(400);
    await page.screenshot({ path: `${directory}/report-${view}-${colorScheme}.png` });
    await page.close();
  }
await browser.close();
