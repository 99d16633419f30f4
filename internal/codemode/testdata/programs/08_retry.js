let tries = 0, r;
do {
  tries++;
  r = tools.call('flaky', {intent: 'Try until it works'});
} while (!r.success && tries < 5);
return {tries, content: r.content};
