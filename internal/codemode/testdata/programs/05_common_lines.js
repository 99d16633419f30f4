const lines = path => new Set(tools.call('read', {intent: 'Compare', path}).content.split('\n').filter(Boolean));
const a = lines('a.txt'), b = lines('b.txt');
return [...a].filter(x => b.has(x));
