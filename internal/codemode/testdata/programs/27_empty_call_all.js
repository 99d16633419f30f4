return tools.callAll([]);
