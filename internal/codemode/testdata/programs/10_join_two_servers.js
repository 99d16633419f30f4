const orders = tools.call('mcp__orders__list', {intent: 'All orders', arguments: {}}).content;
const ids = [...new Set(orders.map(o => o.person))];
const people = tools.callAll(ids.map(id => ({name: 'mcp__people__find', input: {intent: 'Who ordered', arguments: {id}}})));
const byId = Object.fromEntries(people.map(p => [p.content.id, p.content.name]));
return orders.map(o => ({order: o.order, name: byId[o.person], sum: o.sum}));
