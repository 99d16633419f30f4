const add = (a, b) => tools.call('add', {intent: 'Add', a, b}).content;
return add(add(1, 2), add(3, 4));
