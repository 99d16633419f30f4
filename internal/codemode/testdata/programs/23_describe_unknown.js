try {
  return tools.describe('reed').name;
} catch (e) {
  return e.message;
}
