// Time of a page by Lighthouse's simulated throttling (Lantern), from visits as `chromium lighthouse` records them.
//
// Arguments: the file of a visit, and networks as NAME=RTT_MS,KBIT_PER_SECOND. For each network one line of JSON is printed: the end of
// the last request that ended before `load`, and of the last task or request, in milliseconds. Requires npm's `lighthouse` 12 in
// this directory or above it. The laboratory has no DNS, so no time is charged for that.
import fs from 'node:fs';
import * as Lantern from 'lighthouse/core/lib/lantern/lantern.js';
import {PageDependencyGraph} from 'lighthouse/core/computed/page-dependency-graph.js';
import {LoadSimulator} from 'lighthouse/core/computed/load-simulator.js';

const [file, ...networks] = process.argv.slice(2);
const {url, messages, events} = JSON.parse(fs.readFileSync(file));
const trace = {traceEvents: events};
const URL = {requestedUrl: url, mainDocumentUrl: url, finalDisplayedUrl: url};
const load = messages.find(message => message.method === 'Page.loadEventFired').params.timestamp * 1e3;
Lantern.Simulation.DNSCache.rttMultiplier = 0;

for (const network of networks) {
  const [name, rttMs, kbits] = network.split(/[=,]/);
  const throttling = {rttMs: Number(rttMs), throughputKbps: Number(kbits) / 1.024, cpuSlowdownMultiplier: 1};
  const settings = {throttlingMethod: 'simulate', throttling};
  const context = {settings, computedCache: new Map()};
  const data = {trace, devtoolsLog: messages, settings, URL, SourceMaps: [], fromTrace: false};
  const graph = await PageDependencyGraph.request(data, context);
  const simulator = await LoadSimulator.request({devtoolsLog: messages, settings}, context);
  const {nodeTimings} = simulator.simulate(graph, {label: name});
  const ends = {network: 0, any: 0};
  for (const [node, {endTime}] of nodeTimings) {
    const observed = node.type === 'network' ? node.request.networkEndTime : node.endTime / 1e3;
    if (observed > load) continue;
    ends.any = Math.max(ends.any, endTime);
    if (node.type === 'network') ends.network = Math.max(ends.network, endTime);
  }
  console.log(JSON.stringify({network: name, load_ms: ends.network, task_ms: ends.any}));
}
