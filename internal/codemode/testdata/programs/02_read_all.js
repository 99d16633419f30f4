const names = tools.call('list_files', {intent: 'Find the files'}).content.split('\n');
const results = tools.callAll(names.map(path => ({name: 'read', input: {intent: 'Read every file', path}})));
return names.map((name, i) => ({name, bytes: results[i].content.length}));
