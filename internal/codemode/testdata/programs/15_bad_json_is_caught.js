try {
  JSON.parse(tools.call('read', {intent: 'Is it JSON', path: 'a.txt'}).content);
  return 'json';
} catch (e) {
  return e.name;
}
