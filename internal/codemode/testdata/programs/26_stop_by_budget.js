let n = 0;
while (tools.budget().callsLeft > 195) {
  tools.call('add', {intent: 'Until little is left', a: n, b: 1});
  n++;
}
return n;
