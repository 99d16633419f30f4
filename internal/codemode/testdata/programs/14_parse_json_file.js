const {n, list} = JSON.parse(tools.call('read', {intent: 'Read the config', path: 'c.json'}).content);
return n === list.length;
