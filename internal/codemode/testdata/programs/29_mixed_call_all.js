return tools.callAll([
  {name: 'add', input: {intent: 'Add', a: 1, b: 1}},
  {name: 'read', input: {intent: 'Read', path: 'nope'}},
  {name: 'add', input: {}},
]);
