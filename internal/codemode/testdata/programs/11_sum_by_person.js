const sums = {};
for (const o of tools.call('mcp__orders__list', {intent: 'Sum up', arguments: {}}).content) {
  sums[o.person] = (sums[o.person] ?? 0) + o.sum;
}
return sums;
