const r = tools.call('subtract', {intent: 'Try'});
return [r.success, r.error];
