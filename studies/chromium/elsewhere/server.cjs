// server.cjs NUMBER [list]: the page's hosts over HTTP/1.1 and HTTP/2 with TLS, each at its address, by Node's own server; or a list of
// the objects as JSON, for the server that speaks HTTP/3.

const fs = require('fs');
const http2 = require('http2');
const zlib = require('zlib');
const { page } = require('./pages.cjs');

const { objects } = page(+process.argv[2]);

const TYPES = {
  html: 'text/html', css: 'text/css', js: 'text/javascript', img: 'image/png', font: 'font/woff2', json: 'application/json',
};
const MARKS = { css: ['/*', '*/'], js: ['//', ''], json: ['{"a":"', '"}'], font: ['', ''] };

function script(requests) {
  const by = {
    image: ({ url }) => `new Image().src='${url}';`,
    script: ({ url }) => `{const e=document.createElement('script');e.src='${url}';document.head.append(e);}`,
    fetch: ({ url, then }) => `fetch('${url}').then(r=>r.text()).then(()=>{${script(then)}});`,
  };
  return requests.map((request) => by[request.by](request)).join('\n');
}

function chunk(type, data) {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(data.length);
  head.write(type, 4);
  const checked = Buffer.concat([head.subarray(4), data]);
  let sum = 0xffffffff;
  for (const byte of checked) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 && 0xedb88320);
  }
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(~sum >>> 0);
  return Buffer.concat([head.subarray(0, 4), checked, tail]);
}

// A PNG of one pixel, which comes last: Chromium cancels the request for an image as soon as what has arrived is invalid.
function image(size) {
  const header = chunk('IHDR', Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]));
  const pixel = Buffer.concat([chunk('IDAT', zlib.deflateSync(Buffer.from([0, 0]))), chunk('IEND', Buffer.alloc(0))]);
  const start = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), header]);
  const rest = Math.max(1, size - start.length - pixel.length - 12);
  return Buffer.concat([start, chunk('tEXt', Buffer.from('a\0'.padEnd(rest, 'x').slice(0, rest))), pixel]);
}

function content({ type, text, size, work, requests, images, font, imported, name }) {
  if (type === 'html') return Buffer.from(text);
  let start = '';
  if (work) start += `{const t=performance.now()+${work};while(performance.now()<t);}\n`;
  if (requests) start += `${script(requests)}\n`;
  if (imported) start += `@import url("${imported}");\n`;
  (images || []).forEach((url, index) => (start += `.${name}x${index}{background:url("${url}")}\n`));
  if (font) start += `@font-face{font-family:f${name};src:url("${font}")} .${name}{font-family:f${name}}\n`;
  if (type === 'img') return image(size);
  const [open, close] = MARKS[type];
  const rest = Math.max(0, size - start.length - open.length - close.length);
  const filler = (_, index) => ((index * 2654435761) >>> 0).toString(36).padStart(10, 'x');
  return Buffer.from(start + open + Array.from({ length: Math.ceil(rest / 10) }, filler).join('').slice(0, rest) + close);
}

const bodies = Object.fromEntries(Object.entries(objects).map(([url, object]) => [url, content(object)]));

function respond(request, response) {
  const host = (request.headers[':authority'] || request.headers.host || '').split(':')[0];
  const object = objects[host + request.url];
  if (!object) return response.writeHead(404, { 'content-length': 0 }).end();
  const body = bodies[host + request.url];
  const fields = { 'content-type': TYPES[object.type], 'content-length': body.length, 'access-control-allow-origin': '*' };
  return setTimeout(() => response.writeHead(200, fields).end(body), object.delay);
}

if (process.argv[3]) {
  const list = Object.entries(objects).map(([url, { type, delay }]) => ({
    url, type: TYPES[type], delay: delay || 0, body: bodies[url].toString('base64'),
  }));
  fs.writeFileSync(1, JSON.stringify(list));
  return;
}
const options = { key: fs.readFileSync('key.pem'), cert: fs.readFileSync('certificate.pem'), allowHTTP1: true };
for (let host = 0; host < 8; host++) {
  const server = http2.createSecureServer(options, respond);
  // Node leaves Nagle's algorithm on for HTTP/1.1 here: the first response waits for the ACK of the session tickets.
  server.on('connection', (socket) => socket.setNoDelay(true));
  server.listen(443, `10.50.2.1${host}`);
}
