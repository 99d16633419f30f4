const seen = {};
let calls = 0;
const read = path => seen[path] ??= (calls++, tools.call('read', {intent: 'Read once', path}).content);
read('a.txt'); read('b.txt'); read('a.txt');
return calls;
