// The laboratory's page in a real browser: what is dropped is diagnosed as by the command line, and nothing leaves the page.
import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, readdirSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { CORPUS, PAGE, ROUNDTRIP, address, dropFiles, page, reopen, roundtrip, scratch, serious, withoutFreeze } from "./harness.js";

const CAPTURES = process.env.ROUNDTRIP_CAPTURES, HARS = process.env.ROUNDTRIP_HARS;

const choose = (...files) => page.setInputFiles("#files", files);
const article = (name) => page.locator(`article.capture[aria-label="${name}"]`);
const verdict = (name) => article(name).locator(".verdict").first();
/** The text that a button saves. Chromium does not report every one of many downloads in a row, so it is read in the page. */
const saved = async (name, format) => {
  await page.evaluate(() => { window.savedBlob = null; });
  await article(name).getByRole("button", { name: format, exact: true }).click();
  await page.waitForFunction(() => window.savedBlob);
  return page.evaluate(() => window.savedBlob.text());
};

/** A capture without its secrets, and these: Decryption Secrets Blocks of a pcapng in little-endian order. */
const withoutSecrets = (bytes) => {
  const [bare, secrets] = [[], []];
  for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at + 4)) {
    const block = bytes.subarray(at, at + bytes.readUInt32LE(at + 4));
    if (block.readUInt32LE(0) === 10) secrets.push(block.subarray(16, 16 + block.readUInt32LE(12)));
    else bare.push(block);
  }
  return [Buffer.concat(bare), Buffer.concat(secrets)];
};

describe("captures", () => {
  test("a dropped capture is diagnosed, its verdict first", async () => {
    await dropFiles([{ name: "nagle", bytes: readFileSync(join(CORPUS, "capture", "nagle")) }]);
    await verdict("nagle").waitFor();
    assert.match(await verdict("nagle").textContent(), /^nagle-delayed-ack: \d+ ms lost\.$/);
    assert.match(await article("nagle").locator("ol.causes").textContent(), /A fix would save about/);
  });

  test("every capture of the corpus gives the JSON, text and CSV of the command line", async () => {
    const directory = join(CORPUS, "capture"), names = readdirSync(directory);
    assert.ok(names.length > 10, `${names.length}`);
    await compareWithProgram(directory, names);
  });

  test("captures of third parties give the JSON, text and CSV of the command line", { skip: !CAPTURES && "no ROUNDTRIP_CAPTURES" }, async () => {
    const names = readdirSync(CAPTURES).filter((name) => /\.(pcap|pcapng|cap|dmp)(\.(gz|zst))?$/.test(name));
    await compareWithProgram(CAPTURES, names);
  });

  test("two captures at once are two diagnoses", async () => {
    await choose(join(CORPUS, "capture", "nagle"), join(CORPUS, "capture", "pipelined"));
    await verdict("nagle").waitFor();
    await verdict("pipelined").waitFor();
    assert.match(await verdict("pipelined").textContent(), /server takes/);
  });

  test("a key log beside a capture shows what is within TLS, as on the command line", async () => {
    const [bare, log] = withoutSecrets(readFileSync(join(CORPUS, "capture", "tls13-secrets")));
    writeFileSync(join(scratch, "tls.pcapng"), bare);
    writeFileSync(join(scratch, "keys.log"), log);
    const urls = article("tls.pcapng").locator("td.url");
    await choose(join(scratch, "tls.pcapng"));
    await verdict("tls.pcapng").waitFor();
    assert.equal(await urls.count(), 0);
    await choose(join(scratch, "keys.log"));
    await urls.first().waitFor({ state: "attached" });
    // The longest comes first.
    assert.deepEqual(await urls.allTextContents(), ["GET /slow", "GET /a"]);
    assert.match(await page.locator("#keys").textContent(), /^Key log: keys.log\./);
    assert.equal(await page.locator("article.capture").count(), 1);
    const { stdout } = await roundtrip(scratch, "diagnose", "tls.pcapng", "--keys", "keys.log", "--format", "json");
    assert.equal(await saved("tls.pcapng", "JSON"), stdout);
    // What comes later is read with it, too.
    await choose(join(CORPUS, "capture", "tls13-http2-secrets"));
    await verdict("tls13-http2-secrets").waitFor();
    assert.match(await article("tls13-http2-secrets").textContent(), /read with the key log: 1 of 1 connection/);
  });

  test("a finding shows its part of the plot, and the plot its finding", async () => {
    await choose(join(CORPUS, "capture", "nagle"));
    const plot = page.locator("svg.sequence"), data = plot.locator("svg.data");
    await plot.waitFor();
    const whole = await data.getAttribute("viewBox");
    await page.locator(".finding button[data-from]").first().click();
    const zoomed = await data.getAttribute("viewBox");
    assert.notEqual(zoomed, whole);
    assert.equal(await page.locator(".finding.shown").count(), 1);
    await plot.focus();
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await data.getAttribute("viewBox"), zoomed);
    await page.keyboard.press("0");
    assert.equal(await data.getAttribute("viewBox"), whole);
    await page.evaluate(() => document.querySelectorAll(".shown").forEach((one) => one.classList.remove("shown")));
    const stall = await plot.locator("rect").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).filter((box) => box.width > 20 && box.width < 300 && box.height > 50)
      .map((box) => ({ x: box.x + box.width / 2, y: box.y + 20 }))[0]);
    await page.mouse.click(stall.x, stall.y);
    assert.equal(await page.locator(".finding.shown, tr.shown").count(), 1);
  });

  test("connections are searched, sorted and filtered by cause", async () => {
    const path = join(scratch, "many.pcap");
    writeFileSync(path, capture(Array.from({ length: 300 }, (_, index) => exchange({ port: 40_000 + index, at: index * 10, wait: 20 + index }))));
    await choose(path);
    await verdict("many.pcap").waitFor();
    const rows = page.locator("table.rows tbody tr");
    assert.equal(await rows.count(), 200);
    await page.getByRole("button", { name: "Show more" }).click();
    assert.equal(await rows.count(), 300);
    await page.getByRole("button", { name: "took", exact: true }).click();
    assert.match(await rows.first().textContent(), /10.0.0.1:40299/);
    await page.getByRole("button", { name: "took", exact: true }).click();
    assert.match(await rows.first().textContent(), /10.0.0.1:40000/);
    await page.getByRole("searchbox").fill("40123");
    assert.equal(await rows.count(), 1);
    await rows.first().click();
    await page.locator("h2", { hasText: "10.0.0.1:40123" }).waitFor();
    await page.getByText("Filter", { exact: true }).click();
    await page.getByLabel("connection", { exact: true }).fill("10.0.0.1:40007");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.locator(".facts", { hasText: "1 shown" }).waitFor();
    await page.getByLabel("cause", { exact: true }).fill("no-such-cause");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.locator(".refused", { hasText: "unknown cause" }).waitFor();
  });

  test("what is no capture, or a damaged one, gives the sentence of the command line", async () => {
    const nagle = readFileSync(join(CORPUS, "capture", "nagle"));
    const files = { empty: Buffer.alloc(0), "page.html": Buffer.from("<!doctype html><p>no capture"), cut: nagle.subarray(0, nagle.length - 7),
      "cut.gz": Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]), first: nagle.subarray(0, 30), zeros: Buffer.alloc(100_000) };
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(scratch, name), bytes);
    await compareWithProgram(scratch, Object.keys(files));
  });

  test("names and addresses with markup are text", async () => {
    const hostile = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
    const bytes = capture([exchange({ port: 40_000, at: 0, wait: 500, path: `/${hostile.replaceAll(" ", "%20")}` })]);
    const name = '<img src=x onerror=alert(1)>&quot;.pcap';
    await dropFiles([{ name, bytes }, { name: `${hostile}.pcap`, bytes: Buffer.from("no capture") }]);
    await page.locator("article .verdict").waitFor();
    await page.locator("article .refused").waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.match(await page.locator("td.url").first().textContent(), /<script>alert\(2\)<\/script>/);
  });

  test("reading is cancelled, and the page goes on with the next file", async () => {
    const path = join(scratch, "long.pcap");
    writeBulk(path, 300e6);
    await choose(path);
    await page.getByRole("button", { name: "Cancel" }).click();
    await article("long.pcap").locator(".refused", { hasText: "cancelled" }).waitFor();
    await choose(join(CORPUS, "capture", "nagle"));
    await verdict("nagle").waitFor();
  });

  test("a large capture takes flat memory, and the page stays alive", async () => {
    const path = join(scratch, "large.pcap");
    const packets = writeBulk(path, 1e9);
    await withoutFreeze(async () => {
      await choose(path);
      await verdict("large.pcap").waitFor({ timeout: 120_000 });
    });
    const { memory, tookMs } = await article("large.pcap").evaluate((one) => ({ ...one.dataset }));
    const began = performance.now();
    await roundtrip(scratch, "diagnose", "large.pcap");
    const native = performance.now() - began, speed = (ms) => `${(packets / ms / 1e3).toFixed(2)} M packets/s`;
    console.log(`1 GB: ${tookMs} ms, ${(memory / 1e6).toFixed(1)} MB, ${speed(tookMs)}; ${ROUNDTRIP} alone: ${native.toFixed(0)} ms, ${speed(native)}`);
    assert.ok(memory < 64e6, `${memory} bytes`);
  });

  test("the page responds while a capture of 20 MB is read", async () => {
    const path = join(scratch, "medium.pcap");
    writeBulk(path, 20e6);
    await withoutFreeze(async () => {
      await choose(path);
      await verdict("medium.pcap").waitFor();
      await page.locator("svg.sequence").waitFor();
    });
    console.log(`20 MB: first verdict after ${await article("medium.pcap").getAttribute("data-took-ms")} ms`);
  });
});

describe("crashes", () => {
  test("a worker that traps is reported, and the next file is read", async () => {
    await reopen(address, {}, (opened) => opened.route("**/worker.js", async (route) => {
      const source = await (await route.fetch()).text();
      const trap = "(text.includes('\"name\":\"crash\"') ? (() => { throw new WebAssembly.RuntimeError('unreachable'); })() : lab.handle())";
      assert.ok(source.includes("lab.handle()"));
      await route.fulfill({ contentType: "text/javascript", body: source.replace("lab.handle()", trap) });
    }));
    await dropFiles([{ name: "crash", bytes: readFileSync(join(CORPUS, "capture", "nagle")) }]);
    await article("crash").locator(".refused", { hasText: "the reader crashed" }).waitFor();
    await choose(join(CORPUS, "capture", "nagle"));
    await verdict("nagle").waitFor();
  });
});

describe("hostile addresses", () => {
  const hostile = encodeURIComponent('"><img src=x onerror="alert(1)"><script>alert(2)</script>');

  for (const view of ["compare?page=", "compare?run=", "compare?network=", "compare?har=", "compare?step=", "compare?", "papers?key=", "papers?trace=", "lessons?", ""]) {
    test(`markup in #${view} is text`, async () => {
      await page.goto(`${address}#${view}${hostile}`);
      await page.waitForFunction(() => document.querySelectorAll(".view:not([hidden]) > *").length > 0);
      await page.waitForLoadState("networkidle");
      assert.equal(await page.locator("main img:not(.figure), main script").count(), 0);
      await page.getByRole("link", { name: "Lessons" }).click();
      await page.locator("#lessons section").first().waitFor();
    });
  }

  test("a worker that traps is reported in Compare, and the next settings are computed", async () => {
    await reopen(address, {}, (opened) => opened.route("**/worker.js", async (route) => {
      const source = await (await route.fetch()).text();
      const trap = "(text.includes('13ms') ? (() => { throw new WebAssembly.RuntimeError('unreachable'); })() : lab.handle())";
      await route.fulfill({ contentType: "text/javascript", body: source.replace("lab.handle()", trap) });
    }));
    await page.goto(`${address}#compare?rtt=13ms`);
    await page.locator("#compare .refused", { hasText: "crashed" }).waitFor();
    await page.getByRole("slider", { name: "Round trip" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.locator("#compare [data-rows] h2").first().waitFor();
    assert.equal(await page.locator("#compare .refused").count(), 0);
  });
});

describe("comparison", () => {
  const shown = () => page.locator("#compare [data-rows] h2").first();

  test("a shared link is an experiment, with the rows of the command line", async () => {
    await page.goto(`${address}#compare?page=6651+3883+1866&rate=1Mbit&rtt=100ms&protocol=http10,http11`);
    await shown().waitFor();
    const command = (await page.locator("#compare code").textContent()).split(" ").slice(1);
    const { stdout, stderr } = await roundtrip(scratch, ...command, "--engine", "model", "--engine", "simulate", "--format", "json");
    const reply = await page.locator("#compare [data-rows]").getAttribute("data-rows");
    assert.ok(stdout, `${command}: ${stderr}`);
    assert.deepEqual(JSON.parse(reply), JSON.parse(stdout));
  });

  test("bars follow a slider, and the address names the settings", async () => {
    await page.goto(`${address}#compare`);
    await shown().waitFor();
    const before = await page.locator("#compare .results table").first().textContent();
    await page.getByRole("slider", { name: "Round trip" }).focus();
    await withoutFreeze(async () => {
      for (let step = 0; step < 10; step += 1) await page.keyboard.press("ArrowRight");
      await page.waitForFunction((text) => document.querySelector("#compare .results table").textContent !== text, before);
    });
    assert.match(page.url(), /#compare\?rtt=\d+ms/);
    const url = page.url();
    const text = await page.locator("#compare output").nth(1).textContent();
    await page.goto("about:blank");
    await page.goto(url);
    await shown().waitFor();
    assert.equal(await page.locator("#compare output").nth(1).textContent(), text);
  });

  test("HTTP/3 has the formulas' row, and the reason why it is not simulated", async () => {
    await page.goto(`${address}#compare?protocol=http3,http2&run=http3`);
    await shown().waitFor();
    const rows = JSON.parse(await page.locator("#compare [data-rows]").getAttribute("data-rows")).filter((row) => row.protocol === "http3");
    const [predicted, simulated] = ["model", "simulate"].map((engine) => rows.find((row) => row.engine === engine));
    assert.ok(predicted.elapsed_ms > 0);
    assert.equal(simulated.elapsed_ms, null);
    await page.locator("#compare .notes", { hasText: "HTTP/3 in WebAssembly" }).waitFor();
    await page.locator("#compare .results section", { hasText: "packet by packet" }).getByText("HTTP/3 in WebAssembly").waitFor();
  });

  test("an invalid value gives the sentence of the command line", async () => {
    await page.goto(`${address}#compare?page=nowhere`);
    await page.locator("#compare .refused", { hasText: "page" }).waitFor();
    await page.goto(`${address}#compare?page=microscape&client-codings=br`);
    await page.locator("#compare .refused", { hasText: "coding" }).waitFor();
  });

  test("a switch shows the stall that it causes", async () => {
    await page.goto(`${address}#compare?page=600+600+600&rate=100Mbit&rtt=1ms&protocol=http11&server-head=apart&nagle=on`);
    await page.locator(".stalls", { hasText: "nagle-delayed-ack" }).waitFor();
    await page.getByLabel("Nagle").selectOption("off");
    await page.waitForFunction(() => !document.querySelector(".stalls")?.textContent.includes("nagle-delayed-ack"));
  });

  test("a dropped HAR is the page of the experiment", { skip: !HARS && "no ROUNDTRIP_HARS" }, async () => {
    const name = "pagexray__http2-chrome.har";
    await dropFiles([{ name, bytes: readFileSync(join(HARS, name)) }]);
    await page.waitForURL(/#compare\?har=/);
    await page.locator("#compare [data-rows] h2", { hasText: "http2-chrome" }).waitFor({ timeout: 60_000 });
  });
});

describe("recordings", () => {
  test("a dropped trace of Chromium is the page of the experiment", async () => {
    await dropFiles([{ name: "startup.json", bytes: trace() }]);
    await page.waitForURL(/#compare\?har=startup.json/);
    await page.locator("#compare [data-rows] h2", { hasText: "startup" }).waitFor({ timeout: 60_000 });
    const rows = JSON.parse(await page.locator("#compare [data-rows]").getAttribute("data-rows"));
    writeFileSync(join(scratch, "startup.json"), trace());
    const { stdout } = await roundtrip(scratch, "compare", "--page", "startup.json", ...NETWORK, "--protocol", "http11-parallel,http2",
      "--stack", "linux", "--runs", "1", "--engine", "model,simulate", "--format", "json");
    assert.deepEqual(rows, JSON.parse(stdout));
  });

  test("every recording of the corpus gives the rows or the sentence of the command line", async () => {
    const names = readdirSync(join(CORPUS, "har")), different = [];
    assert.ok(names.length > 10, `${names.length}`);
    for (const name of names) {
      const bytes = readFileSync(join(CORPUS, "har", name)), file = `${name}.har`;
      writeFileSync(join(scratch, file), bytes);
      await page.goto("about:blank");
      await page.goto(address);
      await dropFiles([{ name: file, bytes }]);
      await page.locator("#compare .lead .refused, #compare [data-rows] h2").first().waitFor({ timeout: 60_000 });
      const [refused] = await page.locator("#compare .lead .refused").allTextContents();
      const { stdout, stderr } = await roundtrip(scratch, "compare", "--page", file, ...NETWORK, "--protocol", "http11-parallel,http2",
        "--stack", "linux", "--runs", "1", "--engine", "model,simulate", "--format", "json");
      if (refused !== undefined) {
        if (stderr.trim() !== `roundtrip: --page: ${refused}`) different.push(`${name}: "${refused}" but "${stderr.trim()}"`);
      } else {
        const [ours, theirs] = [await page.locator("#compare [data-rows]").getAttribute("data-rows"), stdout].map((text) => JSON.stringify(JSON.parse(text || "null"), null, 1));
        if (ours !== theirs) different.push(`${name}: ${firstDifference(ours, theirs)} ${stderr}`);
      }
      assert.equal(await page.locator("main img, main script").count(), 0, name);
    }
    assert.deepEqual(different, []);
  });

  test("what is no recording gives a sentence, and the page goes on", async () => {
    await dropFiles([{ name: "package.json", bytes: Buffer.from("{\"name\": \"none\"}") }]);
    await page.locator("#compare .refused", { hasText: "package.json" }).waitFor();
    await page.goto(`${address}#compare?rtt=20ms`);
    await page.locator("#compare [data-rows] h2").first().waitFor();
  });
});

describe("papers", () => {
  const items = () => page.locator("#papers details.item");

  test("every table and figure is there, with the numbers of the command line", async () => {
    await page.goto(`${address}#papers`);
    await items().first().waitFor();
    const { stdout } = await roundtrip(scratch, "reproduce", "heidemann-model", "p-http", "--format", "json");
    const counts = new Map();
    for (const { key } of JSON.parse(stdout)) counts.set(key, (counts.get(key) ?? 0) + 1);
    assert.ok(counts.size > 15);
    await withoutFreeze(async () => {
      for (const [key, count] of counts) {
        const item = items().filter({ has: page.getByText(`${key}: `) });
        await item.locator("summary").click();
        // What is folded is filled when it opens.
        await item.locator("td b[class]").first().waitFor();
        assert.equal(await item.locator("td b[class]").count(), count, key);
      }
    });
    assert.ok(await items().count() > 50);
  });

  test("a link opens a figure, which zooms", async () => {
    await page.goto(`${address}#papers?key=p-http/figure-3`);
    const figure = page.locator("#papers details[open] img.figure");
    await figure.waitFor();
    assert.equal(await page.locator("#papers details[open]").count(), 1);
    assert.match(await figure.getAttribute("alt"), /segment/);
    await page.waitForFunction(() => document.querySelector("details[open] img.figure").naturalWidth > 0);
    const { width } = await figure.boundingBox();
    await page.getByRole("button", { name: "Larger" }).click();
    assert.ok((await figure.boundingBox()).width > 1.4 * width);
  });

  test("the statements of studies until 2026 are among them", async () => {
    await page.goto(`${address}#papers?key=today/claims`);
    await page.locator("#papers details[open] td b[class]").first().waitFor();
    const rows = page.locator("#papers details[open] tbody tr");
    assert.ok(await rows.count() >= 60, `${await rows.count()}`);
    await rows.filter({ hasText: "pq2026" }).first().waitFor();
  });

  test("a verdict selects the tables that have it", async () => {
    await page.goto(`${address}#papers`);
    await items().first().waitFor();
    const all = await items().count();
    await page.getByLabel("With the verdict").selectOption("explained");
    const some = await items().locator("visible=true").count();
    assert.ok(some > 3 && some < all / 2, `${some} of ${all}`);
    for (const facts of await items().locator("visible=true").locator("summary").allTextContents()) assert.match(facts, /\d explained/);
  });
});

describe("lessons", () => {
  test("every lesson links to tables and figures that there are", async () => {
    await page.goto(`${address}#lessons`);
    const links = await page.locator("#lessons a[href^='#papers?key=']").evaluateAll((all) => all.map((one) => one.getAttribute("href")));
    assert.ok(links.length >= 7);
    for (const link of links) {
      await page.goto(`${address}${link}`);
      await page.locator("#papers details[open] summary", { hasText: `${link.split("=")[1]}: ` }).waitFor();
    }
  });

  test("every lesson answers its question by a run", async () => {
    await page.goto(`${address}#lessons`);
    const lessons = page.locator("#lessons section");
    assert.equal(await lessons.count(), 7);
    for (let index = 0; index < 7; index += 1) {
      const lesson = lessons.nth(index);
      await lesson.getByRole("radio").first().check();
      await lesson.getByRole("button", { name: "Run it" }).click();
      await lesson.locator(".verdict").waitFor({ timeout: 60_000 });
    }
    const verdicts = await page.locator("#lessons .verdict").allTextContents();
    assert.match(verdicts[1], /more than twenty times/);
    assert.match(verdicts[2], /two/);
    assert.match(verdicts[3], /more than four times/);
    assert.match(verdicts[6], /about twice/);
  });
});

describe("reach", () => {
  test("the same page works from one file", async () => {
    await reopen(pathToFileURL(join(PAGE, "roundtrip-lab.html")).href);
    await choose(join(CORPUS, "capture", "nagle"));
    await verdict("nagle").waitFor();
    await page.getByRole("link", { name: "Compare" }).click();
    await page.locator("#compare [data-rows] h2").first().waitFor();
    await page.getByRole("link", { name: "Papers" }).click();
    await page.locator("#papers summary").first().click();
    await page.locator("#papers details[open] table").waitFor();
  });

  test("the page goes on without a network", async () => {
    await page.waitForLoadState("networkidle");
    await page.context().setOffline(true);
    await choose(join(CORPUS, "capture", "nagle"));
    await verdict("nagle").waitFor();
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`axe finds nothing serious, ${colorScheme}`, async () => {
      await reopen(address, { colorScheme });
      assert.deepEqual(await serious(), []);
      await choose(join(CORPUS, "capture", "nagle"));
      await page.locator("svg.sequence").waitFor();
      assert.deepEqual(await serious(), []);
      await page.getByRole("link", { name: "Compare" }).click();
      await page.locator("#compare [data-rows] h2").first().waitFor();
      await page.locator("#compare svg.sequence").waitFor();
      assert.deepEqual(await serious(), []);
      await page.goto(`${address}#papers?key=heidemann-model/figure-5`);
      await page.locator("#papers details[open] table").waitFor();
      assert.deepEqual(await serious(), []);
      await page.getByRole("link", { name: "Lessons" }).click();
      await page.locator("#lessons section").first().waitFor();
      assert.deepEqual(await serious(), []);
    });
  }

  test("nothing is wider than 360 pixels", async () => {
    await reopen(address, { viewport: { width: 360, height: 844 } });
    const isWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    await choose(join(CORPUS, "capture", "nagle"));
    await page.locator("svg.sequence").waitFor();
    assert.equal(await isWide(), false);
    await page.getByRole("link", { name: "Compare" }).click();
    await page.locator("#compare svg.sequence").waitFor();
    assert.equal(await isWide(), false);
    await page.goto(`${address}#papers?key=p-http/figure-3`);
    await page.locator("#papers details[open] img.figure").waitFor();
    assert.equal(await isWide(), false);
    await page.getByRole("link", { name: "Lessons" }).click();
    assert.equal(await isWide(), false);
  });

  test("a capture is diagnosed by the keyboard alone", async () => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the contents");
    for (let step = 0; step < 8 && !(await page.evaluate(() => document.activeElement.id === "files")); step += 1) await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "files");
    const chooser = page.waitForEvent("filechooser");
    await page.keyboard.press("Space");
    await (await chooser).setFiles(join(CORPUS, "capture", "nagle"));
    await verdict("nagle").waitFor();
  });
});

/** Reads files on the page, and compares what it would save with the program's output. */
const compareWithProgram = async (directory, names) => {
  const different = [];
  for (const name of names) {
    await choose(join(directory, name));
    await article(name).locator(".verdict, .refused").first().waitFor({ timeout: 60_000 });
    const formats = { JSON: "json", CSV: "csv", HAR: "har", Text: "table" };
    const outputs = await Promise.all(Object.entries(formats).map(async ([button, format]) =>
      [button, await roundtrip(directory, "diagnose", name, "--format", format)]));
    const [[, json]] = outputs;
    if (await article(name).locator(".refused").count() > 0) {
      const sentence = await article(name).locator(".refused p").textContent();
      if (json.stderr.trim() !== `roundtrip: ${sentence}` || json.status !== 2) different.push(`${name}: "${sentence}" but "${json.stderr}"`);
    } else {
      for (const [format, output] of outputs) {
        const own = await saved(name, format);
        if (own !== output.stdout) different.push(`${name}: ${format} differs: ${firstDifference(own, output.stdout)}`);
      }
    }
    await article(name).getByRole("button", { name: "Remove" }).click();
  }
  assert.deepEqual(different, []);
};

const firstDifference = (one, other) => {
  const [ours, theirs] = [one.split("\n"), other.split("\n")];
  const at = ours.findIndex((line, index) => line !== theirs[index]);
  return `line ${at + 1}: "${ours[at]}" but "${theirs[at]}"`;
};

/** The page's network before a slider moves. */
const NETWORK = ["--rate", "10Mbit", "--rtt", "40ms"];

/** A trace of Chromium with a document and a style sheet. */
const trace = () => {
  const event = (name, ms, data) => ({ name, cat: "devtools.timeline", ph: "I", pid: 1, tid: 1, ts: ms * 1e3, args: { data } });
  const timing = (at) => ({ requestTime: at / 1e3, dnsStart: -1, dnsEnd: -1, connectStart: -1, connectEnd: -1, sslStart: -1, sslEnd: -1,
    sendStart: 1, sendEnd: 2, receiveHeadersStart: 32, receiveHeadersEnd: 33 });
  const request = (requestId, at, end, sent) => [
    event("ResourceWillSendRequest", at, { requestId }),
    event("ResourceSendRequest", at, { requestId, requestMethod: "GET", ...sent }),
    event("ResourceReceiveResponse", at + 35, { requestId, statusCode: 200, protocol: "h2", encodedDataLength: 120, connectionId: 7, timing: timing(at) }),
    event("ResourceReceivedData", end, { requestId, encodedDataLength: 4000 }),
    event("ResourceFinish", end + 1, { requestId, encodedDataLength: 4120, decodedBodyLength: 9000, didFail: false, finishTime: end / 1e3 }),
  ];
  const url = "https://www.example.com/";
  return Buffer.from(JSON.stringify({ metadata: {}, traceEvents: [
    ...request("a", 1000, 1100, { url, resourceType: "Document", priority: "VeryHigh" }),
    ...request("b", 1110, 1200, { url: `${url}a.css`, resourceType: "Stylesheet", priority: "VeryHigh", renderBlocking: "blocking", initiator: { type: "parser", url } }),
  ] }));
};

/** A capture of raw IP packets: lists of [milliseconds, bytes]. */
const capture = (connections) => {
  const packets = connections.flat().sort(([one], [other]) => one - other);
  return Buffer.concat([header(), ...packets.flatMap(([at, packet]) => [record(at, packet), packet])]);
};

const header = () => {
  const bytes = Buffer.alloc(24);
  bytes.writeUInt32LE(0xa1b2c3d4);
  bytes.writeUInt16LE(2, 4);
  bytes.writeUInt16LE(4, 6);
  bytes.writeUInt32LE(262_144, 16);
  bytes.writeUInt32LE(101, 20);
  return bytes;
};

const record = (at, packet) => {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt32LE(1_700_000_000 + Math.floor(at / 1e3));
  bytes.writeUInt32LE(Math.round((at % 1e3) * 1e3), 4);
  bytes.writeUInt32LE(packet.length, 8);
  bytes.writeUInt32LE(packet.length, 12);
  return bytes;
};

/** A TCP segment between 10.0.0.1 and 10.0.0.2:80. */
const segment = (isClient, port, sequence, acknowledged, flags, payload = Buffer.alloc(0)) => {
  const bytes = Buffer.alloc(40);
  bytes[0] = 0x45;
  bytes.writeUInt16BE(40 + payload.length, 2);
  bytes[8] = 64;
  bytes[9] = 6;
  bytes.set([10, 0, 0, isClient ? 1 : 2, 10, 0, 0, isClient ? 2 : 1], 12);
  bytes.writeUInt16BE(isClient ? port : 80, 20);
  bytes.writeUInt16BE(isClient ? 80 : port, 22);
  bytes.writeUInt32BE(sequence >>> 0, 24);
  bytes.writeUInt32BE(acknowledged >>> 0, 28);
  bytes[32] = 0x50;
  bytes[33] = flags;
  bytes.writeUInt16BE(65_535, 34);
  return Buffer.concat([bytes, payload]);
};

const [SYN, ACK, PUSH] = [2, 16, 24];

/** A connection with one request, whose response takes the server a while. */
const exchange = ({ port, at, wait, path = "/" }) => {
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: example.org\r\n\r\n`);
  const response = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  const end = 1 + request.length, close = 1 + response.length;
  return [
    [at, segment(true, port, 0, 0, SYN)], [at + 1, segment(false, port, 0, 1, SYN | ACK)], [at + 1.1, segment(true, port, 1, 1, ACK)],
    [at + 1.2, segment(true, port, 1, 1, PUSH, request)], [at + 2, segment(false, port, 1, end, ACK)],
    [at + 2 + wait, segment(false, port, 1, end, PUSH, response)], [at + 2.1 + wait, segment(true, port, end, close, ACK)],
  ];
};

/** Writes a capture of one long response. Returns the number of its packets. */
const writeBulk = (path, size) => {
  const out = openSync(path, "w");
  writeSync(out, capture([exchange({ port: 40_000, at: 0, wait: 5 })]));
  const payload = Buffer.alloc(1_460, "x");
  let [at, sequence, packets] = [20, 44, 7];
  for (let written = 0; written < size;) {
    const part = [];
    for (let count = 0; count < 2_000; count += 1) {
      const packet = segment(false, 40_000, sequence, 45, ACK, payload);
      sequence += payload.length;
      part.push(record(at, packet), packet);
      if (count % 2 === 1) {
        const acknowledgement = segment(true, 40_000, 45, sequence, ACK);
        part.push(record(at + 0.05, acknowledgement), acknowledgement);
      }
      at += 0.12;
    }
    const bytes = Buffer.concat(part);
    writeSync(out, bytes);
    written += bytes.length;
    packets += 3_000;
  }
  closeSync(out);
  return packets;
};
