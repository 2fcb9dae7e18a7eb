// A browser with the laboratory's page, for every test; nothing may leave the page, or fail in it.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, afterEach } from "node:test";
import AxeBuilder from "@axe-core/playwright";
import { chromium } from "playwright-core";

export const { CHROMIUM, ROUNDTRIP, PAGE, CORPUS } = process.env;
export const scratch = mkdtempSync(join(tmpdir(), "roundtrip-lab-"));

export let browser, address, page;
let server, requests, errors;

/** The program's output, whatever its exit status: 1 is a finding. */
export const roundtrip = (cwd, ...words) => new Promise((resolve, reject) => {
  execFile(ROUNDTRIP, words, { cwd, maxBuffer: 1 << 30, env: { ...process.env, COLUMNS: "" } }, (error, stdout, stderr) => {
    if (error && error.code === undefined) reject(error);
    else resolve({ status: error?.code ?? 0, stdout, stderr });
  });
});

before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  server = spawn(ROUNDTRIP, ["lab", "--no-open", "--listen", "127.0.0.1:0", "--directory", PAGE]);
  address = await new Promise((resolve, reject) => {
    server.stdout.once("data", (line) => resolve(String(line).trim()));
    server.once("exit", (status) => reject(new Error(`roundtrip lab ended with ${status}`)));
  });
});
after(async () => {
  await browser?.close();
  server?.kill();
  rmSync(scratch, { recursive: true });
});

/** A page whose requests and errors are recorded. */
const open = async (url, options = {}, prepare = async () => {}) => {
  const context = await browser.newContext({ acceptDownloads: false, ...options });
  await context.addInitScript(() => {
    const make = URL.createObjectURL.bind(URL);
    URL.createObjectURL = (blob) => make(window.savedBlob = blob);
  });
  const opened = await context.newPage();
  requests = [];
  errors = [];
  opened.on("request", (request) => requests.push(request.url()));
  opened.on("pageerror", (error) => errors.push(String(error)));
  opened.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  opened.on("dialog", (dialog) => { errors.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await prepare(opened);
  await opened.goto(url);
  await opened.waitForSelector("html[data-ready]");
  return opened;
};
/** Opens the page again, with other options or from elsewhere. `prepare` gets it before it loads. */
export const reopen = async (url, options, prepare) => {
  await page?.context().close();
  page = await open(url, options, prepare);
};
beforeEach(async () => { page = await open(address); });
afterEach(async () => {
  const own = new URL(address).origin;
  const foreign = requests.filter((url) => !url.startsWith(own) && !/^(blob|data|file):/.test(url));
  await page.context().close();
  assert.deepEqual(foreign, [], "a request to another host");
  assert.deepEqual(errors, [], "errors of the page");
});

/** Tasks of the pages' threads during a run, with their CPU time in microseconds (`tdur`). */
export const tasksDuring = async (run) => {
  await browser.startTracing(undefined, { categories: ["toplevel"] });
  await run();
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const thread = ({ pid, tid }) => `${pid} ${tid}`;
  const pages = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(thread));
  // Other events are parts of these.
  return traceEvents.filter((event) => event.name === "ThreadControllerImpl::RunTask" && event.tdur > 0 && pages.has(thread(event)));
};

/** Longest time for which the page may not respond. */
const FREEZE_MS = 100;
/** Fails if a task of the page's thread takes longer than that: in CPU time, since tasks take longer on a busy host. */
export const withoutFreeze = async (run) => {
  const tasks = await tasksDuring(run);
  assert.ok(tasks.length > 10, `${tasks.length} tasks`);
  const longest = Math.max(...tasks.map(({ tdur }) => tdur)) / 1e3;
  console.log(`longest task: ${longest.toFixed(0)} ms of CPU time`);
  assert.ok(longest <= FREEZE_MS, `${longest} ms`);
};

/** Findings of axe that are serious. */
export const serious = async () => {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 150)).slice(0, 3)}`);
};

/** Drops files on the page as a user does. */
export const dropFiles = async (files) => {
  const contents = files.map(({ name, bytes }) => ({ name, base64: Buffer.from(bytes).toString("base64") }));
  const transfer = await page.evaluateHandle((list) => {
    const data = new DataTransfer();
    for (const { name, base64 } of list) {
      data.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name));
    }
    return data;
  }, contents);
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
};
