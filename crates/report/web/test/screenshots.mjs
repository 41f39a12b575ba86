// Pictures of a page: node screenshots.mjs PAGE.html DIRECTORY
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [, , file, directory] = process.argv;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--force-color-profile=srgb"] });
const pictures = [
  ["report-overview", "light", "#view=overview"],
  ["report-heatmap", "dark", "#view=heatmap&t=0-5500000000"],
  ["report-timeline", "light", "#view=timeline&t=200000000-1150000000"],
  ["report-tree", "dark", "#view=tree"],
];
for (const [name, colorScheme, hash] of pictures) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme });
  await page.goto(pathToFileURL(file).href + hash);
  await page.waitForSelector("html[data-ready]");
  await page.waitForTimeout(400);
  await page.screenshot({ path: `${directory}/${name}.png` });
  await page.close();
}
await browser.close();
