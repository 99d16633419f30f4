class Counter {
  #n = 0;
  static of(text) { const c = new Counter(); for (const ch of text) c.add(ch); return c; }
  add(ch) { if (/[aeiou]/.test(ch)) this.#n++; }
  get value() { return this.#n; }
}
return Counter.of(tools.call('read', {intent: 'Count vowels', path: 'a.txt'}).content).value;
