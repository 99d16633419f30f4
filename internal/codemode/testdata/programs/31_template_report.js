const names = tools.call('list_files', {intent: 'Report'}).content.split('\n');
return `# Files\n${names.map((n, i) => `${i + 1}. ${n}`).join('\n')}`;
