return tools.call('add', {a: 1, b: 2}).error;
