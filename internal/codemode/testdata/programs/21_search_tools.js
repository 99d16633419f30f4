return tools.search('find a person', 2).map(t => t.name);
