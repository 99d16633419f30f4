const t = tools.describe('read');
return [t.name, t.description, t.inputSchema.type];
