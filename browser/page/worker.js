// One WebAssembly module in a worker: requests in, replies out. Files are read part by part, synchronously.
/// <reference lib="webworker" />
// @ts-check
(() => {
  /** Bytes of a file per read: large enough to be worth the browser's work for each. */
  const PART = 4 << 20;
  /** @type {any} */
  const scope = self;
  /** @type {any} The module's functions. */
  let lab = null;
  let id = 0;
  /** @type {{ file: File, at: number, part: Uint8Array, used: number } | null} */
  let input = null;
  const reader = new FileReaderSync();

  /** Copies the next bytes of the file into memory. @param {number} _file @param {number} into @param {number} length */
  const read = (_file, into, length) => {
    if (!input) return -1;
    if (input.used === input.part.length && input.at < input.file.size) {
      try {
        input.part = new Uint8Array(reader.readAsArrayBuffer(input.file.slice(input.at, input.at + PART)));
      } catch {
        return -1;
      }
      if (input.part.length === 0) return -1;
      input.at += input.part.length;
      input.used = 0;
      scope.postMessage({ id, read: input.at, size: input.file.size });
    }
    const bytes = input.part.subarray(input.used, input.used + length);
    new Uint8Array(lab.memory.buffer).set(bytes, into);
    input.used += bytes.length;
    return bytes.length;
  };

  /** @param {string} text */
  const handle = (text) => {
    const request = new TextEncoder().encode(text);
    // Either call may grow the memory, which replaces its buffer.
    const address = lab.request(request.length);
    new Uint8Array(lab.memory.buffer).set(request, address);
    const length = lab.handle();
    const bytes = new Uint8Array(lab.memory.buffer, lab.reply(), Math.abs(length));
    const reply = new TextDecoder().decode(bytes);
    const memory = lab.memory.buffer.byteLength;
    return length < 0 ? { id, memory, error: reply } : { id, memory, reply };
  };

  scope.onmessage = async (/** @type {MessageEvent} */ { data }) => {
    id = data.id;
    try {
      if (data.module) lab = (await WebAssembly.instantiate(data.module, { page: { read } })).exports;
      if (data.file) input = { file: data.file, at: 0, part: new Uint8Array(0), used: 0 };
      scope.postMessage(handle(data.request));
    } catch (error) {
      scope.postMessage({ id, crash: String(error) });
    }
    if (data.file) input = null;
  };
})();
