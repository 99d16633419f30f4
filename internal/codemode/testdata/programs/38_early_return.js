for (const {name} of tools.list()) {
  if (name.startsWith('mcp__')) return name;
}
