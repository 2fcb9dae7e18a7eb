// visit.mjs PROTOCOL VISITS [FILE.har]: times of the event `load` in ms as JSON; with a file, the recording of the visit with the median.

import fs from 'fs';
import { harFromMessages } from 'chrome-har';
import puppeteer from 'puppeteer-core';

const [, , protocol, visits, file] = process.argv;
const ORIGINS = Array.from({ length: 8 }, (_, host) => `h${host}.test:443`);
const OF_PROTOCOL = {
  'http11-parallel': ['--disable-quic', '--disable-http2'], http2: ['--disable-quic'], http3: [`--origin-to-force-quic-on=${ORIGINS}`],
};
const SPOKEN = { 'http11-parallel': 'http/1.1', http2: 'h2', http3: 'h3' };
const ARGUMENTS = ['--no-sandbox', '--no-first-run', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
  `--ignore-certificate-errors-spki-list=${fs.readFileSync('key.sha256', 'utf8').trim()}`, ...OF_PROTOCOL[protocol]];
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function visit(number) {
  const userDataDir = fs.mkdtempSync('/tmp/visit-');
  const options = { executablePath: '/usr/bin/chromium', args: ARGUMENTS, userDataDir, pipe: true, headless: true };
  const browser = await puppeteer.launch(options);
  try {
    const page = await browser.newPage();
    const messages = [];
    await wait(500);
    if (file) {
      const session = await page.createCDPSession();
      await session.send('Page.enable');
      await session.send('Network.enable');
      session.on('*', (method, params) => messages.push({ method, params }));
    }
    await page.goto('https://h0.test/', { waitUntil: 'load', timeout: 60000 });
    await wait(file ? 800 : 150);
    if (file) fs.writeFileSync(`${file}.${number}`, JSON.stringify(harFromMessages(messages)));
    const { load, spoken } = await page.evaluate(() => {
      const { loadEventStart: load, nextHopProtocol: spoken } = performance.getEntriesByType('navigation')[0];
      return { load, spoken };
    });
    if (spoken !== SPOKEN[protocol]) throw new Error(`${protocol} was asked for, ${spoken} spoken`);
    return load;
  } finally {
    await browser.close();
    fs.rmSync(userDataDir, { recursive: true, force: true });
  }
}

const times = [];
for (let number = 0; number < +visits; number++) times.push(await visit(number));
if (file) {
  const median = [...times].sort((a, b) => a - b)[times.length >> 1];
  fs.copyFileSync(`${file}.${times.indexOf(median)}`, file);
  times.forEach((_, number) => fs.rmSync(`${file}.${number}`));
}
console.log(JSON.stringify(times));
process.exit(0);
