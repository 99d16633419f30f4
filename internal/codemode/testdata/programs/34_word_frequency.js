const count = new Map();
for (const path of ['a.txt', 'b.txt']) {
  for (const word of tools.call('read', {intent: 'Count words', path}).content.match(/\w+/g)) {
    count.set(word, (count.get(word) || 0) + 1);
  }
}
return [...count].sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
