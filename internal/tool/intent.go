package tool

// Parse validates the input that a model or a script wrote for t and returns the call. It fails, with a
// sentence that tells the model what to change, when the input is not one JSON object, when intent is
// missing or blank (built-ins, MCP), when an MCP call has other members than intent and arguments, or
// arguments is not an object. An empty input counts as {}.
func Parse(t Tool, id string, input []byte) (Call, error) { panic("to be built") }
