tools.call('add', {intent: 'Nothing comes back', a: 1, b: 1});
