// The requests of server.py, by node's http and https.
// usage: node server.js PORT LOG [CERT KEY]
const fs = require('fs'), http = require('http'), https = require('https');
const [port, log, cert, key] = process.argv.slice(2);
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1000);
const wait = (name, ms, then) => {
  const start = now();
  setTimeout(() => { fs.appendFileSync(log, `${name} ${start} ${now()}\n`); then(); }, ms);
};
const handler = (request, response) => {
  const q = Object.fromEntries([...new URL(request.url, 'http://h').searchParams].map(([k, v]) => [k, +v]));
  const size = q.size ?? 500, body = Buffer.alloc(size, 'x');
  const respond = () => {
    response.writeHead(200, {'Content-Length': size});
    if (q.late) {
      const at = q.at ?? size >> 1;
      response.write(body.subarray(0, at));
      wait('late', q.late, () => response.end(body.subarray(at)));
    } else response.end(body);
  };
  request.resume().on('end', () => q.think ? wait('think', q.think, respond) : respond());
};
const server = cert ? https.createServer({cert: fs.readFileSync(cert), key: fs.readFileSync(key)}, handler) : http.createServer(handler);
server.keepAliveTimeout = 1500;
server.listen(+port, '0.0.0.0');
