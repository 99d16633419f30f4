const errors = [];
for (const id of [1, 2, 7]) {
  const r = tools.call('mcp__people__find', {intent: 'Probe', arguments: {id}});
  if (!r.success) errors.push([id, r.error]);
}
return errors;
