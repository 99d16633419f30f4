const first = tools.call('read', {intent: 'Prefer this one', path: 'nope.txt'});
const r = first.success ? first : tools.call('read', {intent: 'Fall back', path: 'b.txt'});
return r.content.trim().split('\n');
