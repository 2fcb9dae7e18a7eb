// A server with the fault, `server.js KIND apart`, or its fixed twin, `server.js KIND whole`. Prints its port.
// KIND: h1, tls, h2, grpc, by Node's own modules. Nagle's algorithm is on, as it was by default until Node 18.
const [kind, way] = process.argv.slice(2);
const fs = require('fs'), http = require('http'), https = require('https'), http2 = require('http2');
const body = Buffer.alloc(600, 'x');
const whole = way === 'whole';

function respond(request, response) {
  request.resume();
  if (whole) { response.writeHead(200, { 'content-length': 600 }); response.end(body); return; }
  response.writeHead(200, { 'content-length': 600 });
  response.flushHeaders();
  setImmediate(() => response.end(body));
}

function stream(stream) {
  const nagle = stream.session.raw;
  if (nagle) nagle.setNoDelay(whole);
  stream.on('error', () => {});
  stream.resume();
  stream.on('end', () => {
    if (kind === 'grpc') {
      const head = Buffer.alloc(5);
      head.writeUInt32BE(600, 1);
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      const message = Buffer.concat([head, body]);
      if (whole) stream.end(message); else setImmediate(() => { stream.write(message); setImmediate(() => stream.end()); });
    } else {
      stream.respond({ ':status': 200 });
      if (whole) stream.end(body); else setImmediate(() => stream.end(body));
    }
  });
}

let server;
if (kind === 'h1') server = http.createServer({ noDelay: whole }, respond);
if (kind === 'tls') {
  const files = { key: fs.readFileSync(process.env.GATE_KEY), cert: fs.readFileSync(process.env.GATE_CERT) };
  server = https.createServer({ ...files, noDelay: whole }, respond);
}
if (kind === 'h2' || kind === 'grpc') {
  server = http2.createServer();
  // The module sets TCP_NODELAY: the first stream takes it back.
  let latest;
  server.prependListener('connection', socket => { latest = socket; });
  server.on('session', session => { session.raw = latest; });
  server.on('stream', stream);
}
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
