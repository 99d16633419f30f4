return [1, 2, 3, 4].reduce((sum, n) => tools.call('add', {intent: 'Add up', a: sum, b: n}).content, 0);
