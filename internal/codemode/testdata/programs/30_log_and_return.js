console.log('start', {a: 1}, [1, 2], null, undefined);
console.log();
console.error(new TypeError('seen'));
return 'done';
