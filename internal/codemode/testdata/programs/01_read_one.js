const r = tools.call('read', {intent: 'See what is in it', path: 'a.txt'});
if (!r.success) throw new Error(r.error);
return r.content;
