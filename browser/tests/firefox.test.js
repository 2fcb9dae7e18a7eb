// The page in Firefox, where its package is installed: the same verdicts, rows and packets as in Chromium, from a server and from one file.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";
import { CORPUS, PAGE, address, roundtrip, scratch } from "./harness.js";

const { FIREFOX } = process.env;

describe("Firefox", { skip: !FIREFOX && "no Firefox" }, () => {
  let firefox;
  before(async () => { firefox = await puppeteer.launch({ browser: "firefox", executablePath: FIREFOX, headless: true }); });
  after(async () => { await firefox?.close(); });

  /** Runs a test on a page whose errors and requests to other hosts are failures. */
  const within = async (url, run) => {
    const page = await firefox.newPage(), wrong = [];
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
    page.on("request", (request) => { if (!request.url().startsWith(new URL(address).origin) && !/^(blob|data|file):/.test(request.url())) wrong.push(request.url()); });
    await page.goto(url);
    await page.waitForSelector("html[data-ready]");
    await run(page);
    await page.close();
    assert.deepEqual(wrong, []);
  };
  const text = (page, selector) => page.$eval(selector, (one) => one.textContent);

  test("captures have the verdicts of the command line", async () => {
    await within(address, async (page) => {
      const names = readdirSync(join(CORPUS, "capture")).slice(0, 10);
      for (const name of names) {
        const { stdout, stderr } = await roundtrip(join(CORPUS, "capture"), "diagnose", name);
        const input = await page.$("#files");
        await input.uploadFile(join(CORPUS, "capture", name));
        const article = `article[aria-label="${name}"]`;
        await page.waitForSelector(`${article} .verdict, ${article} .refused p`);
        const own = await text(page, `${article} .verdict, ${article} .refused p`);
        assert.ok(`${stdout}${stderr}`.replaceAll(/\s+/g, " ").includes(own.replaceAll(/\s+/g, " ").trim().replace(/\.$/, "")), `${name}: ${own}\n${stdout}${stderr}`);
      }
    });
  });

  test("scenarios have the rows of the command line, and packets travel", async () => {
    await within(`${address}#compare?page=6651+3883&rate=1Mbit&rtt=100ms&protocol=http11`, async (page) => {
      await page.waitForSelector("#compare .walk");
      const { stdout } = await roundtrip(scratch, "compare", "--page", "6651+3883", "--rate", "1Mbit", "--rtt", "100ms", "--protocol", "http11",
        "--stack", "linux", "--runs", "1", "--engine", "model,simulate", "--format", "json");
      assert.deepEqual(JSON.parse(await page.$eval("#compare [data-rows]", (one) => one.dataset.rows)), JSON.parse(stdout));
      await page.evaluate(() => [...document.querySelectorAll("#compare .walk button")].find((one) => one.textContent === "Play").click());
      await page.waitForFunction(() => !document.querySelector("#compare .walk .facts").textContent.startsWith("Packet 1 of"));
    });
  });

  test("one file works from file://", async () => {
    await within(pathToFileURL(join(PAGE, "roundtrip-lab.html")).href, async (page) => {
      await (await page.$("#files")).uploadFile(join(CORPUS, "capture", "nagle"));
      await page.waitForSelector("article .verdict");
      assert.match(await text(page, "article .verdict"), /^nagle-delayed-ack: \d+ ms lost\.$/);
    });
  });
});
