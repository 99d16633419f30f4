let total = 0;
for (const path of ['a.txt', 'b.txt']) {
  const {content} = tools.call('read', {intent: 'Count lines', path});
  total += content.split('\n').filter(Boolean).length;
}
return total;
