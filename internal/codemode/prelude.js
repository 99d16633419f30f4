/*
The first script of every engine: it takes the bridge out of the global object, removes what could not be stopped, and
returns the function that runs the user's function. It is joined into one line before it runs, so that line 1 of a stack
trace is ours and all others are the user's; so every statement ends in a semicolon and comments are like this one.
Nothing here guards a right: the host checks every call by itself. It guards the limits and the good manners.
*/
(function () {
  "use strict";
  const bridge = globalThis.__bridge;
  delete globalThis.__bridge;
  const { parse } = JSON;
  const { apply, ownKeys } = Reflect;
  const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { isArray } = Array;
  const viewLength = getOwnPropertyDescriptor(getPrototypeOf(Uint8Array.prototype), "length").get;
  const toObject = Object;
  const { RegExp, Promise, Error, TypeError, RangeError, String, Number } = globalThis;
  const split = Symbol.split, replace = Symbol.replace;

  /* A proxy can lie to native loops about a length, shared memory can block, weak references show the collector. */
  const unwanted = ["Proxy", "Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry"];
  for (let i = 0; i < unwanted.length; i++) { delete globalThis[unwanted[i]]; }

  /* Native loops over an array-like do not ask whether they should stop, so their length is bounded before. That of a typed
     array is computed by the engine and bounded by the memory; one that was put before it is not. */
  const maxLength = 4194304;
  const checkLength = function (o) {
    if (o === null || (typeof o !== "object" && typeof o !== "function")) { return; }
    for (let p = o; p !== null; p = getPrototypeOf(p)) {
      const d = getOwnPropertyDescriptor(p, "length");
      if (d === undefined) { continue; }
      if (d.get === viewLength) { return; }
      if (d.get !== undefined || d.set !== undefined || (typeof d.value === "object" && d.value !== null) || typeof d.value === "function") {
        throw new TypeError("a computed length is not supported here");
      }
      if (typeof d.value !== "bigint" && typeof d.value !== "symbol" && Number(d.value) > maxLength) {
        throw new RangeError("an array may have at most " + maxLength + " elements here");
      }
      return;
    }
  };
  const substitute = function (proto, name, make) {
    const native = proto[name];
    if (typeof native !== "function") { return; }
    defineProperty(proto, name, { value: make(native), writable: true, enumerable: false, configurable: true });
  };
  const loops = ["concat", "copyWithin", "every", "fill", "filter", "find", "findIndex", "findLast", "findLastIndex", "forEach",
    "includes", "indexOf", "join", "lastIndexOf", "map", "reduce", "reduceRight", "reverse", "shift", "slice", "some", "sort", "splice",
    "toLocaleString", "toReversed", "toSorted", "toSpliced", "toString", "unshift", "with"];
  /* The engine asks at every ten thousandth turn of a loop whether it should stop, so natives that go through much without
     taking memory pay with turns. */
  const pay = function (work) { for (let i = work / 2000; i > 0; i--) { } };
  const maxSearch = 4000000000;
  const checkSearch = function (where, needle) {
    if (where.length * needle.length > maxSearch) {
      throw new RangeError("searching " + where.length + " for " + needle.length + " characters is too much work here");
    }
    pay(where.length * (needle.length + 1));
  };
  for (let i = 0; i < loops.length; i++) {
    const deep = loops[i] === "concat";
    const compares = loops[i] === "includes" || loops[i] === "indexOf" || loops[i] === "lastIndexOf";
    substitute(Array.prototype, loops[i], (native) => function (...args) {
      checkLength(this);
      if (isArray(this)) { pay(this.length); }
      if (compares && isArray(this) && typeof args[0] === "string") { checkSearch(this, args[0]); }
      for (let i = 0; deep && i < args.length; i++) { checkLength(args[i]); }
      return apply(native, this, args);
    });
  }
  const typed = getPrototypeOf(Uint8Array.prototype);
  const passes = ["copyWithin", "fill", "includes", "indexOf", "lastIndexOf", "reverse", "set", "sort"];
  for (let i = 0; i < passes.length; i++) {
    const turns = passes[i] === "sort" ? 24 : 1;
    substitute(typed, passes[i], (native) => function (...args) {
      pay(apply(viewLength, this, []) * turns);
      return apply(native, this, args);
    });
  }
  const flatten = function (out, source, depth) {
    checkLength(source);
    for (let i = 0; i < source.length; i++) {
      if (!(i in source)) { continue; }
      if (depth > 0 && isArray(source[i])) { flatten(out, source[i], depth - 1); } else { out[out.length] = source[i]; }
    }
    return out;
  };
  substitute(Array.prototype, "flat", () => function flat(depth = 1) { return flatten([], this, Number(depth)); });
  const { map } = Array.prototype;
  substitute(Array.prototype, "flatMap", () => function (callback, self) { return flatten([], apply(map, this, [callback, self]), 1); });
  substitute(globalThis.Iterator === undefined ? {} : Iterator.prototype, "drop", (native) => function (count) {
    const n = Number(count);
    if (n > maxLength) { throw new RangeError("at most " + maxLength + " elements can be dropped here"); }
    return apply(native, this, [n]);
  });
  /* With a replacer the engine calls a function for every value, and asks there whether it should stop. */
  const same = function (key, value) { return value; };
  const { stringify } = JSON;
  substitute(JSON, "stringify", () => function (value, replacer, space) {
    if (isArray(replacer)) { checkLength(replacer); }
    return stringify(value, replacer === undefined || replacer === null ? same : replacer, space);
  });

  /* An object in the place of a text becomes its text once, before anything is decided about it. */
  const plain = function (v) { return (typeof v === "object" && v !== null) || typeof v === "function" ? String(v) : v; };

  /* A search for a long text in a long text is quadratic and cannot be stopped either. */
  const searches = [["indexOf"], ["lastIndexOf"], ["includes"], ["split", split], ["replace", replace], ["replaceAll", replace]];
  for (let i = 0; i < searches.length; i++) {
    const own = searches[i][1];
    substitute(String.prototype, searches[i][0], (native) => function (needle, ...rest) {
      const self = plain(this);
      if (typeof needle === "object" && needle !== null && (needle instanceof RegExp || (own !== undefined && needle[own] !== undefined))) {
        return apply(native, self, [needle, ...rest]);
      }
      needle = plain(needle);
      if (typeof needle === "string" && typeof self === "string") { checkSearch(self, needle); }
      return apply(native, self, [needle, ...rest]);
    });
  }

  /* So is putting combining characters in order, which a comparison by the rules of language does too. They begin at U+0300. */
  const maxRun = 16384;
  const ordered = function (text) {
    if (typeof text !== "string" || text.length <= maxRun) { return text; }
    for (let i = 0, run = 0; i < text.length; i++) {
      run = text[i] < "\u0300" ? 0 : run + 1;
      if (run > maxRun) { throw new RangeError("a text with more than " + maxRun + " characters in a row from U+0300 on is too much work here"); }
    }
    return text;
  };
  substitute(String.prototype, "normalize", (native) => function (...args) { return apply(native, ordered(plain(this)), args); });
  substitute(String.prototype, "localeCompare", (native) => function (other) {
    return apply(native, ordered(plain(this)), [ordered(plain(other))]);
  });

  substitute(String, "raw", (native) => function (template, ...rest) {
    const raw = toObject(toObject(template).raw);
    checkLength(raw);
    return apply(native, this, [{ __proto__: null, raw }, ...rest]);
  });

  const ask = function (op, payload) { return parse(bridge(op, payload)); };
  const write = function (value, what) {
    const text = stringify(value, same);
    if (text === undefined) { throw new TypeError(what + " is not JSON data (" + typeof value + ")"); }
    return text;
  };
  const oneCall = function (name, input) {
    if (typeof name !== "string") { throw new TypeError("the name of the tool must be a string"); }
    return "{\"name\":" + stringify(name) + (input === undefined ? "" : ",\"input\":" + write(input, "the input of " + name)) + "}";
  };
  const show = function (value) {
    if (typeof value === "string") { return value; }
    if (value instanceof Error) { return String(value); }
    let text;
    try { text = stringify(value, same); } catch (e) { text = undefined; }
    return text === undefined ? String(value) : text;
  };
  const log = function (...args) {
    let line = "";
    for (let i = 0; i < args.length; i++) { line += (i > 0 ? " " : "") + show(args[i]); }
    bridge("log", line);
  };
  const tools = freeze({
    __proto__: null,
    list() { return ask("list", ""); },
    search(query, limit) { return ask("search", stringify({ query: String(query), limit: limit === undefined ? 0 : Number(limit) })); },
    describe(name) { return ask("describe", String(name)); },
    call(name, input) { return ask("call", "[" + oneCall(name, input) + "]")[0]; },
    callAll(calls) {
      if (!isArray(calls)) { throw new TypeError("callAll takes an array of {name, input}"); }
      checkLength(calls);
      let text = "[";
      for (let i = 0; i < calls.length; i++) {
        const c = calls[i];
        if (typeof c !== "object" || c === null) { throw new TypeError("callAll takes an array of {name, input}"); }
        text += (i > 0 ? "," : "") + oneCall(c.name, c.input);
      }
      return ask("call", text + "]");
    },
    budget() { return ask("budget", ""); },
  });
  const console = freeze({ __proto__: null, log, info: log, warn: log, error: log, debug: log });
  const names = ownKeys(tools);
  for (let i = 0; i < names.length; i++) { freeze(tools[names[i]]); }
  freeze(log);

  return function (script) {
    const value = script(tools, console);
    if (value === undefined) { return "null"; }
    if (value instanceof Promise) { throw new TypeError("the script returned a promise; it is a synchronous function body, without async and await"); }
    return write(value, "what the script returned");
  };
})()
