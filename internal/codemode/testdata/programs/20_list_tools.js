return tools.list().map(t => t.name);
