// Opens the report in a browser and uses it as a person would.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { createRequire } from "node:module";

const [executablePath, folder] = process.argv.slice(2);
const { chromium } = createRequire(join(folder, "x.js"))("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function open(name, { width = 1280, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  const url = pathToFileURL(join(folder, name)).href;
  const seen = { requests: [], errors: [], dialogs: 0 };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("dialog", (dialog) => { seen.dialogs += 1; return dialog.dismiss(); });
  await page.goto(url);
  return { page, seen, url };
}

const colour = (cell) => cell.evaluate((node) => getComputedStyle(node).backgroundColor);

// It renders, and clicking works.
{
  const { page, seen, url } = await open("report.html");
  assert.match(await page.title(), /^deloop: \d+ loops$/);
  assert.equal(await page.locator(".tile").count(), 4);
  assert.match(await page.locator(".tile.strong .value").innerText(), /^\$\d+\.\d\d$/);
  assert.ok((await page.locator(".chart .bar").count()) > 3, "bars over time");
  assert.equal(await page.locator(".breakdown").count(), 4);
  const cards = page.locator(".session");
  const number = await cards.count();
  assert.ok(number >= 10, `${number} sessions`);

  const card = page.locator(".session", { hasText: "failed the same way" }).filter({ has: page.locator(".strip .failed.in") }).first();
  const looped = card.locator(".strip .in");
  assert.equal(await colour(looped.nth(0)), await colour(looped.nth(1)), "repeated calls have one colour");
  const quiet = card.locator(".strip button:not(.in)").first();
  assert.notEqual(await colour(looped.nth(0)), await colour(quiet), "and no other call has it");

  assert.ok(await card.locator(".steps").isHidden());
  await looped.nth(2).click();
  assert.ok(await card.locator(".steps").isVisible(), "a click opens the steps");
  const here = card.locator(".step.here");
  assert.equal(await here.getAttribute("data-step"), await looped.nth(2).getAttribute("data-step"));
  assert.match(await here.innerText(), /⟲ repeats/);
  assert.match(await here.innerText(), /bash/);
  assert.ok((await card.locator(".step .deloop").count()) >= 2, "with what deloop would have done");
  const inView = await here.evaluate((node) => {
    const list = node.parentElement.getBoundingClientRect();
    const row = node.getBoundingClientRect();
    return row.top >= list.top - 1 && row.top < list.bottom;
  });
  assert.ok(inView, "the step that was clicked is in view");
  await page.keyboard.press("ArrowRight");
  assert.equal(await here.getAttribute("data-step"), await looped.nth(3).getAttribute("data-step"), "arrow keys go on");
  await card.screenshot({ path: join(folder, "card.png") });
  await card.locator(".close").click();
  assert.ok(await card.locator(".steps").isHidden());

  await page.locator("#filter").fill("gemini");
  const shown = await cards.evaluateAll((all) => all.filter((c) => !c.hidden).length);
  assert.ok(shown > 0 && shown < number, "the filter leaves some");
  await page.locator("#filter").fill("");

  // Text from sessions is text.
  const hostile = page.locator(".session", { hasText: "web_fetch" }).first();
  await hostile.locator(".strip .in").first().click();
  const text = await hostile.innerText();
  assert.ok(text.includes("</script><script>window.pwned = 1</script>"), "shown as it is");
  assert.ok(!/[\u202a-\u202e\u2066-\u2069\u001b]/.test(await page.locator("body").innerText()));
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator("img").count(), 0);

  assert.deepEqual(seen, { requests: [url], errors: [], dialogs: 0 }, "no request but for the page itself");
  // And none could leave it.
  const blocked = await page.evaluate(() => new Promise((done) => {
    document.addEventListener("securitypolicyviolation", (event) => done(event.violatedDirective), { once: true });
    fetch("http://127.0.0.1:9/").catch(() => {});
    setTimeout(() => done("nothing"), 2000);
  }));
  assert.equal(blocked, "connect-src");
}

// Light and dark, wide and narrow.
const backgrounds = new Set();
for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    const { page } = await open("report.html", { width, colorScheme });
    const { overflow, background } = await page.evaluate(() => ({
      overflow: document.scrollingElement.scrollWidth - innerWidth,
      background: getComputedStyle(document.body).backgroundColor,
    }));
    assert.ok(overflow <= 0, `${colorScheme} ${width}: ${overflow} pixels too wide`);
    backgrounds.add(background);
    const first = page.locator(".session").first();
    await first.locator(".strip .in").nth(1).click();
    await page.screenshot({ path: join(folder, `report-${colorScheme}-${width}.png`), clip: { x: 0, y: 0, width, height: 2400 }, fullPage: true });
  }
}
assert.equal(backgrounds.size, 2, "dark is not light");

// Nothing found: the examples, and it says so.
{
  const { page, seen, url } = await open("examples.html");
  assert.match(await page.locator(".example").innerText(), /example sessions that come with deloop/);
  assert.deepEqual(seen, { requests: [url], errors: [], dialogs: 0 });
}

await browser.close();
