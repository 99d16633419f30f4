const orders = tools.call('mcp__orders__list', {intent: 'Group', arguments: {}}).content;
const groups = Object.groupBy(orders, o => o.sum > 3 ? 'big' : 'small');
return {big: groups.big.length, small: groups.small.length};
