const hits = [];
for (const path of tools.call('list_files', {intent: 'List'}).content.split('\n')) {
  tools.call('read', {intent: 'Search', path}).content.split('\n').forEach((line, i) => {
    if (/^b/.test(line)) hits.push(`${path}:${i + 1}: ${line}`);
  });
}
return hits;
