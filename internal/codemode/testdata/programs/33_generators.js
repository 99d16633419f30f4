function* pages() {
  for (const path of ['a.txt', 'b.txt']) yield* tools.call('read', {intent: 'Page', path}).content.trim().split('\n');
}
return [...pages()].sort().at(-1);
