const results = tools.callAll([7, 9, 8].map(id => ({name: 'mcp__people__find', input: {intent: 'Look up', arguments: {id}}})));
return results.map(r => r.success ? r.content.name : `(${r.error})`);
