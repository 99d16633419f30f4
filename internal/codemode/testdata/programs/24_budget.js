const before = tools.budget().callsLeft;
tools.call('add', {intent: 'Spend one', a: 1, b: 1});
return before - tools.budget().callsLeft;
