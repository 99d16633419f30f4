const r = tools.call('read', {intent: 'Try', path: 'nope.txt'});
return r;
