// Workers that run the WebAssembly modules. A worker that crashes or is cancelled is replaced.
// @ts-check

/** A module is compiled once, whatever the number of workers. @type {Map<string, Promise<WebAssembly.Module>>} */
const modules = new Map();

/** @param {string} name `diagnose` or `compare` */
const compiled = (name) => {
  const known = modules.get(name);
  if (known) return known;
  const embedded = document.getElementById(`${name}.wasm`)?.textContent;
  const module = embedded
    ? WebAssembly.compile(Uint8Array.from(atob(embedded.trim()), (letter) => letter.charCodeAt(0)))
    : fetch(`${name}.wasm`).then(async (response) => {
      if (!response.ok) throw new Error(`${name}.wasm: status ${response.status}`);
      return WebAssembly.compile(await response.arrayBuffer());
    });
  module.catch(() => modules.delete(name));
  modules.set(name, module);
  return module;
};

/** Text of one of the page's files. @param {string} name */
const textOf = async (name) => {
  const embedded = document.getElementById(name)?.textContent;
  if (embedded) return embedded;
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: status ${response.status}`);
  return response.text();
};

/** Address of the workers' script, which is fetched once: workers start without a network, and inherit the page's policy.
 * @type {Promise<string> | null} */
let script = null;
const scriptAddress = () => {
  if (script) return script;
  script = textOf("worker.js").then((source) => URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  script.catch(() => { script = null; });
  return script;
};

/** Reason why a request has no reply: a sentence of the module, a crash, or a cancellation. */
class Refusal extends Error {
  /** @param {string} message @param {"refused" | "crashed" | "cancelled"} kind */
  constructor(message, kind) {
    super(message);
    this.kind = kind;
  }
}

/** One worker with one module. Requests are handled in their order. */
class WorkerClient {
  /** @param {string} name the module */
  constructor(name) {
    this.name = name;
    /** @type {Worker | null} */
    this.worker = null;
    this.last = 0;
    /** Bytes of the module's memory after the last reply. */
    this.memory = 0;
    /** @type {Map<number, { resolve: (reply: string) => void, reject: (error: Error) => void, progress?: (part: number) => void }>} */
    this.pending = new Map();
  }

  /**
   * @param {object} request
   * @param {File} [file]
   * @param {(part: number) => void} [progress] the part of the file that is read
   * @returns {Promise<string>}
   */
  async call(request, file, progress) {
    const [module, address] = await Promise.all([compiled(this.name), scriptAddress()]);
    return new Promise((resolve, reject) => {
      const isNew = this.worker === null;
      const worker = this.worker ??= this.start(address);
      const id = ++this.last;
      this.pending.set(id, { resolve, reject, progress });
      worker.postMessage({ id, request: JSON.stringify(request), file, module: isNew ? module : undefined });
    });
  }

  /** @param {string} address */
  start(address) {
    const worker = new Worker(address);
    worker.onmessage = ({ data }) => {
      const pending = this.pending.get(data.id);
      if (!pending) return;
      if (data.read !== undefined) return pending.progress?.(data.size > 0 ? data.read / data.size : 1);
      if (data.crash !== undefined) return this.stop(`the reader crashed (${data.crash}); the other files are not affected`, "crashed");
      this.pending.delete(data.id);
      this.memory = data.memory;
      if (data.error !== undefined) pending.reject(new Refusal(data.error, "refused"));
      else pending.resolve(data.reply);
    };
    worker.onerror = (event) => this.stop(`the reader crashed (${event.message || "its worker did not start"})`, "crashed");
    return worker;
  }

  /** Ends the worker. Pending requests fail; the next request starts another one.
   * @param {string} reason @param {"crashed" | "cancelled"} kind */
  stop(reason, kind) {
    this.worker?.terminate();
    this.worker = null;
    const pending = [...this.pending.values()];
    this.pending.clear();
    for (const { reject } of pending) reject(new Refusal(reason, kind));
  }
}
