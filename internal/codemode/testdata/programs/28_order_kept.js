const calls = Array.from({length: 30}, (_, i) => ({name: 'add', input: {intent: 'Number', a: i, b: 0}}));
return tools.callAll(calls).every((r, i) => r.content === i);
