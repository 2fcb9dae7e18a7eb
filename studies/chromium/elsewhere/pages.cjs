// Pages by number, made without Roundtrip: style sheets with imports, fonts and images; scripts in the head and the body, deferred, async,
// that compute and request data, images and other scripts; images with small boxes; server times.

function generator(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

const SUFFIXES = { css: 'css', js: 'js', img: 'png', font: 'woff2', json: 'json' };

exports.page = function page(number) {
  const random = generator(number * 7919 + 17);
  const below = (count) => Math.floor(random() * count);
  const between = (low, high) => Math.round(low * Math.pow(high / low, random()));
  const hosts = 1 + Math.floor(random() * random() * 8);
  const objects = {};
  let count = 0;
  const add = (type, size, delay = 0, more = {}) => {
    const host = `h${Math.floor(random() * random() * hosts)}.test`;
    const path = `/${type}/${count++}.${SUFFIXES[type]}`;
    objects[host + path] = { type, size, delay, ...more };
    return `https://${host}${path}`;
  };
  const delay = () => (random() < 0.2 ? between(5, 150) : 0);
  const requests = (depth) => {
    const all = [];
    for (let index = depth < 3 ? below(3.2) : 0; index > 0; index--) {
      const kind = random();
      if (kind < 0.35) {
        const then = random() < 0.5 ? [{ by: 'image', url: add('img', between(1000, 60000), delay()) }] : [];
        all.push({ by: 'fetch', url: add('json', between(300, 40000), delay()), then });
      } else if (kind < 0.7) {
        all.push({ by: 'image', url: add('img', between(1000, 60000), delay()) });
      } else {
        const work = random() < 0.4 ? between(3, 60) : 0;
        all.push({ by: 'script', url: add('js', between(3000, 90000), delay(), { work, requests: requests(depth + 1) }) });
      }
    }
    return all;
  };
  const [head, body] = [[], []];
  for (let sheet = 1 + below(4); sheet > 0; sheet--) {
    const images = Array.from({ length: below(4) }, () => add('img', between(800, 30000), delay()));
    const font = random() < 0.4 ? add('font', between(15000, 60000)) : null;
    const imported = random() < 0.15 ? add('css', between(1000, 9000), 0, { images: [], name: `i${sheet}` }) : null;
    const name = `c${sheet}`;
    const url = add('css', between(2000, 80000), delay(), { images, font, imported, name });
    head.push(`<link rel=stylesheet href="${url}">`);
    body.push(...[...images, ''].map((_, image) => `<div class="${name}x${image} ${name}">text</div>`));
  }
  for (let script = below(7); script > 0; script--) {
    const mode = ['', 'defer', 'async', ''][below(4)];
    const work = random() < 0.5 ? between(3, 120) : 0;
    const url = add('js', between(3000, 200000), delay(), { work, requests: random() < 0.6 ? requests(1) : [] });
    const element = `<script ${mode} src="${url}"></script>`;
    if (random() < 0.6) head.push(element);
    else body.push(element);
  }
  for (let image = Math.floor(random() * random() * 70); image > 0; image--) {
    const box = random() < 0.5 ? 40 : 300;
    const element = `<img src="${add('img', between(600, 120000), delay())}" width=${box} height=${box}>`;
    body.splice(below(body.length + 1), 0, element);
  }
  const size = between(4000, 90000);
  const words = () => Array.from({ length: 12 }, () => below(1e6).toString(36)).join(' ');
  const text = (length) => {
    let all = '';
    while (all.length < length) all += `<p>${words()}</p>\n`;
    return all;
  };
  const gap = Math.max(0, size - head.join('').length - body.join('').length) / (body.length + 1);
  const content = body.map((element) => `${element}\n${text(gap)}`).join('');
  const start = `<!doctype html><html><head><meta charset=utf-8><title>p${number}</title>\n${head.join('\n')}\n</head><body>\n`;
  objects['h0.test/'] = { type: 'html', text: `${start}${text(gap)}${content}</body></html>`, delay: between(1, 120) };
  return { hosts, objects };
};
